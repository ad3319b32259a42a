/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of the agent about itself. */
#include "collector/agent_self.h"

#include "base/clock.h"

enum {
    INFO,
    UP,
    SAMPLE_TIME,
    SAMPLE_AGE,
    SAMPLES,
    TICK_DURATION,
    TICK_CPU,
    JOBS,
    PROCESSES,
    LEFTOVERS,
    DIRECTORIES,
    DIRECTORIES_REFUSED,
    FILES,
    FILES_LIMIT,
    FILE_LIMIT_HITS,
    JOBS_REFUSED,
    PROCESSES_REFUSED,
    WALKS,
    OVERFLOWS,
    EXIT_RECORDS,
    EXITS,
    EXITS_LOST,
    EXITS_UNATTRIBUTED,
    MAY_READ,
    HAS_CGROUPS,
    GPU_UP,
    PROFILE_MESSAGES,
    PROFILE_REFUSED,
    PROFILE_STEPS,
    PROFILE_VALUES,
    PUSHES,
    PUSH_FAILURES,
    PUSHES_REPLACED,
    PUSHES_REFUSED,
    PUSH_UP,
    PUSH_DURATION,
    PUSH_SUCCESS,
    SWEPT,
    SWEEP_FAILURES,
    INGEST_UP,
    INGEST_RECORDS,
    INGEST_POSTED,
    INGEST_DROPPED,
    INGEST_FAILURES,
    INGEST_WAITING,
    INGEST_BYTES,
    INGEST_SUCCESS,
    INGEST_RETENTION,
    PROGRAM,
};

const struct family agent_self_families[] = {
    [INFO] = { "sonde_agent_info",
               METRIC_GAUGE,
               "Always 1; the label tells which node this is.",
               { "node" } },
    [UP] = { "sonde_agent_up",
             METRIC_GAUGE,
             "1 if what is shown of jobs is fresh; 0 if there is nothing yet, or it was withdrawn "
             "because the last sample is too old.",
             { NULL } },
    [SAMPLE_TIME] = { "sonde_agent_last_sample_timestamp_seconds",
                      METRIC_GAUGE,
                      "When the last sample was taken.",
                      { NULL } },
    [SAMPLE_AGE] = { "sonde_agent_sample_age_seconds",
                     METRIC_GAUGE,
                     "Seconds since the last sample was taken.",
                     { NULL } },
    [SAMPLES] = { "sonde_agent_samples_total",
                  METRIC_COUNTER,
                  "Samples taken, by cause: tick (it was time), event (a job began or ended).",
                  { "cause" } },
    [TICK_DURATION] = { "sonde_agent_tick_duration_seconds",
                        METRIC_GAUGE,
                        "How long the last sample at a tick took.",
                        { NULL } },
    [TICK_CPU] = { "sonde_agent_tick_cpu_seconds",
                   METRIC_GAUGE,
                   "CPU time that the last sample at a tick took.",
                   { NULL } },
    [JOBS] = { "sonde_agent_jobs",
               METRIC_GAUGE,
               "Jobs shown, by state: running, ended (the last counters of jobs that have ended, "
               "for as long as --job.linger).",
               { "state" } },
    [PROCESSES] = { "sonde_agent_processes", METRIC_GAUGE, "Processes of jobs.", { NULL } },
    [LEFTOVERS] = { "sonde_agent_leftover_cgroups",
                    METRIC_GAUGE,
                    "Job directories in the cgroup hierarchy that no slurmstepd looks after any "
                    "more. sonde's epilog script removes them.",
                    { NULL } },
    [DIRECTORIES] = { "sonde_agent_watched_directories",
                      METRIC_GAUGE,
                      "Directories of the cgroup hierarchy watched for new jobs.",
                      { NULL } },
    [DIRECTORIES_REFUSED] = { "sonde_agent_refused_directories",
                              METRIC_GAUGE,
                              "Directories of the cgroup hierarchy left out because their job, or "
                              "all jobs, had too many or too deep ones. Their processes are not "
                              "listed; CPU time and memory of the job include them.",
                              { NULL } },
    [FILES] = { "sonde_agent_open_files",
                METRIC_GAUGE,
                "Files of cgroups and processes that are kept open.",
                { NULL } },
    [FILES_LIMIT] = { "sonde_agent_open_files_limit",
                      METRIC_GAUGE,
                      "How many files of cgroups and processes may be kept open: what the limit on "
                      "descriptors leaves after HTTP connections and a reserve.",
                      { NULL } },
    [FILE_LIMIT_HITS] = { "sonde_agent_file_limit_hits_total",
                          METRIC_COUNTER,
                          "Times that a file was not kept open, by the limit that was reached: "
                          "step, job, all. Such files are opened for each sample.",
                          { "limit" } },
    [JOBS_REFUSED] = { "sonde_agent_refused_jobs_total",
                       METRIC_COUNTER,
                       "Jobs not looked at because there were more than --max-jobs.",
                       { NULL } },
    [PROCESSES_REFUSED] = { "sonde_agent_refused_processes",
                            METRIC_GAUGE,
                            "Processes not looked at in the last sample because there were more "
                            "than --max-processes.",
                            { NULL } },
    [WALKS] = { "sonde_agent_walks_total",
                METRIC_COUNTER,
                "Walks through the whole cgroup hierarchy.",
                { NULL } },
    [OVERFLOWS] = { "sonde_agent_watch_overflows_total",
                    METRIC_COUNTER,
                    "Walks that were needed because the kernel dropped news of new directories.",
                    { NULL } },
    [EXIT_RECORDS] = { "sonde_agent_exit_records",
                       METRIC_GAUGE,
                       "1 if the kernel tells what processes had used when they ended (taskstats); "
                       "0 if their parents' sums must do.",
                       { NULL } },
    [EXITS] = { "sonde_agent_exits_total",
                METRIC_COUNTER,
                "Processes of jobs whose end the kernel told.",
                { NULL } },
    [EXITS_LOST] = { "sonde_agent_exits_lost_total",
                     METRIC_COUNTER,
                     "Times that the kernel had more to tell of ended processes than there was "
                     "room for.",
                     { NULL } },
    [EXITS_UNATTRIBUTED] = { "sonde_agent_exits_unattributed_total",
                             METRIC_COUNTER,
                             "Ended processes that may have been a job's, but nobody can tell "
                             "whose.",
                             { NULL } },
    [MAY_READ] = { "sonde_agent_may_read_processes",
                   METRIC_GAUGE,
                   "1 if the agent may read what processes of other users read, write and hold "
                   "open; 0 if a capability is missing.",
                   { NULL } },
    [HAS_CGROUPS] = { "sonde_agent_has_cgroups",
                      METRIC_GAUGE,
                      "1 if Slurm keeps jobs in cgroups; 0 if jobs are found by the processes that "
                      "slurmstepd has started.",
                      { NULL } },
    [GPU_UP] = { "sonde_agent_gpu_up",
                 METRIC_GAUGE,
                 "1 if the GPU driver answers, else 0; absent without one.",
                 { NULL } },
    [PROFILE_MESSAGES] = { "sonde_agent_profile_messages_total",
                           METRIC_COUNTER,
                           "Messages that came to the socket of the profile plugin.",
                           { NULL } },
    [PROFILE_REFUSED] = { "sonde_agent_profile_refused_total",
                          METRIC_COUNTER,
                          "Those of them that were refused, by reason: sender (neither root nor "
                          "slurmd's user), garbled, version (of a newer plugin), full (past a "
                          "ceiling, also in part).",
                          { "reason" } },
    [PROFILE_STEPS] = { "sonde_agent_profile_steps",
                        METRIC_GAUGE,
                        "Steps of which the profile plugin has told, ended ones included for as "
                        "long as --job.linger.",
                        { NULL } },
    [PROFILE_VALUES] = { "sonde_agent_profile_values",
                         METRIC_GAUGE,
                         "Numbers that are kept of them.",
                         { NULL } },
    [PUSHES] = { "sonde_agent_pushes_total",
                 METRIC_COUNTER,
                 "Requests that the Pushgateway took.",
                 { NULL } },
    [PUSH_FAILURES] = { "sonde_agent_push_failures_total",
                        METRIC_COUNTER,
                        "Requests that it did not take.",
                        { NULL } },
    [PUSHES_REPLACED] = { "sonde_agent_pushes_replaced_total",
                          METRIC_COUNTER,
                          "Samples that were never pushed because a newer one came first.",
                          { NULL } },
    [PUSHES_REFUSED] = { "sonde_agent_pushes_refused_total",
                         METRIC_COUNTER,
                         "Samples that were not pushed because they were too large, or of too many "
                         "slurmds.",
                         { NULL } },
    [PUSH_UP] = { "sonde_agent_push_up",
                  METRIC_GAUGE,
                  "1 if the Pushgateway took the last request, else 0.",
                  { NULL } },
    [PUSH_DURATION] = { "sonde_agent_push_duration_seconds",
                        METRIC_GAUGE,
                        "How long the last request to the Pushgateway took.",
                        { NULL } },
    [PUSH_SUCCESS] = { "sonde_agent_last_push_timestamp_seconds",
                       METRIC_GAUGE,
                       "When the Pushgateway last took a request.",
                       { NULL } },
    [SWEPT] = { "sonde_agent_profile_swept_groups_total",
                METRIC_COUNTER,
                "Groups of steps that are over that were deleted on the Pushgateway of the profile "
                "plugin, those included that it had deleted itself.",
                { NULL } },
    [SWEEP_FAILURES] = { "sonde_agent_profile_sweep_failures_total",
                         METRIC_COUNTER,
                         "Requests for that which the Pushgateway did not take.",
                         { NULL } },
    [INGEST_UP] = { "sonde_agent_ingest_up",
                    METRIC_GAUGE,
                    "1 if the exporter took the last post of what ended jobs used, or there was "
                    "none yet, else 0.",
                    { NULL } },
    [INGEST_RECORDS] = { "sonde_agent_ingest_records_total",
                         METRIC_COUNTER,
                         "Jobs that have ended here and are to be told to the exporter.",
                         { NULL } },
    [INGEST_POSTED] = { "sonde_agent_ingest_posted_total",
                        METRIC_COUNTER,
                        "Those that the exporter has written into its store, of an earlier agent "
                        "too.",
                        { NULL } },
    [INGEST_DROPPED] = { "sonde_agent_ingest_dropped_total",
                         METRIC_COUNTER,
                         "Those that were dropped: no room was left, they had waited too long, or "
                         "the exporter refused them.",
                         { NULL } },
    [INGEST_FAILURES] = { "sonde_agent_ingest_failures_total",
                          METRIC_COUNTER,
                          "Posts that the exporter did not take.",
                          { NULL } },
    [INGEST_WAITING] = { "sonde_agent_ingest_waiting",
                         METRIC_GAUGE,
                         "Jobs that are still to be told, by where they wait: disk, memory.",
                         { "place" } },
    [INGEST_BYTES] = { "sonde_agent_ingest_spool_bytes",
                       METRIC_GAUGE,
                       "Bytes that wait on disk.",
                       { NULL } },
    [INGEST_SUCCESS] = { "sonde_agent_last_ingest_timestamp_seconds",
                         METRIC_GAUGE,
                         "When the exporter last took a post.",
                         { NULL } },
    [INGEST_RETENTION] = { "sonde_agent_ingest_retention_paused",
                           METRIC_GAUGE,
                           "1 while records that are too old and cannot be delivered are not "
                           "deleted because the clock jumped less than an hour ago. Else 0.",
                           { NULL } },
#include "collector/program.inc"
};

const size_t n_agent_self_families = COUNT(agent_self_families);

static double seconds(int64_t ns)
{
    return (double)ns / NS_PER_SEC;
}

static void collect_freshness(const struct agent_self *self, struct metric_writer *writer)
{
    metric_begin(writer, INFO);
    metric_u64(writer, METRIC_VALUES(str_of(self->node)), 1);
    metric_begin(writer, UP);
    metric_u64(writer, NULL, self->bulletin && !self->is_stale);
    if (!self->bulletin)
        return;
    metric_begin(writer, SAMPLE_TIME);
    metric_double(writer, NULL, seconds(self->bulletin->agent.sampled_wall_ns));
    metric_begin(writer, SAMPLE_AGE);
    metric_double(writer, NULL, seconds(self->mono_ns - self->bulletin->agent.sampled_mono_ns));
}

/* Those that are one number. */
static const struct {
    size_t family, offset;
} numbers[] = {
    { PROCESSES, offsetof(struct agent_use, processes) },
    { LEFTOVERS, offsetof(struct agent_use, leftover_cgroups) },
    { DIRECTORIES, offsetof(struct agent_use, watched_directories) },
    { DIRECTORIES_REFUSED, offsetof(struct agent_use, directories_refused) },
    { FILES, offsetof(struct agent_use, open_files) },
    { FILES_LIMIT, offsetof(struct agent_use, open_files_limit) },
    { JOBS_REFUSED, offsetof(struct agent_use, jobs_refused) },
    { PROCESSES_REFUSED, offsetof(struct agent_use, processes_refused) },
    { WALKS, offsetof(struct agent_use, scans) },
    { OVERFLOWS, offsetof(struct agent_use, scan_overflows) },
    { EXITS, offsetof(struct agent_use, exits) },
    { EXITS_LOST, offsetof(struct agent_use, exits_lost) },
    { EXITS_UNATTRIBUTED, offsetof(struct agent_use, exits_unattributed) },
};

static void collect_file_limits(const struct agent_use *use, struct metric_writer *writer)
{
    static const struct str limits[FILE_LIMITS] = {
        [FILE_LIMIT_STEP] = STR_INIT("step"),
        [FILE_LIMIT_JOB] = STR_INIT("job"),
        [FILE_LIMIT_ALL] = STR_INIT("all"),
    };

    metric_begin(writer, FILE_LIMIT_HITS);
    for (size_t i = 0; i < FILE_LIMITS; i++)
        metric_u64(writer, METRIC_VALUES(limits[i]), use->file_limit_hits[i]);
}

/* Of a stale sample the gauges are withdrawn; counters are still true. */
static bool is_withdrawn(const struct agent_self *self, size_t family)
{
    return self->is_stale && agent_self_families[family].type == METRIC_GAUGE;
}

static void collect_numbers(const struct agent_self *self, struct metric_writer *writer)
{
    const struct agent_use *use = &self->bulletin->agent;

    metric_begin(writer, SAMPLES);
    metric_u64(writer, METRIC_VALUES(STR("tick")), use->ticks);
    metric_u64(writer, METRIC_VALUES(STR("event")), use->events);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (is_withdrawn(self, numbers[i].family))
            continue;
        metric_begin(writer, numbers[i].family);
        metric_u64(writer, NULL, *(const uint64_t *)((const char *)use + numbers[i].offset));
    }
    collect_file_limits(use, writer);
}

static void collect_gauges(const struct bulletin *bulletin, struct metric_writer *writer)
{
    const struct agent_use *use = &bulletin->agent;

    metric_begin(writer, TICK_DURATION);
    metric_double(writer, NULL, use->tick_seconds);
    metric_begin(writer, TICK_CPU);
    metric_double(writer, NULL, use->tick_cpu_seconds);
    metric_begin(writer, JOBS);
    metric_u64(writer, METRIC_VALUES(STR("running")), use->jobs);
    metric_u64(writer, METRIC_VALUES(STR("ended")), use->ended_jobs);
    metric_begin(writer, EXIT_RECORDS);
    metric_u64(writer, NULL, use->has_exit_records);
    metric_begin(writer, MAY_READ);
    metric_u64(writer, NULL, use->may_read_processes);
    metric_begin(writer, HAS_CGROUPS);
    metric_u64(writer, NULL, use->has_cgroups);
    metric_begin(writer, GPU_UP);
    if (bulletin->gpu_up >= 0)
        metric_u64(writer, NULL, bulletin->gpu_up > 0);
}

static void collect_profiles(const struct agent_self *self, struct metric_writer *writer)
{
    const struct agent_use *use = &self->bulletin->agent;
    static const struct str reasons[PROFILE_REFUSALS] = {
        [PROFILE_FOREIGN] = STR_INIT("sender"),
        [PROFILE_GARBLED] = STR_INIT("garbled"),
        [PROFILE_NEWER] = STR_INIT("version"),
        [PROFILE_FULL] = STR_INIT("full"),
    };

    metric_begin(writer, PROFILE_MESSAGES);
    metric_u64(writer, NULL, use->profile_messages);
    metric_begin(writer, PROFILE_REFUSED);
    for (size_t i = 0; i < PROFILE_REFUSALS; i++)
        metric_u64(writer, METRIC_VALUES(reasons[i]), use->profile_refused[i]);
    if (self->is_stale)
        return;
    metric_begin(writer, PROFILE_STEPS);
    metric_u64(writer, NULL, use->profile_steps);
    metric_begin(writer, PROFILE_VALUES);
    metric_u64(writer, NULL, use->profile_values);
}

static void collect_pushes(const struct agent_self *self, struct metric_writer *writer)
{
    metric_begin(writer, PUSHES);
    metric_u64(writer, NULL, self->pushes);
    metric_begin(writer, PUSH_FAILURES);
    metric_u64(writer, NULL, self->push_failures);
    metric_begin(writer, PUSHES_REPLACED);
    metric_u64(writer, NULL, self->pushes_replaced);
    metric_begin(writer, PUSHES_REFUSED);
    metric_u64(writer, NULL, self->pushes_refused);
    metric_begin(writer, PUSH_UP);
    metric_u64(writer, NULL, self->push_is_up);
    metric_begin(writer, PUSH_DURATION);
    metric_double(writer, NULL, self->push_seconds);
    metric_begin(writer, PUSH_SUCCESS);
    if (self->push_success_wall_ns)
        metric_double(writer, NULL, seconds(self->push_success_wall_ns));
}

static void collect_ingest(const struct agent_self *self, struct metric_writer *writer)
{
    metric_begin(writer, INGEST_UP);
    metric_u64(writer, NULL, self->ingest_is_up);
    metric_begin(writer, INGEST_RECORDS);
    metric_u64(writer, NULL, self->ingest_records);
    metric_begin(writer, INGEST_POSTED);
    metric_u64(writer, NULL, self->ingest_posted);
    metric_begin(writer, INGEST_DROPPED);
    metric_u64(writer, NULL, self->ingest_dropped);
    metric_begin(writer, INGEST_FAILURES);
    metric_u64(writer, NULL, self->ingest_failures);
    metric_begin(writer, INGEST_WAITING);
    metric_u64(writer, METRIC_VALUES(STR("disk")), self->ingest_on_disk);
    metric_u64(writer, METRIC_VALUES(STR("memory")), self->ingest_in_memory);
    metric_begin(writer, INGEST_BYTES);
    metric_u64(writer, NULL, self->ingest_bytes);
    metric_begin(writer, INGEST_SUCCESS);
    if (self->ingest_success_wall_ns)
        metric_double(writer, NULL, seconds(self->ingest_success_wall_ns));
    metric_begin(writer, INGEST_RETENTION);
    metric_u64(writer, NULL, self->ingest_is_retention_paused);
}

void agent_self_collect(const struct agent_self *self, struct metric_writer *writer)
{
    collect_freshness(self, writer);
    if (self->bulletin) {
        collect_numbers(self, writer);
        if (!self->is_stale)
            collect_gauges(self->bulletin, writer);
        if (self->bulletin->agent.hears_profiles)
            collect_profiles(self, writer);
    }
    if (self->is_pushing)
        collect_pushes(self, writer);
    if (self->is_sweeping) {
        metric_begin(writer, SWEPT);
        metric_u64(writer, NULL, self->swept_groups);
        metric_begin(writer, SWEEP_FAILURES);
        metric_u64(writer, NULL, self->sweep_failures);
    }
    if (self->is_handing_in)
        collect_ingest(self, writer);
    program_collect(&self->program, writer, PROGRAM);
}
