/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs, memory, load and nodes of each partition; a node counts in every partition that has it.
 * Names as prometheus-slurm-exporter has them. */
#include "collector/collector.h"

enum {
    TOTAL_CPUS,
    IDLE_CPUS,
    CPU_LOAD,
    REAL_MEM,
    FREE_MEM,
    WEIGHT,
    ALLOC_CPUS,
    ALLOC_MEM,
    NODE_COUNT,
};

static const struct family families[] = {
    [TOTAL_CPUS] = { "slurm_partition_total_cpus",
                     METRIC_GAUGE,
                     "CPUs of a partition's nodes.",
                     { "partition" } },
    [IDLE_CPUS] = { "slurm_partition_idle_cpus",
                    METRIC_GAUGE,
                    "CPUs of a partition's nodes that are free and usable.",
                    { "partition" } },
    [CPU_LOAD] = { "slurm_partition_cpu_load",
                   METRIC_GAUGE,
                   "Sum of the load averages of a partition's nodes that report one.",
                   { "partition" } },
    [REAL_MEM] = { "slurm_partition_real_mem",
                   METRIC_GAUGE,
                   "Memory of a partition's nodes in bytes.",
                   { "partition" } },
    [FREE_MEM] = { "slurm_partition_free_mem",
                   METRIC_GAUGE,
                   "Memory that a partition's nodes report as free, in bytes.",
                   { "partition" } },
    [WEIGHT] = { "slurm_partition_weight",
                 METRIC_GAUGE,
                 "Sum of the weights of a partition's nodes. Slurm fills nodes of low weight "
                 "first; "
                 "the sum itself has no meaning but is what dashboards know.",
                 { "partition" } },
    [ALLOC_CPUS] = { "slurm_partition_alloc_cpus",
                     METRIC_GAUGE,
                     "CPUs allocated to jobs on a partition's nodes, by node state.",
                     { "partition", "state" } },
    [ALLOC_MEM] = { "slurm_partition_alloc_mem",
                    METRIC_GAUGE,
                    "Memory allocated to jobs on a partition's nodes in bytes, by node state.",
                    { "partition", "state" } },
    [NODE_COUNT] = { "slurm_partition_node_count",
                     METRIC_GAUGE,
                     "Nodes of a partition by state, in sinfo's words.",
                     { "partition", "state" } },
};

struct state_sums {
    uint64_t nodes, cpus_alloc, memory_alloc;
};

struct sums {
    uint64_t cpus, cpus_idle, memory, memory_free, weight;
    uint64_t load_hundredths;
    struct state_sums *by_state;
};

static void add_node(struct sums *sums, const struct node *node)
{
    struct state_sums *by_state = &sums->by_state[node_state_index(node->state)];

    by_state->nodes++;
    if (node->cpus != MODEL_UNKNOWN_U32)
        sums->cpus += node->cpus;
    if (node->cpus_idle != MODEL_UNKNOWN_U32)
        sums->cpus_idle += node->cpus_idle;
    if (node->cpus_alloc != MODEL_UNKNOWN_U32)
        by_state->cpus_alloc += node->cpus_alloc;
    if (node->memory_bytes != MODEL_UNKNOWN_U64)
        sums->memory += node->memory_bytes;
    if (node->memory_free_bytes != MODEL_UNKNOWN_U64)
        sums->memory_free += node->memory_free_bytes;
    if (node->memory_alloc_bytes != MODEL_UNKNOWN_U64)
        by_state->memory_alloc += node->memory_alloc_bytes;
    if (node->weight != MODEL_UNKNOWN_U32)
        sums->weight += node->weight;
    sums->load_hundredths += node_load_hundredths(node);
}

static void write_total(struct metric_writer *writer, size_t family, const struct str *partition,
                        const struct sums *sums)
{
    switch (family) {
    case TOTAL_CPUS:
        metric_u64(writer, partition, sums->cpus);
        break;
    case IDLE_CPUS:
        metric_u64(writer, partition, sums->cpus_idle);
        break;
    case CPU_LOAD:
        metric_double(writer, partition, (double)sums->load_hundredths / 100);
        break;
    case REAL_MEM:
        metric_u64(writer, partition, sums->memory);
        break;
    case FREE_MEM:
        metric_u64(writer, partition, sums->memory_free);
        break;
    case WEIGHT:
        metric_u64(writer, partition, sums->weight);
        break;
    }
}

static void write_by_state(struct metric_writer *writer, size_t family, struct str partition,
                           const struct sums *sums)
{
    for (size_t i = 0; i < n_node_state_words; i++) {
        const struct state_sums *by_state = &sums->by_state[i];
        uint64_t value = family == ALLOC_CPUS  ? by_state->cpus_alloc
                         : family == ALLOC_MEM ? by_state->memory_alloc
                                               : by_state->nodes;

        if (by_state->nodes)
            metric_u64(writer, METRIC_VALUES(partition, node_state_words[i]), value);
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct nodes *nodes = &section->nodes;
    struct arena arena = { 0 };
    struct sums *sums = ARENA_ARRAY(&arena, struct sums, nodes->n_partitions);

    for (size_t i = 0; i < nodes->n_partitions; i++)
        sums[i].by_state = ARENA_ARRAY(&arena, struct state_sums, n_node_state_words);
    for (size_t i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->node[i];

        for (uint32_t k = 0; k < node->n_partitions; k++)
            add_node(&sums[nodes->membership[node->first_partition + k]], node);
    }
    for (size_t family = TOTAL_CPUS; family <= NODE_COUNT; family++) {
        metric_begin(writer, family);
        for (size_t i = 0; i < nodes->n_partitions; i++) {
            struct str name = section_text(section, nodes->partition[i].name);

            if (family < ALLOC_CPUS)
                write_total(writer, family, &name, &sums[i]);
            else
                write_by_state(writer, family, name, &sums[i]);
        }
    }
    arena_clear(&arena);
}

const struct collector collector_partitions = {
    .name = "partitions",
    .help = "CPUs, memory, load and nodes of each partition",
    .kind = KIND_NODES,
    .families = families,
    .n_families = sizeof(families) / sizeof(families[0]),
    .collect = collect,
};
