/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cluster as a whole: CPUs, memory, load and nodes, each node counted once. Names as
 * prometheus-slurm-exporter has them. */
#include "collector/collector.h"

enum {
    CPUS_TOTAL,
    CPUS_IDLE,
    CPU_LOAD,
    CPUS_PER_STATE,
    NODES_PER_STATE,
    MEM_REAL,
    MEM_FREE,
    MEM_ALLOC,
};

static const struct family families[] = {
    [CPUS_TOTAL] = { "slurm_cpus_total", METRIC_GAUGE, "CPUs of all nodes.", { NULL } },
    [CPUS_IDLE] = { "slurm_cpus_idle",
                    METRIC_GAUGE,
                    "CPUs that are free and usable, as sinfo counts them.",
                    { NULL } },
    [CPU_LOAD] = { "slurm_cpu_load",
                   METRIC_GAUGE,
                   "Sum of the load averages of all nodes that report one.",
                   { NULL } },
    [CPUS_PER_STATE] = { "slurm_cpus_per_state",
                         METRIC_GAUGE,
                         "CPUs of the nodes in a state, allocated or not.",
                         { "state" } },
    [NODES_PER_STATE] = { "slurm_node_count_per_state",
                          METRIC_GAUGE,
                          "Nodes by state, in sinfo's words.",
                          { "state" } },
    [MEM_REAL] = { "slurm_mem_real", METRIC_GAUGE, "Memory of all nodes in bytes.", { NULL } },
    [MEM_FREE] = { "slurm_mem_free",
                   METRIC_GAUGE,
                   "Memory that the operating systems of the nodes report as free, in bytes.",
                   { NULL } },
    [MEM_ALLOC] = { "slurm_mem_alloc",
                    METRIC_GAUGE,
                    "Memory that Slurm has allocated to jobs, in bytes.",
                    { NULL } },
};

struct sums {
    uint64_t cpus, cpus_idle;
    uint64_t memory, memory_free, memory_alloc;
    uint64_t load_hundredths;
};

static uint64_t known_u32(uint32_t value)
{
    return value == MODEL_UNKNOWN_U32 ? 0 : value;
}

static uint64_t known_u64(uint64_t value)
{
    return value == MODEL_UNKNOWN_U64 ? 0 : value;
}

static void collect_states(const struct nodes *nodes, struct metric_writer *writer)
{
    uint64_t *cpus = heap_alloc(n_node_state_words * sizeof(*cpus));
    uint64_t *count = heap_alloc(n_node_state_words * sizeof(*count));

    for (size_t i = 0; i < nodes->n; i++) {
        size_t state = node_state_index(nodes->node[i].state);

        cpus[state] += known_u32(nodes->node[i].cpus);
        count[state]++;
    }
    metric_begin(writer, CPUS_PER_STATE);
    for (size_t i = 0; i < n_node_state_words; i++)
        metric_u64(writer, &node_state_words[i], cpus[i]);
    metric_begin(writer, NODES_PER_STATE);
    for (size_t i = 0; i < n_node_state_words; i++)
        metric_u64(writer, &node_state_words[i], count[i]);
    free(cpus);
    free(count);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct sums sums = { 0 };

    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        sums.cpus += known_u32(node->cpus);
        sums.cpus_idle += known_u32(node->cpus_idle);
        sums.memory += known_u64(node->memory_bytes);
        sums.memory_free += known_u64(node->memory_free_bytes);
        sums.memory_alloc += known_u64(node->memory_alloc_bytes);
        sums.load_hundredths += node_load_hundredths(node);
    }
    metric_begin(writer, CPUS_TOTAL);
    metric_u64(writer, NULL, sums.cpus);
    metric_begin(writer, CPUS_IDLE);
    metric_u64(writer, NULL, sums.cpus_idle);
    metric_begin(writer, CPU_LOAD);
    metric_double(writer, NULL, (double)sums.load_hundredths / 100);
    collect_states(&section->nodes, writer);
    metric_begin(writer, MEM_REAL);
    metric_u64(writer, NULL, sums.memory);
    metric_begin(writer, MEM_FREE);
    metric_u64(writer, NULL, sums.memory_free);
    metric_begin(writer, MEM_ALLOC);
    metric_u64(writer, NULL, sums.memory_alloc);
}

const struct collector collector_nodes = {
    .name = "nodes",
    .help = "CPUs, memory, load and nodes of the whole cluster, and by node state",
    .kind = KIND_NODES,
    .families = families,
    .n_families = sizeof(families) / sizeof(families[0]),
    .collect = collect,
};
