/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of each QOS by state, and their CPUs, memory and GPUs. */
#include "collector/job_sums.h"

enum { JOBS, CPUS, MEMORY, GPUS, GRES };

static const struct family families[] = {
    [JOBS] = { "slurm_qos_jobs",
               METRIC_GAUGE,
               "Jobs of a QOS by state; every task of a job array counts.",
               { "qos", "state" } },
    [CPUS] = { "slurm_qos_job_cpus",
               METRIC_GAUGE,
               "CPUs of a QOS's jobs by state" JOB_SUMS_CPUS_BY_STATE,
               { "qos", "state" } },
    [MEMORY] = { "slurm_qos_job_memory_bytes",
                 METRIC_GAUGE,
                 "Memory of a QOS's jobs by state in bytes" JOB_SUMS_BY_STATE,
                 { "qos", "state" } },
    [GPUS] = { "slurm_qos_job_gpus",
               METRIC_GAUGE,
               "GPUs of a QOS's jobs by type (none where no type is named) and "
               "state" JOB_SUMS_BY_STATE,
               { "qos", "type", "state" } },
    [GRES] = { "slurm_qos_job_gres",
               METRIC_GAUGE,
               "GRES of a QOS's jobs, GPUs included, by name, type (none where no type is named) "
               "and state" JOB_SUMS_BY_STATE,
               { "qos", "gres", "type", "state" } },
};

static const struct job_sums_row rows[] = {
    { JOBS, AMOUNT_JOBS, BY_STATE },           { CPUS, AMOUNT_CPUS, BY_STATE },
    { MEMORY, AMOUNT_MEMORY_BYTES, BY_STATE }, { GPUS, AMOUNT_GPUS, BY_STATE },
    { GRES, AMOUNT_GRES, BY_STATE },
};

static struct job_sums_names known(const struct jobs *jobs)
{
    return (struct job_sums_names){ jobs->known_qos, jobs->n_known_qos };
}

static const struct job_sums_plan plan = {
    .key = offsetof(struct job, qos),
    .known = known,
    .rows = rows,
    .n_rows = COUNT(rows),
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    if (!section->jobs.lacks_qos)
        job_sums_collect(&plan, section, writer);
}

const struct collector collector_qos = {
    .name = "qos",
    .help = "jobs, CPUs, memory, GPUs and other GRES of each QOS by job state",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
