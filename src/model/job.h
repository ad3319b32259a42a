/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A record of squeue: a job, an array task, a component of a heterogeneous job, or the tasks of an
 * array that still wait together. Unknown numbers are MODEL_UNKNOWN_*, unknown times 0. */
#ifndef SONDE_MODEL_JOB_H
#define SONDE_MODEL_JOB_H

#include "model/state.h"
#include "model/symbols.h"
#include "model/wait.h"

#define MODEL_UNKNOWN_U32 UINT32_MAX
#define MODEL_UNKNOWN_U64 UINT64_MAX

struct job {
    uint32_t id;            /* Slurm's raw job id */
    uint32_t array_job_id;  /* 0: not of an array */
    uint32_t array_task_id; /* MODEL_UNKNOWN_U32: none, or waiting together */
    uint32_t tasks;         /* jobs that this record stands for: 1, or a waiting array's tasks */
    uint32_t het_job_id;    /* 0: not of a heterogeneous job */
    uint32_t het_offset;
    uint32_t user_id; /* MODEL_UNKNOWN_U32: unknown */
    uint32_t restarts;
    struct job_state state;
    symbol user, account, qos, name, reservation, licenses, features;
    symbol partition;            /* while pending: every one it may start in, "a,b" */
    symbol reason;               /* as Slurm spells it, without parentheses; 0 when there is none */
    symbol nodes;                /* host list of a started job */
    symbol alloc_node;           /* the host it was submitted from, as its user's program told it */
    symbol tres;                 /* allocated; requested while pending; see model/tres */
    uint32_t cpus;               /* likewise; of one task */
    uint32_t node_count;         /* likewise */
    uint64_t memory_bytes;       /* likewise, over all nodes */
    uint32_t time_limit_minutes; /* MODEL_UNKNOWN_U32: unlimited or unknown */
    symbol gres;                 /* allocated, and not named by tres; see model/job_gres */
    uint64_t priority;
    int64_t submit_time, eligible_time, start_time, end_time; /* UTC seconds */
};

/* What a job holds of one of its nodes; see model/job_gpus. */
struct job_gpus {
    uint32_t job_id;
    symbol node;
    symbol gpus; /* their indexes on that node, "0-1,3" */
};

struct jobs {
    struct job *job;
    size_t n;
    struct job_gpus *gpus; /* of jobs of which the source tells it */
    size_t n_gpus;
    bool lacks_features; /* the source does not tell what nodes a job asks for */
    bool lacks_qos;      /* nor its QOS */
    size_t n_cut;        /* arrays of whose waiting tasks only the first were told and counted */

    /* Partitions and QOS that are there, as far as is known, with jobs or without. */
    symbol *known_partition, *known_qos;
    size_t n_known_partitions, n_known_qos;
    struct wait *wait; /* one for each partition in which a job has started, or may */
    size_t n_waits;
};

#endif
