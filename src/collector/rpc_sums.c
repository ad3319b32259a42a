/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up requests to slurmctld by name. */
#include "collector/rpc_sums.h"

static void add(struct rpc_sum *sum, const struct rpc *rpc)
{
    known_sum_add(&sum->count, rpc->count);
    known_sum_add(&sum->usec, rpc->total_usec);
    known_sum_add(&sum->queued, rpc->queued);
    known_sum_add(&sum->dropped, rpc->dropped);
    known_sum_add(&sum->last_batch, rpc->last_cycle);
    known_sum_add(&sum->max_batch, rpc->max_cycle);
}

void rpc_sums_init(struct rpc_sums *sums, const struct section *section, const struct rpc *rpc,
                   size_t n)
{
    /* by symbol: its place + 1, 0 = none yet */
    uint32_t *place = heap_alloc(symbols_count(&section->symbols) * sizeof(*place));

    *sums =
        (struct rpc_sums){ .section = section, .sum = heap_alloc((n + 1) * sizeof(*sums->sum)) };
    for (size_t i = 0; i < n; i++) {
        if (!place[rpc[i].name]) {
            sums->sum[sums->n].name = rpc[i].name;
            place[rpc[i].name] = (uint32_t)++sums->n;
        }
        add(&sums->sum[place[rpc[i].name] - 1], &rpc[i]);
    }
    free(place);
}

void rpc_sums_free(struct rpc_sums *sums)
{
    free(sums->sum);
}

void rpc_sums_write(struct metric_writer *writer, const struct rpc_sums *sums,
                    const struct rpc_sums_row *rows, size_t n_rows)
{
    for (size_t k = 0; k < n_rows; k++) {
        metric_begin(writer, rows[k].family);
        for (size_t i = 0; i < sums->n; i++) {
            const void *sum = (const char *)&sums->sum[i] + rows[k].offset;

            known_sum_write(writer, sum, 1, rows[k].divisor,
                            METRIC_VALUES(section_text(sums->section, sums->sum[i].name)));
        }
    }
}
