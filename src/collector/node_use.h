/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a node has is allocated to jobs, or idle, or unusable: free, but on a node that takes no
 * jobs. The three add up to all. */
#ifndef SONDE_COLLECTOR_NODE_USE_H
#define SONDE_COLLECTOR_NODE_USE_H

#include "collector/node_gres.h"

enum node_use { USE_ALLOCATED, USE_IDLE, USE_UNUSABLE, NODE_USES };
extern const struct str node_use_words[NODE_USES]; /* "allocated", … */

/* What node_takes_jobs(state) says no to, for the HELP of families. */
#define NODES_WITHOUT_JOBS                                                                         \
    "nodes that take no jobs: down, of state error, future or unknown, draining, failing, not "    \
    "responding, in maintenance, about to be powered down, rebooting, blocked, external, or not "  \
    "as configured."

/* MODEL_UNKNOWN_U64 for what is not told. */
void node_use_cpus(const struct node *node, uint64_t ret[NODE_USES]);
void node_use_memory(const struct node *node, uint64_t ret[NODE_USES]); /* bytes */
void node_use_gres(const struct node *node, const struct node_gres_item *gpu,
                   uint64_t ret[NODE_USES]);

/* Any that are there; what is in use although nobody told how many there are counts. */
bool node_has_gpus(const struct node_gres *gpus);

/* Of idle GPUs beside that many idle CPUs: those that no job can get, as no CPU or memory is left.
 * What is not known strands nothing. */
uint64_t node_stranded_gpus(const struct node *node, uint64_t idle_gpus, uint64_t idle_cpus);

/* Of the idle CPUs of a node that has GPUs: all, if none of these is free. */
uint64_t node_stranded_cpus(const struct node_gres *gpus, uint64_t idle_cpus);

/* In which reservation it is now: None, or unknown where Slurm tells only that it is in one. */
struct str node_reservation(const struct section *section, const struct node *node);

#endif
