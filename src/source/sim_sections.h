/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of the simulated cluster at a time, for sim.c and tests/sim. */
#ifndef SONDE_SOURCE_SIM_SECTIONS_H
#define SONDE_SOURCE_SIM_SECTIONS_H

#include "model/section.h"
#include "source/sim_cluster.h"

#define SIM_VERSION "24.11.5" /* of slurmctld, and of slurmd on most nodes */

void sim_fill_jobs(const struct sim_cluster *cluster, int64_t time, struct section *section);
void sim_fill_nodes(const struct sim_cluster *cluster, int64_t time, struct section *section);
void sim_fill_reservations(const struct sim_cluster *cluster, int64_t time,
                           struct section *section);
void sim_fill_licenses(const struct sim_cluster *cluster, int64_t time, struct section *section);
void sim_fill_diag(const struct sim_cluster *cluster, int64_t time, struct section *section);
void sim_fill_associations(const struct sim_cluster *cluster, int64_t time,
                           struct section *section);
void sim_fill_config(const struct sim_cluster *cluster, int64_t time, struct section *section);
void sim_fill_shares(const struct sim_cluster *cluster, int64_t time, struct section *section);

#endif
