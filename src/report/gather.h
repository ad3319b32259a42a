/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a run and gathers what all sources know of it: the store or sacct, the agents' final
 * counters, a Prometheus or the embedded series, and what was kept. */
#ifndef SONDE_REPORT_GATHER_H
#define SONDE_REPORT_GATHER_H

#include "model/job_name.h"
#include "report/facts.h"
#include "report/facts_kept.h"
#include "report/facts_series.h"
#include "source/sacct.h"

struct gather {
    struct store_reader *store; /* or NULL; at least one of these two */
    struct sacct *sacct; /* or NULL: asked if the store does not have the job or its end, or saw it
                          * in the queue only */
    struct str sacct_cluster;      /* whose sacct it is; empty: unknown */
    struct prometheus *prometheus; /* or NULL */
    struct ticks_reader *kept; /* the embedded series, asked if there is no Prometheus; or NULL */
    const struct series_matcher *matcher;
    size_t n_matchers;
    bool wants_plots;
    int64_t now;
    int64_t deadline_ns; /* monotonic, clock_real: for everything */
    int64_t earlier_ns;  /* of it, to look for earlier runs; 0: as long as does no harm, 50 ms */
    const atomic_bool *cancelled;
};

/* The newest run that has this name. -ENOENT with a sentence if there is none; -ENOTUNIQ if several
 * clusters have one (the sentence names them), or if it names several tasks or components. */
int gather_job(const struct gather *gather, const struct job_name *name, struct arena *arena,
               struct job_facts *ret, struct err *err);

/* Likewise a run that the store has, by its key: -ENOENT if it does no more. */
int gather_run(const struct gather *gather, const struct run_key *key, struct arena *arena,
               struct job_facts *ret, struct err *err);

/* A whole array, or all components: facts without plots, series or life, in the order of their
 * tasks. At most `most`: -E2BIG past that. */
int gather_array(const struct gather *gather, const struct job_name *name, size_t most,
                 struct arena *arena, struct job_facts **ret, size_t *ret_n, struct err *err);

#endif
