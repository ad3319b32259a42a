/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a simulated job uses: as the rest of the simulation a pure function of the job and the time.
 * Some waste cores, some memory, some let their GPUs idle, most behave. */
#ifndef SONDE_SOURCE_SIM_USE_H
#define SONDE_SOURCE_SIM_USE_H

#include "source/sim.h"

enum { SIM_GPUS_MAX = 16 };

/* On one of its nodes, since its start there. */
struct sim_use {
    double cpu_seconds, user_seconds, system_seconds;
    double memory_bytes, memory_peak_bytes;
    double read_bytes, written_bytes;
    double processes, threads, files;
    size_t n_gpus;
    struct {
        double utilization, memory_bytes, power_watts;
    } gpu[SIM_GPUS_MAX];
};

/* `node` is its number among the job's nodes. All 0 before its start; after its end as at its end.
 */
void sim_use(const struct sim *sim, const struct job *job, struct str tres, size_t node,
             int64_t time, struct sim_use *ret);

#endif
