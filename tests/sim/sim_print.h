/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the simulated cluster as Slurm's commands would, for tests and benchmarks of parsers. */
#ifndef SONDE_TESTS_SIM_PRINT_H
#define SONDE_TESTS_SIM_PRINT_H

#include "source/sim.h"

/* At any size. Given to `sink` in pieces; a negative return stops. */
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
