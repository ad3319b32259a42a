/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes added up, for the cluster or for a partition. What no node tells is not 0 but absent. */
#ifndef SONDE_COLLECTOR_NODE_SUMS_H
#define SONDE_COLLECTOR_NODE_SUMS_H

#include "collector/collector.h"
#include "collector/known.h"

struct node_sums {
    size_t n_nodes;
    struct known_sum cpus, cpus_idle, load_hundredths, weight;
    struct known_sum memory_bytes, memory_free_bytes, memory_alloc_bytes;
    uint32_t weight_min, weight_max; /* where weight.n is not 0 */
    struct node_state_sums {
        size_t n_nodes;
        struct known_sum cpus, cpus_alloc, memory_alloc_bytes;
    } * by_state; /* by node_state_index */
};

/* A family, and which of the sums it shows. */
struct node_sums_row {
    size_t family;
    size_t offset; /* of a known_sum in node_sums, or in node_state_sums */
    double divisor;
};

void node_sums_init(struct node_sums *sums, struct arena *arena);
void node_sums_add(struct node_sums *sums, const struct node *node);

/* The sum of one row for the family that has been begun; nothing if there are nodes but none told.
 */
void node_sums_write(struct metric_writer *writer, const struct node_sums_row *row,
                     const struct node_sums *sums, const struct str *labels);
void node_sums_write_state(struct metric_writer *writer, const struct node_sums_row *row,
                           const struct node_sums *sums, size_t state, const struct str *labels);

#endif
