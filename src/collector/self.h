/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the exporter says of itself: its sources and traces, and what every program says. */
#ifndef SONDE_COLLECTOR_SELF_H
#define SONDE_COLLECTOR_SELF_H

#include "collector/program.h"
#include "snapshot/refresh.h"
#include "source/trace.h"

/* Of what is true of a moment only (MOMENTARY_KINDS), in this exposition. */
enum self_moment { SELF_NOT_ASKED, SELF_MISSED, SELF_SHOWN };

/* Of the child that sends mails. */
enum self_drain { SELF_NO_DRAIN, SELF_DRAIN_DOWN, SELF_DRAIN_UP };

/* How what happened is completed from slurmdbd. */
struct self_history {
    bool is_up;
    uint64_t questions, failures, records, skipped;
    int64_t since, until; /* UTC seconds; 0: nothing yet */
    bool is_complete;
};

/* What the last sonde admin reconcile found, by comparison: runs, usage, ended. */
enum { SELF_COMPARISONS = 3 };
struct self_reconciled {
    int64_t time; /* 0: it never ran */
    uint64_t explained[SELF_COMPARISONS], unexplained[SELF_COMPARISONS];
};

/* One of the clusters that are asked. */
struct self_cluster {
    struct str const_labels;
    const char *sources[KINDS]; /* name of the class of the one that tells this kind */
    struct refresh_stats stats;
    bool has_history;
    struct self_history history;
    struct self_reconciled reconciled;
};

/* What is said of the store. */
struct self_store {
    bool is_up, is_retention_paused;
    uint64_t commits, jobs, finals, unchanged, skipped, replaced;
    double last_seconds, behind_seconds;
    uint64_t bytes, runs;
    struct {
        const char *reason;
        uint64_t count;
    } errors[REFRESH_REASONS]; /* a NULL reason ends them */
    bool keeps_summaries, is_summarising;
    uint64_t summaries, summaries_empty, summaries_failed;
    bool takes_posts;
    uint64_t posts, posts_refused;
};

struct self {
    const struct self_cluster *clusters;
    size_t n_clusters;
    enum self_moment moment;
    enum self_drain drain;
    const struct trace_stats *traces; /* NULL: nothing is traced */
    const struct self_store *store;   /* NULL: nothing is kept */
    struct program program;
};

extern const struct family self_families[];
extern const size_t n_self_families;

void self_collect(const struct self *self, struct metric_writer *writer);

#endif
