/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of all jobs, by process id, with what each was last seen to use. */
#ifndef SONDE_AGENT_PROCESSES_H
#define SONDE_AGENT_PROCESSES_H

#include "source/proc.h"

struct agent_step;

/* What is used up by processes that come and go, as a sum that never falls. */
struct sums {
    struct io_use io;
    uint64_t user_ns, system_ns; /* where no cgroup tells */
};

struct process {
    pid_t pid, parent;
    uint64_t start_ticks;    /* with the pid, this names it */
    struct agent_step *step; /* that it is of */
    struct io_use io;        /* of its threads that live */
    struct sums whole;       /* with what it has got from threads and children that have ended */
    uint64_t cpu_ns;         /* its own */
    uint64_t exit_cpu_ns;    /* of its threads that have ended */
    uint32_t round;          /* the last one in which it was seen */
    int32_t pidfd;           /* tells when it ends; -1: nobody waits for that */
    uint64_t unnamed_cpu_ns; /* used before it had its present name */
    uint8_t name;            /* its place among the names of its job */
    bool has_name;
    bool is_stepd;     /* belongs to Slurm, not to the job */
    bool has_ended;    /* but nobody has waited for it yet */
    bool is_by_thread; /* others' I/O is in /proc/PID/io too: threads are read one by one */

    uint32_t next; /* in its bucket; the table's own */
};

struct processes;

struct processes *processes_new(size_t max);
struct processes *processes_free(struct processes *processes);

/* NULL: there is none, or it was another process of that number. */
struct process *processes_find(const struct processes *processes, pid_t pid);

/* A new one in the place of any that had its number; NULL past the ceiling. Valid until the next
 * one is added. */
struct process *processes_add(struct processes *processes, pid_t pid);
void processes_remove(struct processes *processes, struct process *process);

/* Calls for each; the callback may remove the one that it is given. */
void processes_each(struct processes *processes, void (*visit)(void *ctx, struct process *process),
                    void *ctx);

size_t processes_count(const struct processes *processes);

/* Gives memory back that is no longer needed. Pointers to processes end here. */
void processes_trim(struct processes *processes);

#endif
