/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics, as sdiag tells them. Times are microseconds, as there. Counters start
 * again at midnight UTC and at sdiag --reset: reset_time tells. MODEL_UNKNOWN_U64: not told; a time
 * that is not told is 0. */
#ifndef SONDE_MODEL_DIAG_H
#define SONDE_MODEL_DIAG_H

#include "model/job.h"

struct rpc {
    symbol name; /* message type, or user; several may have one name: "nobody" */
    uint32_t id; /* type number, or user id */
    uint64_t count, total_usec;

    /* By type, from 24.05 on where slurmctld queues RPCs; the cycles are RPCs taken at once. */
    uint64_t queued, dropped, last_cycle, max_cycle;
};

/* Messages from slurmctld that wait to be sent. */
struct pending_rpc {
    symbol name;
    uint32_t id;
    uint64_t count;
};

/* Why a scheduling cycle ended; from 23.11 on. */
struct cycle_exit {
    symbol reason; /* in sdiag's words: "End of job queue" */
    uint64_t count;
};

/* The totals are exact, and told in JSON only. The text has the means, rounded down, which are not
 * told before the first cycle. */
struct cycle {
    uint64_t count, last_usec, max_usec, mean_usec, total_usec;
    uint64_t last_depth, mean_depth, total_depth; /* jobs looked at; the last of backfill only */
    uint64_t last_queue, mean_queue, total_queue; /* length; mean and total of backfill only */
    struct cycle_exit *exit;
    size_t n_exits;
};

struct diag {
    int64_t time, reset_time;
    uint64_t server_threads, agent_queue, agent_count, agent_threads, dbd_agent_queue;
    uint64_t clock_usec; /* for 1000 calls to gettimeofday() */
    uint64_t jobs_submitted, jobs_started, jobs_completed, jobs_canceled, jobs_failed;
    uint64_t jobs_pending, jobs_running; /* counted at jobs_time, up to minutes ago */
    int64_t jobs_time;
    struct cycle main, backfill;
    bool backfill_is_active;  /* its last_* are of a cycle that has not ended */
    uint64_t backfilled_jobs; /* since slurmctld started: not reset at midnight */
    uint64_t backfilled_jobs_since_reset, backfilled_het_components;
    uint64_t backfill_last_depth_tried, backfill_mean_depth_tried, backfill_total_depth_tried;
    uint64_t backfill_last_table, backfill_mean_table, backfill_total_table; /* slots of time */
    int64_t backfill_last_time;
    struct rpc *rpc_by_type, *rpc_by_user;
    size_t n_rpc_by_type, n_rpc_by_user;
    struct pending_rpc *rpc_pending;
    size_t n_rpc_pending;

    /* The same, but its counters have gone on since sonde first looked, through every reset, and
     * its lists have whoever was ever in them. NULL: nobody keeps a history. */
    const struct diag *running;
};

#endif
