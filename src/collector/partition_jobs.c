/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of each partition by state, and their CPUs, memory and GPUs. A job that may start in several
 * partitions counts in each of them while it is pending, so that their sum may exceed the queue. */
#include "collector/job_sums.h"

enum { STATE_TOTAL, CPUS, MEMORY, GPUS, GRES };

static const struct family families[] = {
    [STATE_TOTAL] = { "slurm_partition_job_state_total",
                      METRIC_GAUGE,
                      "Jobs of a partition by state; every task of a job array counts, and a job "
                      "that may start in several partitions in each of them.",
                      { "partition", "state" } },
    [CPUS] = { "slurm_partition_job_cpus",
               METRIC_GAUGE,
               "CPUs of a partition's jobs by state" JOB_SUMS_CPUS_BY_STATE,
               { "partition", "state" } },
    [MEMORY] = { "slurm_partition_job_memory_bytes",
                 METRIC_GAUGE,
                 "Memory of a partition's jobs by state in bytes" JOB_SUMS_BY_STATE,
                 { "partition", "state" } },
    [GPUS] = { "slurm_partition_job_gpus",
               METRIC_GAUGE,
               "GPUs of a partition's jobs by type (none where no type is named) and "
               "state" JOB_SUMS_BY_STATE,
               { "partition", "type", "state" } },
    [GRES] = { "slurm_partition_job_gres",
               METRIC_GAUGE,
               "GRES of a partition's jobs, GPUs included, by name, type (none where no type is "
               "named) and state" JOB_SUMS_BY_STATE,
               { "partition", "gres", "type", "state" } },
};

static const struct job_sums_row rows[] = {
    { STATE_TOTAL, AMOUNT_JOBS, BY_STATE },    { CPUS, AMOUNT_CPUS, BY_STATE },
    { MEMORY, AMOUNT_MEMORY_BYTES, BY_STATE }, { GPUS, AMOUNT_GPUS, BY_STATE },
    { GRES, AMOUNT_GRES, BY_STATE },
};

static struct job_sums_names known(const struct jobs *jobs)
{
    return (struct job_sums_names){ jobs->known_partition, jobs->n_known_partitions };
}

static const struct job_sums_plan plan = {
    .key = offsetof(struct job, partition),
    .cut = groups_cut_at_commas,
    .known = known,
    .rows = rows,
    .n_rows = COUNT(rows),
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    job_sums_collect(&plan, section, writer);
}

const struct collector collector_partition_jobs = {
    .name = "partition_jobs",
    .help = "jobs, CPUs, memory, GPUs and other GRES of each partition by job state",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
