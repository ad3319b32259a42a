/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up nodes of the cluster or of a partition. */
#include "collector/node_sums.h"

#include <math.h>

void node_sums_init(struct node_sums *sums, struct arena *arena)
{
    *sums = (struct node_sums){ .by_state = ARENA_ARRAY(arena, struct node_state_sums,
                                                        n_node_state_words) };
}

static void add_u32(struct known_sum *sum, uint32_t value)
{
    known_sum_add(sum, known_u32(value));
}

/* Slurm knows loads in hundredths; added up as such they stay exact. */
static uint64_t load_hundredths(const struct node *node)
{
    return node->cpu_load >= 0 && node->cpu_load < 1e9 ? (uint64_t)llround(node->cpu_load * 100)
                                                       : MODEL_UNKNOWN_U64;
}

static void add_weight(struct node_sums *sums, uint32_t weight)
{
    if (weight == MODEL_UNKNOWN_U32)
        return;
    if (!sums->weight.n || weight < sums->weight_min)
        sums->weight_min = weight;
    if (!sums->weight.n || weight > sums->weight_max)
        sums->weight_max = weight;
    add_u32(&sums->weight, weight);
}

void node_sums_add(struct node_sums *sums, const struct node *node)
{
    struct node_state_sums *by_state = &sums->by_state[node_state_index(node->state)];

    sums->n_nodes++;
    add_u32(&sums->cpus, node->cpus);
    add_u32(&sums->cpus_idle, node->cpus_idle);
    add_weight(sums, node->weight);
    known_sum_add(&sums->load_hundredths, load_hundredths(node));
    known_sum_add(&sums->memory_bytes, node->memory_bytes);
    known_sum_add(&sums->memory_free_bytes, node->memory_free_bytes);
    known_sum_add(&sums->memory_alloc_bytes, node->memory_alloc_bytes);
    by_state->n_nodes++;
    add_u32(&by_state->cpus, node->cpus);
    add_u32(&by_state->cpus_alloc, node->cpus_alloc);
    known_sum_add(&by_state->memory_alloc_bytes, node->memory_alloc_bytes);
}

void node_sums_write(struct metric_writer *writer, const struct node_sums_row *row,
                     const struct node_sums *sums, const struct str *labels)
{
    const void *sum = (const char *)sums + row->offset;

    known_sum_write(writer, sum, sums->n_nodes, row->divisor, labels);
}

void node_sums_write_state(struct metric_writer *writer, const struct node_sums_row *row,
                           const struct node_sums *sums, size_t state, const struct str *labels)
{
    const struct node_state_sums *by_state = &sums->by_state[state];
    const void *sum = (const char *)by_state + row->offset;

    known_sum_write(writer, sum, by_state->n_nodes, row->divisor, labels);
}
