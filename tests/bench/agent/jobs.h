/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs made of real cgroups and real processes, for the agent to look at. */
#ifndef SONDE_TESTS_BENCH_AGENT_JOBS_H
#define SONDE_TESTS_BENCH_AGENT_JOBS_H

#include "layout.h"

#include <sys/types.h>

struct jobs {
    const char *root; /* "/sys/fs/cgroup" */
    const char *work; /* has slurmstepd, simulate and the directory scratch */
    unsigned n, processes;
    pid_t *stepds; /* COUNT(steps) of each job */
};

/* All of them, with so many processes each, and waits until they are as they will stay. */
void jobs_start(struct jobs *jobs);
void jobs_end(struct jobs *jobs);

/* So many more, one after the other: one step with one process that soon ends. */
void jobs_pass(struct jobs *jobs, unsigned first, unsigned n);

/* The user of a job: one of a few that the host knows. */
unsigned jobs_uid(unsigned job);

enum { FIRST_JOB = 1001, BATCH_PROCESSES = 1 };

/* How many tasks that step of each job has. */
unsigned jobs_tasks(const struct jobs *jobs, size_t step);

#endif
