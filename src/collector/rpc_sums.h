/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to slurmctld added up by name, of which several may have one: users that no directory
 * knows are all called nobody. */
#ifndef SONDE_COLLECTOR_RPC_SUMS_H
#define SONDE_COLLECTOR_RPC_SUMS_H

#include "collector/known.h"
#include "model/section.h"

struct rpc_sums {
    const struct section *section;
    struct rpc_sum {
        symbol name;
        struct known_sum count, usec, queued, dropped, last_batch, max_batch;
    } * sum; /* in the order in which they were told */
    size_t n;
};

/* A family, and which of the sums it shows. */
struct rpc_sums_row {
    size_t family;
    size_t offset; /* of a known_sum in struct rpc_sum */
    double divisor;
};

void rpc_sums_init(struct rpc_sums *sums, const struct section *section, const struct rpc *rpc,
                   size_t n);
void rpc_sums_free(struct rpc_sums *sums);

/* Each of the rows' families, with the name as its only label. */
void rpc_sums_write(struct metric_writer *writer, const struct rpc_sums *sums,
                    const struct rpc_sums_row *rows, size_t n_rows);

#endif
