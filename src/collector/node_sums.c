/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collector/node_sums.h"

#include <math.h>

void node_sums_init(struct node_sums *sums, struct arena *arena)
{
    *sums = (struct node_sums){ .by_state = ARENA_ARRAY(arena, struct node_state_sums,
                                                        n_node_state_words) };
}

/* A sum that does not fit is not known either. */
static void add_u64(struct known_sum *sum, uint64_t value)
{
    if (value == MODEL_UNKNOWN_U64)
        return;
    sum->n++;
    sum->is_over |= __builtin_add_overflow(sum->total, value, &sum->total);
}

static void add_u32(struct known_sum *sum, uint32_t value)
{
    add_u64(sum, value == MODEL_UNKNOWN_U32 ? MODEL_UNKNOWN_U64 : value);
}

/* Slurm knows loads in hundredths; added up as such they stay exact. */
static uint64_t load_hundredths(const struct node *node)
{
    return node->cpu_load >= 0 && node->cpu_load < 1e9 ? (uint64_t)llround(node->cpu_load * 100)
                                                       : MODEL_UNKNOWN_U64;
}

void node_sums_add(struct node_sums *sums, const struct node *node)
{
    struct node_state_sums *by_state = &sums->by_state[node_state_index(node->state)];

    sums->n_nodes++;
    add_u32(&sums->cpus, node->cpus);
    add_u32(&sums->cpus_idle, node->cpus_idle);
    add_u32(&sums->weight, node->weight);
    add_u64(&sums->load_hundredths, load_hundredths(node));
    add_u64(&sums->memory_bytes, node->memory_bytes);
    add_u64(&sums->memory_free_bytes, node->memory_free_bytes);
    add_u64(&sums->memory_alloc_bytes, node->memory_alloc_bytes);
    by_state->n_nodes++;
    add_u32(&by_state->cpus, node->cpus);
    add_u32(&by_state->cpus_alloc, node->cpus_alloc);
    add_u64(&by_state->memory_alloc_bytes, node->memory_alloc_bytes);
}

static void write_sum(struct metric_writer *writer, const struct known_sum *sum, size_t n_nodes,
                      double divisor, const struct str *labels)
{
    if (sum->is_over || (n_nodes && !sum->n))
        return;
    if (divisor > 0)
        metric_double(writer, labels, (double)sum->total / divisor);
    else
        metric_u64(writer, labels, sum->total);
}

void node_sums_write(struct metric_writer *writer, const struct node_sums_row *row,
                     const struct node_sums *sums, const struct str *labels)
{
    const void *sum = (const char *)sums + row->offset;

    write_sum(writer, sum, sums->n_nodes, row->divisor, labels);
}

void node_sums_write_state(struct metric_writer *writer, const struct node_sums_row *row,
                           const struct node_sums *sums, size_t state, const struct str *labels)
{
    const struct node_state_sums *by_state = &sums->by_state[state];
    const void *sum = (const char *)by_state + row->offset;

    write_sum(writer, sum, by_state->n_nodes, row->divisor, labels);
}
