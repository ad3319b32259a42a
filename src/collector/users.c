/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs, CPUs and memory of each user by job state, and the GPUs that they hold. Names as
 * prometheus-slurm-exporter has them, where it has one. */
#include "collector/job_sums.h"

enum { STATE_TOTAL, CPU_ALLOC, MEM_ALLOC, GPUS, GPU_SHARDS, GRES };

static const struct family families[] = {
    [STATE_TOTAL] = { "slurm_user_state_total",
                      METRIC_GAUGE,
                      "Jobs of a user by state; every task of a job array counts.",
                      { "username", "state" } },
    [CPU_ALLOC] = { "slurm_user_cpu_alloc",
                    METRIC_GAUGE,
                    "CPUs of a user's jobs by state" JOB_SUMS_CPUS_BY_STATE,
                    { "username", "state" } },
    [MEM_ALLOC] = { "slurm_user_mem_alloc",
                    METRIC_GAUGE,
                    "Memory of a user's jobs by state in bytes" JOB_SUMS_BY_STATE,
                    { "username", "state" } },
    [GPUS] = { "slurm_user_gpus_allocated",
               METRIC_GAUGE,
               "GPUs that are allocated to a user's jobs, suspended ones included, by type: none "
               "where Slurm names no type.",
               { "user", "type" } },
    [GPU_SHARDS] = { "slurm_user_gpu_shards_allocated",
                     METRIC_GAUGE,
                     "Shards of GPUs that are allocated to a user's jobs, suspended ones included, "
                     "by "
                     "type of the GPU.",
                     { "user", "type" } },
    [GRES] = { "slurm_user_gres_allocated",
               METRIC_GAUGE,
               "GRES that are allocated to a user's jobs, suspended ones included, by name and "
               "type, "
               "GPUs included: type none where the job's TRES name no type.",
               { "user", "gres", "type" } },
};

static const struct job_sums_row rows[] = {
    { STATE_TOTAL, AMOUNT_JOBS, BY_STATE },       { CPU_ALLOC, AMOUNT_CPUS, BY_STATE },
    { MEM_ALLOC, AMOUNT_MEMORY_BYTES, BY_STATE }, { GPUS, AMOUNT_GPUS, HOLDING },
    { GPU_SHARDS, AMOUNT_GPU_SHARDS, HOLDING },   { GRES, AMOUNT_GRES, HOLDING },
};

static const struct job_sums_plan plan = {
    .key = offsetof(struct job, user),
    .rows = rows,
    .n_rows = COUNT(rows),
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    job_sums_collect(&plan, section, writer);
}

const struct collector collector_users = {
    .name = "users",
    .help = "jobs, CPUs and memory of each user by job state, and their GPUs and other GRES",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
