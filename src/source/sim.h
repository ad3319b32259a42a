/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A simulated cluster of any size: a pure function of its seed and the time. Nothing is stored: who
 * runs where at any moment, past or future, is computed. For --demo, tests and benchmarks. */
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

/* The same cluster as Slurm's commands would print it, so that every parser can be fed at any size.
 * Given to `sink` in pieces; a negative return stops. */
typedef int sim_sink(void *ctx, struct str piece);
enum sim_format {
    SIM_SQUEUE_TEXT, /* the fields of source/cli, tasks that wait together in one record; token: the
                      * one that ends each field */
    SIM_SINFO_TEXT,
    SIM_SQUEUE_JSON_38, /* squeue --json of Slurm 22.05 */
    SIM_SQUEUE_JSON_42, /* of 24.11 */
    SIM_NODES_JSON_38,  /* sinfo --json of 22.05 */
    SIM_NODES_JSON_42,  /* scontrol --json show nodes of 24.11 */
    SIM_SQUEUE_LINES,   /* squeue -r -o and sinfo -o as prometheus-slurm-exporter asks them: the */
    SIM_SINFO_LINES,    /* formats of source/foreign.h */
};
int sim_print(const struct sim *sim, enum sim_format format, struct str token, int64_t time,
              sim_sink *sink, void *ctx);

#endif
