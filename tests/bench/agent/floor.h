/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel takes for the files that the agent reads, whoever reads them: each is opened,
 * read and closed, and nothing is made of it. */
#ifndef SONDE_TESTS_BENCH_AGENT_FLOOR_H
#define SONDE_TESTS_BENCH_AGENT_FLOOR_H

#include "jobs.h"

struct floor;

enum floor_kind {
    FLOOR_CGROUPS, /* of jobs, and the memory events of their steps and tasks */
    FLOOR_ALL,     /* and their processes with their open files */
    FLOOR_STEPS,   /* and CPU time and memory of steps and tasks */
    FLOORS,
};

struct floor *floor_new(enum floor_kind kind, const struct jobs *jobs);

/* As the agent's tick `turn` does: costly things in every fourth, settings in every eighth. */
void floor_pass(const struct floor *floor, unsigned turn);

enum { FLOOR_TURNS = 8 };

/* How many files of each kind. */
struct floor_counts {
    size_t each, fourth, eighth, descriptors;
};
struct floor_counts floor_counts(const struct floor *floor);

/* A walk through all job directories with their lists of processes, and twelve files of each job:
 * what was measured beside the peers on the machine where their times were taken. */
void floor_of_peers(const struct jobs *jobs);

#endif
