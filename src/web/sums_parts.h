/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that add up a cluster share. */
#ifndef SONDE_WEB_SUMS_PARTS_H
#define SONDE_WEB_SUMS_PARTS_H

#include "collector/known.h"
#include "web/sums.h"

/* NAN: there are members but none told, or somebody tells nonsense. */
double sums_known(const struct known_sum *sum, size_t n_members);

/* The partitions are made before the jobs are added to them. */
void sums_add_nodes(struct cluster_sums *sums, const struct section *nodes, struct arena *arena);
void sums_add_jobs(struct cluster_sums *sums, const struct section *jobs, struct arena *arena);

#endif
