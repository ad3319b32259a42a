/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Prometheus knows of one run: the agent's families (docs/metrics.md), or, where there are
 * none, those of jobs_exporter. At most SERIES_QUERIES queries, however many metrics and nodes;
 * each bounded by the run's start and end, and narrowed by its cluster's matcher. */
#ifndef SONDE_REPORT_FACTS_SERIES_H
#define SONDE_REPORT_FACTS_SERIES_H

#include "report/facts.h"
#include "source/prometheus.h"

enum { SERIES_QUERIES = 12 };

struct series_question {
    struct prometheus *prometheus;
    struct str matcher; /* PromQL label matchers of the cluster: cluster="beluga"; or empty */
    bool wants_plots;
    int64_t deadline_ns; /* monotonic, clock_real: for all queries together */
    const atomic_bool *cancelled;
};

/* Adds to facts that have their row and what agents told at the end, if they did: no known number
 * becomes smaller. 0 also if there are no samples at all: origin.has_series says, and
 * why_no_series; that also says, of samples that are there, why some or a plot are missing. As
 * prometheus_query otherwise; facts are then as before, but for origin.why_no_series. */
int facts_take_series(struct job_facts *facts, struct arena *arena,
                      const struct series_question *question, struct err *err);

/* "beluga=cluster=\"beluga\"" as cluster and matcher; without a cluster's name the matcher is for
 * all. -EINVAL with a sentence for what cannot stand between the braces of a selector. */
struct series_matcher {
    struct str cluster, matcher;
};
int series_matcher_read(struct str text, struct series_matcher *ret, struct err *err);

#endif
