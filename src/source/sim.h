/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A simulated cluster of any size: a pure function of its seed and the time. Nothing is stored: who
 * runs where at any moment, past or future, is computed. For --demo, tests and benchmarks;
 * tests/sim prints it as Slurm's commands would. */
#ifndef SONDE_SOURCE_SIM_H
#define SONDE_SOURCE_SIM_H

#include "base/buf.h"
#include "base/err.h"
#include "model/section.h"

struct sim {
    uint64_t nodes; /* default 128 */
    uint64_t jobs;  /* records in the queue, about; default 8 a node */
    uint64_t seed;  /* default 1 */
    uint64_t users; /* default: grows with the nodes */
};

/* "nodes=10000,jobs=100000,seed=1"; each may be left out. */
int sim_parse(struct str settings, struct sim *ret, struct err *err);

/* The section as the cluster is at that wall time (UTC seconds). */
struct section *sim_section(const struct sim *sim, enum kind kind, int64_t time);

#endif
