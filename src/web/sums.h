/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a cluster has and does, added up. What nobody told is NAN, not 0. Texts are of the sections.
 */
#ifndef SONDE_WEB_SUMS_H
#define SONDE_WEB_SUMS_H

#include "model/section.h"

/* As collector/node_use: the last three add up to the first. */
struct sums_amount {
    double total, allocated, idle, unusable;
};

struct sums_gpu {
    struct str type; /* empty: none is told */
    struct sums_amount amount;
};

/* What jobs hold, or ask for while they wait. */
struct sums_jobs {
    double jobs, cpus, gpus, memory_bytes; /* every task of an array is a job */
};

struct sums_by_word {
    struct str word;
    struct sums_jobs jobs;
};

/* Of a user, an account or a partition. */
struct sums_group {
    struct str name;
    struct sums_jobs holding, pending;
};

struct sums_state {
    struct str word; /* as sinfo's StateLong */
    uint64_t nodes;
    double cpus;
};

struct sums_partition {
    const struct partition *partition;
    struct sums_group jobs;
    struct sums_amount cpus, memory_bytes;
    double gpus, gpus_allocated;
    uint64_t nodes, nodes_unusable;
};

struct cluster_sums {
    struct sums_amount cpus, memory_bytes;
    struct sums_gpu *gpu; /* in the order of their types */
    size_t n_gpus;
    double stranded_gpus;     /* free, but no CPU or memory is left beside them */
    double stranded_cpus;     /* free, on a node with GPUs of which none is */
    struct sums_state *state; /* of nodes: those that any has, the most first */
    size_t n_states;
    const struct node **broken; /* those that take no jobs, the latest reason first */
    size_t n_broken;
    bool has_jobs;                           /* they were told, be it that there are none */
    struct sums_by_word *job_state, *reason; /* jobs by state; those that wait, by why */
    size_t n_job_states, n_reasons;
    struct sums_partition *partition; /* in Slurm's order */
    size_t n_partitions;
    struct sums_group *user, *account; /* those that hold most CPUs first */
    size_t n_users, n_accounts;
};

/* `nodes`, `jobs`: either may be NULL. Everything lives in the arena. */
void cluster_sums_make(struct cluster_sums *ret, const struct section *nodes,
                       const struct section *jobs, struct arena *arena);

#endif
