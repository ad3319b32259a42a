/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sdiag(1) tells of slurmctld's requests and of backfill, under the names that
 * prometheus-slurm-exporter has: gauges in microseconds that start again whenever Slurm's own do.
 * The scheduler collector has all of it as counters that go on. */
#include "collector/collector.h"
#include "collector/rpc_sums.h"

enum {
    RPC_USER_COUNT,
    RPC_USER_TOTAL_TIME,
    RPC_MSG_TYPE_COUNT,
    RPC_MSG_TYPE_AVG_TIME,
    RPC_MSG_TYPE_TOTAL_TIME,
    DAEMON_THREAD_COUNT,
    DBD_AGENT_QUEUE_SIZE,
    BACKFILL_JOB_COUNT,
    BACKFILL_CYCLE_COUNT,
    BACKFILL_LAST_DEPTH,
    BACKFILL_LAST_DEPTH_TRY_SCHED,
    BACKFILL_CYCLE_COUNTER,
};

/* Slurm resets its statistics at midnight UTC, but not those of requests. */
#define SINCE_START " since slurmctld started or sdiag --reset."

static const struct family families[] = {
    [RPC_USER_COUNT] = { "slurm_rpc_user_count",
                         METRIC_GAUGE,
                         "Requests of a user to slurmctld" SINCE_START,
                         { "user" } },
    [RPC_USER_TOTAL_TIME] = { "slurm_rpc_user_total_time",
                              METRIC_GAUGE,
                              "Microseconds that slurmctld spent on a user's requests" SINCE_START,
                              { "user" } },
    [RPC_MSG_TYPE_COUNT] = { "slurm_rpc_msg_type_count",
                             METRIC_GAUGE,
                             "Requests of a type to slurmctld" SINCE_START,
                             { "type" } },
    [RPC_MSG_TYPE_AVG_TIME] = { "slurm_rpc_msg_type_avg_time",
                                METRIC_GAUGE,
                                "Microseconds that slurmctld spent on a request of a type, on "
                                "average" SINCE_START,
                                { "type" } },
    [RPC_MSG_TYPE_TOTAL_TIME] = { "slurm_rpc_msg_type_total_time",
                                  METRIC_GAUGE,
                                  "Microseconds that slurmctld spent on requests of a "
                                  "type" SINCE_START,
                                  { "type" } },
    [DAEMON_THREAD_COUNT] = { "slurm_daemon_thread_count",
                              METRIC_GAUGE,
                              "Threads of slurmctld that serve requests.",
                              { NULL } },
    [DBD_AGENT_QUEUE_SIZE] = { "slurm_dbd_agent_queue_size",
                               METRIC_GAUGE,
                               "Messages that wait to be sent to slurmdbd; grows while it is away "
                               "or slow.",
                               { NULL } },
    [BACKFILL_JOB_COUNT] = { "slurm_backfill_job_count",
                             METRIC_GAUGE,
                             "Jobs started by backfill since slurmctld started.",
                             { NULL } },
    [BACKFILL_CYCLE_COUNT] = { "slurm_backfill_cycle_count",
                               METRIC_GAUGE,
                               "Backfill cycles since the last reset, at midnight UTC or by sdiag "
                               "--reset.",
                               { NULL } },
    [BACKFILL_LAST_DEPTH] = { "slurm_backfill_last_depth",
                              METRIC_GAUGE,
                              "Jobs that the last backfill cycle looked at, also those that could "
                              "not start for other reasons than room.",
                              { NULL } },
    [BACKFILL_LAST_DEPTH_TRY_SCHED] = { "slurm_backfill_last_depth_try_sched",
                                        METRIC_GAUGE,
                                        "Jobs that the last backfill cycle tried to find room for.",
                                        { NULL } },
    [BACKFILL_CYCLE_COUNTER] = { "slurm_backfill_cycle_counter",
                                 METRIC_GAUGE,
                                 "The same as slurm_backfill_cycle_count.",
                                 { NULL } },
};

static const struct {
    size_t family;
    size_t offset; /* of a uint64_t in struct diag */
} numbers[] = {
    { DAEMON_THREAD_COUNT, offsetof(struct diag, server_threads) },
    { DBD_AGENT_QUEUE_SIZE, offsetof(struct diag, dbd_agent_queue) },
    { BACKFILL_JOB_COUNT, offsetof(struct diag, backfilled_jobs) },
    { BACKFILL_CYCLE_COUNT, offsetof(struct diag, backfill.count) },
    { BACKFILL_LAST_DEPTH, offsetof(struct diag, backfill.last_depth) },
    { BACKFILL_LAST_DEPTH_TRY_SCHED, offsetof(struct diag, backfill_last_depth_tried) },
    { BACKFILL_CYCLE_COUNTER, offsetof(struct diag, backfill.count) },
};

static const struct rpc_sums_row by_user[] = {
    { RPC_USER_COUNT, offsetof(struct rpc_sum, count), 0 },
    { RPC_USER_TOTAL_TIME, offsetof(struct rpc_sum, usec), 0 },
};

static const struct rpc_sums_row by_type[] = {
    { RPC_MSG_TYPE_COUNT, offsetof(struct rpc_sum, count), 0 },
    { RPC_MSG_TYPE_TOTAL_TIME, offsetof(struct rpc_sum, usec), 0 },
};

/* Whole microseconds, as sdiag tells it. */
static void write_average(struct metric_writer *writer, const struct rpc_sums *types)
{
    metric_begin(writer, RPC_MSG_TYPE_AVG_TIME);
    for (size_t i = 0; i < types->n; i++) {
        const struct rpc_sum *sum = &types->sum[i];

        if (sum->count.total && !sum->count.is_over && sum->usec.n && !sum->usec.is_over)
            metric_u64(writer, METRIC_VALUES(section_text(types->section, sum->name)),
                       sum->usec.total / sum->count.total);
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct diag *diag = &section->diag;
    struct rpc_sums users, types;

    rpc_sums_init(&users, section, diag->rpc_by_user, diag->n_rpc_by_user);
    rpc_sums_init(&types, section, diag->rpc_by_type, diag->n_rpc_by_type);
    rpc_sums_write(writer, &users, by_user, COUNT(by_user));
    rpc_sums_write(writer, &types, by_type, COUNT(by_type));
    write_average(writer, &types);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const void *number = (const char *)diag + numbers[i].offset;

        metric_begin(writer, numbers[i].family);
        known_write(writer, NULL, *(const uint64_t *)number);
    }
    rpc_sums_free(&users);
    rpc_sums_free(&types);
}

const struct collector collector_diag = {
    .name = "diag",
    .help = "slurmctld's requests by type and user, its queues and backfill, since the last reset",
    .kind = KIND_DIAG,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
