/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the usage of a node's jobs for tests of collectors. */
#include "usage_standin.h"

#include <stdio.h>

static const struct family alpha_families[] = {
    { "alpha_seconds_total", METRIC_COUNTER, "Ticks, as a counter.", { "job_id", NULL } },
    { "alpha_bytes", METRIC_GAUGE, "Ticks, as a gauge.", { "job_id", NULL } },
};

static const struct family beta_families[] = {
    { "beta_bytes", METRIC_GAUGE, "Ticks, once more.", { "job_id", NULL } },
};

static const struct family gamma_families[] = {
    { "gamma_bytes", METRIC_GAUGE, "Ticks, if asked for.", { "job_id", NULL } },
};

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    for (size_t family = 0; family < writer->n_families; family++) {
        metric_begin(writer, family);
        for (size_t i = 0; i < usage->n_jobs; i++) {
            char id[24];

            snprintf(id, sizeof(id), "%zu", i);
            metric_u64(writer, METRIC_VALUES(str_of(id)), usage->agent.ticks);
        }
    }
}

static const struct usage_collector alpha = { .name = "alpha",
                                              .help = "ticks",
                                              .families = alpha_families,
                                              .n_families = 2,
                                              .collect = collect };
static const struct usage_collector beta = { .name = "beta",
                                             .help = "more ticks",
                                             .families = beta_families,
                                             .n_families = 1,
                                             .collect = collect };
static const struct usage_collector gamma_ = { .name = "gamma",
                                               .help = "even more",
                                               .is_off = true,
                                               .families = gamma_families,
                                               .n_families = 1,
                                               .collect = collect };

const struct usage_collector *const usage_collectors[] = { &alpha, &beta, &gamma_, NULL };

int usage_collector_find(struct str name)
{
    for (int i = 0; usage_collectors[i]; i++)
        if (str_eq(str_of(usage_collectors[i]->name), name))
            return i;
    return -1;
}

unsigned usage_collectors_need(usage_collector_set set)
{
    (void)set;
    return 0;
}
