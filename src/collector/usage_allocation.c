/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose the jobs on this node are and what they were given. Users and accounts are labels of one
 * family only, to be joined by job_id and node, so that series stay few. */
#include "base/clock.h"
#include "collector/usage_amounts.h"

enum { INFO, FIRST_SEEN, CPUS, MEMORY, GPUS };

static const struct family families[] = {
    [INFO] = { "sonde_job_info",
               METRIC_GAUGE,
               "Always 1; the labels tell whose job it is. A user without a name is a number.",
               { USAGE_JOB_LABELS, "user", "account" } },
    [FIRST_SEEN] = { "sonde_job_first_seen_timestamp_seconds",
                     METRIC_GAUGE,
                     "When the agent first saw the job: when it began on this node, or when the "
                     "agent was started, if that was later.",
                     { USAGE_JOB_LABELS } },
    [CPUS] = { "sonde_job_cpus_allocated",
               METRIC_GAUGE,
               "CPUs of this node that are allocated to the job.",
               { USAGE_JOB_LABELS } },
    [MEMORY] = { "sonde_job_memory_allocated_bytes",
                 METRIC_GAUGE,
                 "Memory of this node that is allocated to the job, used or not.",
                 { USAGE_JOB_LABELS } },
    [GPUS] = { "sonde_job_gpus_allocated",
               METRIC_GAUGE,
               "GPUs of this node that are allocated to the job; instances of one that is shared "
               "out (MIG) count each.",
               { USAGE_JOB_LABELS } },
};

#define AMOUNT(id, member) .family = (id), .offset = offsetof(struct job_use, member)

static const struct usage_amount amounts[] = {
    { AMOUNT(CPUS, allocated_cpus), .remains = true },
    { AMOUNT(MEMORY, allocated_memory_bytes), .remains = true },
    { AMOUNT(GPUS, allocated_gpus), .remains = true },
};

static void write_infos(const struct usage *usage, struct metric_writer *writer)
{
    metric_begin(writer, INFO);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        metric_u64(writer,
                   METRIC_VALUES(USAGE_JOB_VALUES(job), str_of(job->user), str_of(job->account)),
                   1);
    }
}

static void write_first_seen(const struct usage *usage, struct metric_writer *writer)
{
    metric_begin(writer, FIRST_SEEN);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        if (job->seen_wall_ns > 0)
            metric_double(writer, METRIC_VALUES(USAGE_JOB_VALUES(job)),
                          (double)(job->seen_wall_ns / NS_PER_MS) / PER_MILLI);
    }
}

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    write_infos(usage, writer);
    write_first_seen(usage, writer);
    usage_amounts_write(usage, amounts, COUNT(amounts), usage_amount_of_job, writer);
}

const struct usage_collector usage_collector_allocation = {
    .name = "allocation",
    .needs = USAGE_OWNER | USAGE_CGROUP,
    .help = "whose each job is, and what it was allocated on this node",
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
