/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What traced jobs say of their own processes, added up over a job's hosts and tasks, beside what
 * Slurm has allocated to them. */
#ifndef SONDE_MODEL_TRACE_H
#define SONDE_MODEL_TRACE_H

#include "model/job.h"

struct traced_job {
    uint32_t id;
    symbol user;        /* the job's owner, as Slurm says */
    double cpu_percent; /* 100 is one core; NAN: not told, as all of these */
    double memory_bytes, read_bytes, write_bytes, threads;
    uint32_t allocated_cpus; /* MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U64: unknown */
    uint64_t allocated_memory_bytes;
    uint32_t first_host, n_hosts; /* a run of traces.host */
};

struct traced_host {
    symbol name;
    int64_t pid; /* the lowest of those that were told of */
};

struct traces {
    struct traced_job *job;
    size_t n;
    struct traced_host *host;
    size_t n_hosts;
};

#endif
