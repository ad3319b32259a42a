/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares a store with slurmdbd: its runs with sacct, its usage with sreport, its counters of
 * ended jobs with both. Differences of one kind and with one reason are one row. docs/reconcile.md
 */
#ifndef SONDE_RECORD_RECONCILE_H
#define SONDE_RECORD_RECONCILE_H

#include "source/audit.h"
#include "source/keep.h"
#include "store/query.h"

enum reconcile_comparison {
    RECONCILE_RUNS,
    RECONCILE_USAGE,
    RECONCILE_ENDED,
    RECONCILE_COMPARISONS,
};
extern const struct str reconcile_words[RECONCILE_COMPARISONS]; /* "runs", for programs */

/* Why a difference may be there, as far as it can be shown. */
enum reconcile_reason {
    RECONCILE_UNEXPLAINED,
    RECONCILE_NOT_POLLED,    /* it happened after slurmdbd was last polled */
    RECONCILE_BEFORE_STORE,  /* the store begins later */
    RECONCILE_DELETED,       /* the store has deleted it (--store.retention) */
    RECONCILE_LEFT_OUT,      /* --jobs.accounts, --jobs.users */
    RECONCILE_PURGED,        /* slurmdbd deletes it (PurgeJobAfter) */
    RECONCILE_PRIVATE,       /* slurmdbd hides it (PrivateData) */
    RECONCILE_RESIZED,       /* the job changed its size: sacct has a row for each */
    RECONCILE_SUSPENDED,     /* the job was suspended: when is known to the interval of polls */
    RECONCILE_IDLE_RESERVED, /* sreport adds idle time of reservations */
    RECONCILE_NOT_ROLLED_UP, /* slurmdbd has not rolled up these hours */
    RECONCILE_REASONS,
};
extern const struct reconcile_reason_words {
    struct str word;      /* for programs: "not_polled" */
    const char *sentence; /* for people */
} reconcile_reasons[RECONCILE_REASONS];

enum { RECONCILE_EXAMPLES = 5, RECONCILE_EXAMPLE_MAX = 160, RECONCILE_ROWS_MAX = 128 };

struct reconcile_row {
    enum reconcile_comparison comparison;
    enum reconcile_reason reason;
    const char *what; /* "missing in the store" */
    uint64_t count;
    char examples[RECONCILE_EXAMPLES][RECONCILE_EXAMPLE_MAX]; /* the first; without names of jobs */
};

struct reconcile_result {
    int64_t from, to;                         /* of the runs */
    int64_t usage_from, usage_to;             /* full hours; equal: none are rolled up */
    uint64_t compared[RECONCILE_COMPARISONS]; /* runs; users in accounts; states */
    struct reconcile_row *row;
    size_t n;
    bool is_over; /* there were more kinds of differences than rows */
};

struct reconcile_config {
    struct store_reader *reader;
    struct audit *audit;
    struct str cluster;      /* in the store */
    const struct keep *keep; /* NULL: all jobs are recorded */
    int64_t from, now;       /* UTC seconds */
    const struct reconcile_counter {
        struct str state;
        uint64_t count;
    } * exported; /* slurm_jobs_ended_total by state; NULL: not asked for */
    size_t n_exported;
};

/* -ENOENT if the store does not have the cluster. The rows live in the arena. */
int reconcile_run(const struct reconcile_config *config, struct arena *arena,
                  struct reconcile_result *ret, struct err *err);

/* How many differences have a reason, and how many have none. */
uint64_t reconcile_count(const struct reconcile_result *result,
                         enum reconcile_comparison comparison, bool is_explained);

#endif
