/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs, CPUs and memory of each account by job state, and what its jobs hold. Names as
 * prometheus-slurm-exporter has them, where it has one. */
#include "collector/job_sums.h"

enum {
    STATE_TOTAL,
    STATE_CPU_ALLOC,
    STATE_MEM_ALLOC,
    CPU_ALLOC,
    MEM_ALLOC,
    GPUS,
    GPU_SHARDS,
    GRES,
};

static const struct family families[] = {
    [STATE_TOTAL] = { "slurm_account_job_state_total",
                      METRIC_GAUGE,
                      "Jobs of an account by state; every task of a job array counts.",
                      { "account", "state" } },
    [STATE_CPU_ALLOC] = { "slurm_account_job_state_cpu_alloc",
                          METRIC_GAUGE,
                          "CPUs of an account's jobs by state" JOB_SUMS_CPUS_BY_STATE,
                          { "account", "state" } },
    [STATE_MEM_ALLOC] = { "slurm_account_job_state_mem_alloc",
                          METRIC_GAUGE,
                          "Memory of an account's jobs by state in bytes" JOB_SUMS_BY_STATE,
                          { "account", "state" } },
    [CPU_ALLOC] = { "slurm_account_cpu_alloc",
                    METRIC_GAUGE,
                    "CPUs that an account's jobs hold; a suspended job holds none.",
                    { "account" } },
    [MEM_ALLOC] = { "slurm_account_mem_alloc",
                    METRIC_GAUGE,
                    "Memory that an account's jobs hold, in bytes; a suspended job keeps its own.",
                    { "account" } },
    [GPUS] = { "slurm_account_gpus_allocated",
               METRIC_GAUGE,
               "GPUs that are allocated to an account's jobs, suspended ones included, by type: "
               "none where Slurm names no type.",
               { "account", "type" } },
    [GPU_SHARDS] = { "slurm_account_gpu_shards_allocated",
                     METRIC_GAUGE,
                     "Shards of GPUs that are allocated to an account's jobs, suspended ones "
                     "included, "
                     "by type of the GPU.",
                     { "account", "type" } },
    [GRES] = { "slurm_account_gres_allocated",
               METRIC_GAUGE,
               "GRES that are allocated to an account's jobs, suspended ones included, by name and "
               "type, "
               "GPUs included: type none where the job's TRES name no type.",
               { "account", "gres", "type" } },
};

static const struct job_sums_row rows[] = {
    { STATE_TOTAL, AMOUNT_JOBS, BY_STATE },
    { STATE_CPU_ALLOC, AMOUNT_CPUS, BY_STATE },
    { STATE_MEM_ALLOC, AMOUNT_MEMORY_BYTES, BY_STATE },
    { CPU_ALLOC, AMOUNT_CPUS, HOLDING },
    { MEM_ALLOC, AMOUNT_MEMORY_BYTES, HOLDING },
    { GPUS, AMOUNT_GPUS, HOLDING },
    { GPU_SHARDS, AMOUNT_GPU_SHARDS, HOLDING },
    { GRES, AMOUNT_GRES, HOLDING },
};

static const struct job_sums_plan plan = {
    .key = offsetof(struct job, account),
    .rows = rows,
    .n_rows = COUNT(rows),
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    job_sums_collect(&plan, section, writer);
}

const struct collector collector_accounts = {
    .name = "accounts",
    .help = "jobs, CPUs and memory of each account by job state, and what its jobs hold",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
