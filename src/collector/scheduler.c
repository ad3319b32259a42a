/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics in full: sdiag(1). Times in seconds; what Slurm counts from reset to
 * reset are counters here that go on. */
#include "collector/collector.h"
#include "collector/rpc_sums.h"

enum {
    RESET_TIME,
    SERVER_THREADS,
    AGENT_QUEUE,
    AGENTS,
    AGENT_THREADS,
    DBD_AGENT_QUEUE,
    CLOCK_CALL,
    JOBS_SUBMITTED,
    JOBS_STARTED,
    JOBS_COMPLETED,
    JOBS_CANCELLED,
    JOBS_FAILED,
    CYCLES,
    CYCLE_SECONDS,
    LAST_CYCLE,
    MEAN_CYCLE,
    MAX_CYCLE,
    CYCLE_EXITS,
    EXAMINED_JOBS,
    LAST_EXAMINED_JOBS,
    MEAN_EXAMINED_JOBS,
    QUEUE_JOBS,
    LAST_QUEUE_JOBS,
    MEAN_QUEUE_JOBS,
    BACKFILL_ACTIVE,
    BACKFILL_LAST_TIME,
    BACKFILLED_JOBS,
    BACKFILLED_HET_COMPONENTS,
    BACKFILL_TRIED_JOBS,
    BACKFILL_LAST_TRIED_JOBS,
    BACKFILL_MEAN_TRIED_JOBS,
    BACKFILL_TABLE_SLOTS,
    BACKFILL_LAST_TABLE_SLOTS,
    BACKFILL_MEAN_TABLE_SLOTS,
    RPCS,
    RPC_SECONDS,
    RPCS_DROPPED,
    RPCS_QUEUED,
    RPC_LAST_BATCH,
    RPC_MAX_BATCH,
    USER_RPCS,
    USER_RPC_SECONDS,
    PENDING_RPCS,
};

#define SINCE_RESET " since the last reset."

static const struct family families[] = {
    [RESET_TIME] = { "slurm_scheduler_reset_time_seconds",
                     METRIC_GAUGE,
                     "When Slurm last reset its statistics, at midnight UTC or by sdiag --reset, "
                     "since unix epoch in seconds.",
                     { NULL } },
    [SERVER_THREADS] = { "slurm_scheduler_server_threads",
                         METRIC_GAUGE,
                         "Threads of slurmctld that serve requests.",
                         { NULL } },
    [AGENT_QUEUE] = { "slurm_scheduler_agent_queue_messages",
                      METRIC_GAUGE,
                      "Messages that slurmctld has yet to send to nodes.",
                      { NULL } },
    [AGENTS] = { "slurm_scheduler_agents",
                 METRIC_GAUGE,
                 "Agents of slurmctld that send messages to nodes.",
                 { NULL } },
    [AGENT_THREADS] = { "slurm_scheduler_agent_threads",
                        METRIC_GAUGE,
                        "Threads of all these agents.",
                        { NULL } },
    [DBD_AGENT_QUEUE] = { "slurm_scheduler_dbd_agent_queue_messages",
                          METRIC_GAUGE,
                          "Messages that slurmctld has yet to send to slurmdbd.",
                          { NULL } },
    [CLOCK_CALL] = { "slurm_scheduler_clock_call_seconds",
                     METRIC_GAUGE,
                     "How long one call to gettimeofday() takes on slurmctld's host; a slow clock "
                     "slows the scheduler.",
                     { NULL } },
    [JOBS_SUBMITTED] = { "slurm_scheduler_jobs_submitted_total",
                         METRIC_COUNTER,
                         "Jobs submitted since sonde began to look.",
                         { NULL } },
    [JOBS_STARTED] = { "slurm_scheduler_jobs_started_total",
                       METRIC_COUNTER,
                       "Jobs started since then.",
                       { NULL } },
    [JOBS_COMPLETED] = { "slurm_scheduler_jobs_completed_total",
                         METRIC_COUNTER,
                         "Jobs that have ended by themselves since then.",
                         { NULL } },
    [JOBS_CANCELLED] = { "slurm_scheduler_jobs_cancelled_total",
                         METRIC_COUNTER,
                         "Jobs cancelled since then.",
                         { NULL } },
    [JOBS_FAILED] = { "slurm_scheduler_jobs_failed_total",
                      METRIC_COUNTER,
                      "Jobs that Slurm could not run since then, because of a node or a launch "
                      "that "
                      "failed.",
                      { NULL } },
    [CYCLES] = { "slurm_scheduler_cycles_total",
                 METRIC_COUNTER,
                 "Cycles of the main and of the backfill scheduler since sonde began to look.",
                 { "scheduler" } },
    [CYCLE_SECONDS] = { "slurm_scheduler_cycle_seconds_total",
                        METRIC_COUNTER,
                        "Time spent in these cycles; absent where Slurm tells only the mean.",
                        { "scheduler" } },
    [LAST_CYCLE] = { "slurm_scheduler_last_cycle_seconds",
                     METRIC_GAUGE,
                     "How long the last cycle took.",
                     { "scheduler" } },
    [MEAN_CYCLE] = { "slurm_scheduler_mean_cycle_seconds",
                     METRIC_GAUGE,
                     "How long a cycle took on average" SINCE_RESET,
                     { "scheduler" } },
    [MAX_CYCLE] = { "slurm_scheduler_max_cycle_seconds",
                    METRIC_GAUGE,
                    "How long the longest cycle took" SINCE_RESET,
                    { "scheduler" } },
    [CYCLE_EXITS] = { "slurm_scheduler_cycle_exits_total",
                      METRIC_COUNTER,
                      "Cycles since then by why they ended, in sdiag's words; from Slurm 23.11 on.",
                      { "scheduler", "reason" } },
    [EXAMINED_JOBS] = { "slurm_scheduler_examined_jobs_total",
                        METRIC_COUNTER,
                        "Jobs that the cycles have looked at; absent where Slurm tells only the "
                        "mean.",
                        { "scheduler" } },
    [LAST_EXAMINED_JOBS] = { "slurm_scheduler_last_examined_jobs",
                             METRIC_GAUGE,
                             "Jobs that the last cycle looked at.",
                             { "scheduler" } },
    [MEAN_EXAMINED_JOBS] = { "slurm_scheduler_mean_examined_jobs",
                             METRIC_GAUGE,
                             "Jobs that a cycle looked at on average" SINCE_RESET,
                             { "scheduler" } },
    [QUEUE_JOBS] = { "slurm_scheduler_queue_jobs_total",
                     METRIC_COUNTER,
                     "Lengths of the queue that the cycles have met, added up; absent where Slurm "
                     "tells only the mean.",
                     { "scheduler" } },
    [LAST_QUEUE_JOBS] = { "slurm_scheduler_last_queue_jobs",
                          METRIC_GAUGE,
                          "Length of the queue that the last cycle met.",
                          { "scheduler" } },
    [MEAN_QUEUE_JOBS] = { "slurm_scheduler_mean_queue_jobs",
                          METRIC_GAUGE,
                          "Length of the queue that a cycle met on average" SINCE_RESET,
                          { "scheduler" } },
    [BACKFILL_ACTIVE] = { "slurm_scheduler_backfill_active",
                          METRIC_GAUGE,
                          "1 if Slurm was asked in the middle of a backfill cycle, whose last "
                          "values are then its own so far.",
                          { NULL } },
    [BACKFILL_LAST_TIME] = { "slurm_scheduler_backfill_last_cycle_time_seconds",
                             METRIC_GAUGE,
                             "When the last backfill cycle ran, since unix epoch in seconds.",
                             { NULL } },
    [BACKFILLED_JOBS] = { "slurm_scheduler_backfilled_jobs_total",
                          METRIC_COUNTER,
                          "Jobs started by backfill since slurmctld started, or sonde if that was "
                          "earlier.",
                          { NULL } },
    [BACKFILLED_HET_COMPONENTS] = { "slurm_scheduler_backfilled_het_components_total",
                                    METRIC_COUNTER,
                                    "Components of heterogeneous jobs started by backfill.",
                                    { NULL } },
    [BACKFILL_TRIED_JOBS] = { "slurm_scheduler_backfill_tried_jobs_total",
                              METRIC_COUNTER,
                              "Jobs that backfill cycles have tried to find room for; absent where "
                              "Slurm tells only the mean.",
                              { NULL } },
    [BACKFILL_LAST_TRIED_JOBS] = { "slurm_scheduler_backfill_last_tried_jobs",
                                   METRIC_GAUGE,
                                   "Jobs that the last backfill cycle tried to find room for.",
                                   { NULL } },
    [BACKFILL_MEAN_TRIED_JOBS] = { "slurm_scheduler_backfill_mean_tried_jobs",
                                   METRIC_GAUGE,
                                   "Jobs that a backfill cycle tried to find room for on "
                                   "average" SINCE_RESET,
                                   { NULL } },
    [BACKFILL_TABLE_SLOTS] = { "slurm_scheduler_backfill_table_slots_total",
                               METRIC_COUNTER,
                               "Time slots that backfill cycles have looked at; absent where Slurm "
                               "tells only the mean.",
                               { NULL } },
    [BACKFILL_LAST_TABLE_SLOTS] = { "slurm_scheduler_backfill_last_table_slots",
                                    METRIC_GAUGE,
                                    "Time slots that the last backfill cycle looked at.",
                                    { NULL } },
    [BACKFILL_MEAN_TABLE_SLOTS] = { "slurm_scheduler_backfill_mean_table_slots",
                                    METRIC_GAUGE,
                                    "Time slots that a backfill cycle looked at on "
                                    "average" SINCE_RESET,
                                    { NULL } },
    [RPCS] = { "slurm_scheduler_rpcs_total",
               METRIC_COUNTER,
               "Requests to slurmctld by type.",
               { "type" } },
    [RPC_SECONDS] = { "slurm_scheduler_rpc_seconds_total",
                      METRIC_COUNTER,
                      "Time that slurmctld spent on requests by type.",
                      { "type" } },
    [RPCS_DROPPED] = { "slurm_scheduler_rpcs_dropped_total",
                       METRIC_COUNTER,
                       "Requests that slurmctld turned away by type; where it queues them, from "
                       "Slurm 24.05 on.",
                       { "type" } },
    [RPCS_QUEUED] = { "slurm_scheduler_rpcs_queued",
                      METRIC_GAUGE,
                      "Requests that wait for slurmctld by type; where it queues them.",
                      { "type" } },
    [RPC_LAST_BATCH] = { "slurm_scheduler_rpc_last_batch",
                         METRIC_GAUGE,
                         "Requests that slurmctld last took from its queue at once by type.",
                         { "type" } },
    [RPC_MAX_BATCH] = { "slurm_scheduler_rpc_max_batch",
                        METRIC_GAUGE,
                        "Requests that slurmctld took from its queue at once by type, at most.",
                        { "type" } },
    [USER_RPCS] = { "slurm_scheduler_user_rpcs_total",
                    METRIC_COUNTER,
                    "Requests to slurmctld by user.",
                    { "user" } },
    [USER_RPC_SECONDS] = { "slurm_scheduler_user_rpc_seconds_total",
                           METRIC_COUNTER,
                           "Time that slurmctld spent on requests by user.",
                           { "user" } },
    [PENDING_RPCS] = { "slurm_scheduler_pending_rpcs",
                       METRIC_GAUGE,
                       "Messages that slurmctld has yet to send by type.",
                       { "type" } },
};

/* A number in a struct diag or a struct cycle. */
struct number {
    size_t family;
    size_t offset; /* of a uint64_t */
    double divisor;
};

#define OF_DIAG(member)  offsetof(struct diag, member)
#define OF_CYCLE(member) offsetof(struct cycle, member)
#define USEC             1e6

static const struct number now[] = {
    { SERVER_THREADS, OF_DIAG(server_threads), 0 },
    { AGENT_QUEUE, OF_DIAG(agent_queue), 0 },
    { AGENTS, OF_DIAG(agent_count), 0 },
    { AGENT_THREADS, OF_DIAG(agent_threads), 0 },
    { DBD_AGENT_QUEUE, OF_DIAG(dbd_agent_queue), 0 },
    { CLOCK_CALL, OF_DIAG(clock_usec), 1000 * USEC },
    { BACKFILL_LAST_TRIED_JOBS, OF_DIAG(backfill_last_depth_tried), 0 },
    { BACKFILL_MEAN_TRIED_JOBS, OF_DIAG(backfill_mean_depth_tried), 0 },
    { BACKFILL_LAST_TABLE_SLOTS, OF_DIAG(backfill_last_table), 0 },
    { BACKFILL_MEAN_TABLE_SLOTS, OF_DIAG(backfill_mean_table), 0 },
};

static const struct number counted[] = {
    { JOBS_SUBMITTED, OF_DIAG(jobs_submitted), 0 },
    { JOBS_STARTED, OF_DIAG(jobs_started), 0 },
    { JOBS_COMPLETED, OF_DIAG(jobs_completed), 0 },
    { JOBS_CANCELLED, OF_DIAG(jobs_canceled), 0 },
    { JOBS_FAILED, OF_DIAG(jobs_failed), 0 },
    { BACKFILLED_JOBS, OF_DIAG(backfilled_jobs), 0 },
    { BACKFILLED_HET_COMPONENTS, OF_DIAG(backfilled_het_components), 0 },
    { BACKFILL_TRIED_JOBS, OF_DIAG(backfill_total_depth_tried), 0 },
    { BACKFILL_TABLE_SLOTS, OF_DIAG(backfill_total_table), 0 },
};

static const struct number cycle_now[] = {
    { LAST_CYCLE, OF_CYCLE(last_usec), USEC },
    { MEAN_CYCLE, OF_CYCLE(mean_usec), USEC },
    { MAX_CYCLE, OF_CYCLE(max_usec), USEC },
    { LAST_EXAMINED_JOBS, OF_CYCLE(last_depth), 0 },
    { MEAN_EXAMINED_JOBS, OF_CYCLE(mean_depth), 0 },
    { LAST_QUEUE_JOBS, OF_CYCLE(last_queue), 0 },
    { MEAN_QUEUE_JOBS, OF_CYCLE(mean_queue), 0 },
};

static const struct number cycle_counted[] = {
    { CYCLES, OF_CYCLE(count), 0 },
    { CYCLE_SECONDS, OF_CYCLE(total_usec), USEC },
    { EXAMINED_JOBS, OF_CYCLE(total_depth), 0 },
    { QUEUE_JOBS, OF_CYCLE(total_queue), 0 },
};

static const struct rpc_sums_row by_type_now[] = {
    { RPCS_QUEUED, offsetof(struct rpc_sum, queued), 0 },
    { RPC_LAST_BATCH, offsetof(struct rpc_sum, last_batch), 0 },
    { RPC_MAX_BATCH, offsetof(struct rpc_sum, max_batch), 0 },
};

static const struct rpc_sums_row by_type_counted[] = {
    { RPCS, offsetof(struct rpc_sum, count), 0 },
    { RPC_SECONDS, offsetof(struct rpc_sum, usec), USEC },
    { RPCS_DROPPED, offsetof(struct rpc_sum, dropped), 0 },
};

static const struct rpc_sums_row by_user_counted[] = {
    { USER_RPCS, offsetof(struct rpc_sum, count), 0 },
    { USER_RPC_SECONDS, offsetof(struct rpc_sum, usec), USEC },
};

static void write_number(struct metric_writer *writer, const struct number *number,
                         const void *from, const struct str *labels)
{
    uint64_t value = *(const uint64_t *)(const void *)((const char *)from + number->offset);

    if (value == MODEL_UNKNOWN_U64)
        return;
    if (number->divisor > 0)
        metric_double(writer, labels, (double)value / number->divisor);
    else
        metric_u64(writer, labels, value);
}

static void write_diag(struct metric_writer *writer, const struct number *numbers, size_t n,
                       const struct diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        metric_begin(writer, numbers[i].family);
        write_number(writer, &numbers[i], diag, NULL);
    }
}

static void write_cycles(struct metric_writer *writer, const struct number *numbers, size_t n,
                         const struct diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        metric_begin(writer, numbers[i].family);
        write_number(writer, &numbers[i], &diag->main, METRIC_VALUES(STR("main")));
        write_number(writer, &numbers[i], &diag->backfill, METRIC_VALUES(STR("backfill")));
    }
}

static void write_exits(const struct section *section, struct metric_writer *writer,
                        const struct cycle *cycle, struct str scheduler)
{
    for (size_t i = 0; i < cycle->n_exits; i++)
        known_write(writer, METRIC_VALUES(scheduler, section_text(section, cycle->exit[i].reason)),
                    cycle->exit[i].count);
}

static void write_rpcs(struct metric_writer *writer, const struct section *section,
                       const struct diag *running)
{
    const struct diag *diag = &section->diag;
    struct rpc_sums sums;

    rpc_sums_init(&sums, section, running->rpc_by_type, running->n_rpc_by_type);
    rpc_sums_write(writer, &sums, by_type_counted, COUNT(by_type_counted));
    rpc_sums_free(&sums);
    rpc_sums_init(&sums, section, diag->rpc_by_type, diag->n_rpc_by_type);
    rpc_sums_write(writer, &sums, by_type_now, COUNT(by_type_now));
    rpc_sums_free(&sums);
    rpc_sums_init(&sums, section, running->rpc_by_user, running->n_rpc_by_user);
    rpc_sums_write(writer, &sums, by_user_counted, COUNT(by_user_counted));
    rpc_sums_free(&sums);
    metric_begin(writer, PENDING_RPCS);
    for (size_t i = 0; i < diag->n_rpc_pending; i++)
        known_write(writer, METRIC_VALUES(section_text(section, diag->rpc_pending[i].name)),
                    diag->rpc_pending[i].count);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct diag *diag = &section->diag, *running = diag->running ? diag->running : diag;

    metric_begin(writer, RESET_TIME);
    known_write_time(writer, NULL, diag->reset_time);
    write_diag(writer, now, COUNT(now), diag);
    write_diag(writer, counted, COUNT(counted), running);
    write_cycles(writer, cycle_counted, COUNT(cycle_counted), running);
    write_cycles(writer, cycle_now, COUNT(cycle_now), diag);
    metric_begin(writer, CYCLE_EXITS);
    write_exits(section, writer, &running->main, STR("main"));
    write_exits(section, writer, &running->backfill, STR("backfill"));
    metric_begin(writer, BACKFILL_ACTIVE);
    metric_u64(writer, NULL, diag->backfill_is_active);
    metric_begin(writer, BACKFILL_LAST_TIME);
    known_write_time(writer, NULL, diag->backfill_last_time);
    write_rpcs(writer, section, running);
}

const struct collector collector_scheduler = {
    .name = "scheduler",
    .help = "the scheduler's statistics in full: jobs, cycles, queues, requests by type and user",
    .kind = KIND_DIAG,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
