/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is kept of a job for good. (cluster, job id, submit time) names a run: Slurm sets a new
 * submit time when it requeues a job, ids wrap, and clusters overlap. Array tasks and components of
 * heterogeneous jobs are runs of their own. Unknown numbers are MODEL_UNKNOWN_*, unknown times 0,
 * unknown amounts of use NAN, unknown texts empty. All times are UTC seconds. */
#ifndef SONDE_MODEL_RECORD_H
#define SONDE_MODEL_RECORD_H

#include "base/str.h"
#include "model/job.h"

/* One of Slurm's fields that has no place of its own, under the name that sacct(1) gives it. */
struct record_extra {
    struct str name, value;
};

/* Who says it: of what both say, accounting is right. */
enum record_origin {
    RECORD_SEEN,      /* a look at the queue */
    RECORD_ACCOUNTED, /* slurmdbd */
};

struct job_record {
    uint32_t id;
    int64_t submit_time;
    enum record_origin origin;
    int64_t as_of; /* when it was asked: an older look changes nothing that a newer one has said */

    uint32_t array_job_id;  /* 0: not of an array */
    uint32_t array_task_id; /* MODEL_UNKNOWN_U32: none, or waiting together */
    uint32_t tasks;         /* that it stands for: 1, or a waiting array's */
    uint32_t het_job_id;    /* 0: not of a heterogeneous job */
    uint32_t het_offset;
    uint32_t user_id, restarts;
    struct job_state state;
    struct str user, account, qos, name, reservation;
    struct str partition; /* while pending: every one it may start in, "a,b" */
    struct str reason;    /* as Slurm spells it, or empty */
    struct str nodes;     /* host list of a started job */

    struct str tres;           /* allocated; requested while pending; see model/tres */
    struct str tres_requested; /* as accounting has it; while pending the same as `tres` */
    uint32_t cpus, node_count;
    uint64_t memory_bytes;       /* over all nodes */
    uint32_t time_limit_minutes; /* MODEL_UNKNOWN_U32: unlimited or unknown */
    uint64_t priority;
    int64_t eligible_time, start_time, end_time;
    uint64_t suspended_seconds;
    uint32_t exit_code, exit_signal;

    /* What it used, as accounting has it. */
    double cpu_seconds, user_seconds, system_seconds; /* NAN: not told */
    uint64_t memory_peak_bytes;                       /* the largest resident set of any task */
    uint64_t read_bytes, write_bytes;
    uint64_t energy_joules;

    const struct record_extra *extra; /* no name twice */
    size_t n_extra;
};

/* All unknown. */
void job_record_clear(struct job_record *record);

/* It has ended for good: nothing of it but corrections is still to come. */
bool job_record_has_ended(const struct job_record *record);

/* It ended while it was pending: nothing was allocated to it, and what it has of CPUs, memory and
 * TRES was requested. To such a job Slurm gives its end as its start, or none. */
bool job_record_never_ran(const struct job_record *record);

/* Which types of GPU a TRES string names: "a100" if it is one, "a100=2,v100=1" if it is several, in
 * the order of their names, empty if it names none. Writes at most `room` bytes and no NUL; returns
 * the length, 0 if it would not fit. */
size_t tres_gpu_types(struct str tres, char *to, size_t room);

/* What the agent of one node counted of a job until its end there, or until it was asked. */
struct final_record {
    uint32_t job_id;
    struct str node;
    int64_t begin_time, end_time; /* when the agent first and last saw it */
    struct str document;          /* JSON object: docs/store.md */
};

/* What a run used, made of what all sources told of it after its end. */
struct summary_record {
    uint32_t job_id;
    int64_t submit_time;
    struct str document; /* JSON object: docs/store.md; empty: there was nothing to tell */
};

/* A node as it was last seen. */
struct node_record {
    struct str name, state, partitions, features, gres, gres_used, reservation, reason, reason_user,
        version;
    int64_t reason_time;
    uint32_t cpus, cpus_alloc, cpus_idle, cpus_other;
    double cpu_load;
    uint64_t memory_bytes, memory_alloc_bytes, memory_free_bytes;
};

#endif
