/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics, as sdiag tells them. Times are microseconds, as there. Counters start
 * again at midnight UTC and at sdiag --reset: reset_time tells. MODEL_UNKNOWN_U64: not told. */
#ifndef SONDE_MODEL_DIAG_H
#define SONDE_MODEL_DIAG_H

#include "model/job.h"

struct rpc {
    symbol name; /* message type, or user */
    uint32_t id; /* type number, or user id */
    uint64_t count, total_usec;
    uint64_t queued, dropped; /* from 24.05 on, where slurmctld queues RPCs; else unknown */
};

/* Why a scheduling cycle ended; from 23.11 on. */
struct cycle_exit {
    symbol reason; /* in sdiag's words: "End of job queue" */
    uint64_t count;
};

struct cycle {
    uint64_t count, last_usec, max_usec, total_usec;
    uint64_t last_depth, total_depth; /* jobs looked at */
    uint64_t last_queue, total_queue; /* length of the queue */
    struct cycle_exit *exit;
    size_t n_exits;
};

struct diag {
    int64_t time, reset_time;
    uint64_t server_threads, agent_queue, agent_count, agent_threads, dbd_agent_queue;
    uint64_t jobs_submitted, jobs_started, jobs_completed, jobs_canceled, jobs_failed;
    uint64_t jobs_pending, jobs_running;
    struct cycle main, backfill;
    uint64_t backfilled_jobs, backfilled_jobs_last_cycle, backfilled_het_components;
    uint64_t backfill_last_depth_tried, backfill_total_depth_tried, backfill_last_table;
    int64_t backfill_last_time;
    struct rpc *rpc_by_type, *rpc_by_user;
    size_t n_rpc_by_type, n_rpc_by_user;

    /* The same, but its counters have gone on since sonde first looked, through every reset, and
     * its lists have whoever was ever in them. NULL: nobody keeps a history. */
    const struct diag *running;
};

#endif
