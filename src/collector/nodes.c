/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cluster as a whole: CPUs, memory, load and nodes, each node counted once. Names as
 * prometheus-slurm-exporter has them. */
#include "collector/node_sums.h"

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
    [CPUS_TOTAL] = { "slurm_cpus_total",
                     METRIC_GAUGE,
                     "CPUs of all nodes that are in a partition.",
                     { NULL } },
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
    [MEM_REAL] = { "slurm_mem_real",
                   METRIC_GAUGE,
                   "Memory of all nodes that are in a partition, in bytes.",
                   { NULL } },
    [MEM_FREE] = { "slurm_mem_free",
                   METRIC_GAUGE,
                   "Memory that the operating systems of the nodes report as free, in bytes.",
                   { NULL } },
    [MEM_ALLOC] = { "slurm_mem_alloc",
                    METRIC_GAUGE,
                    "Memory that Slurm has allocated to jobs, in bytes.",
                    { NULL } },
};

static const struct node_sums_row totals[] = {
    { CPUS_TOTAL, offsetof(struct node_sums, cpus), 0 },
    { CPUS_IDLE, offsetof(struct node_sums, cpus_idle), 0 },
    { CPU_LOAD, offsetof(struct node_sums, load_hundredths), 100 },
    { MEM_REAL, offsetof(struct node_sums, memory_bytes), 0 },
    { MEM_FREE, offsetof(struct node_sums, memory_free_bytes), 0 },
    { MEM_ALLOC, offsetof(struct node_sums, memory_alloc_bytes), 0 },
};

static const struct node_sums_row cpus_per_state = { CPUS_PER_STATE,
                                                     offsetof(struct node_state_sums, cpus), 0 };

static void collect_states(const struct node_sums *sums, struct metric_writer *writer)
{
    metric_begin(writer, CPUS_PER_STATE);
    for (size_t i = 0; i < n_node_state_words; i++)
        node_sums_write_state(writer, &cpus_per_state, sums, i, &node_state_words[i]);
    metric_begin(writer, NODES_PER_STATE);
    for (size_t i = 0; i < n_node_state_words; i++)
        metric_u64(writer, &node_state_words[i], sums->by_state[i].n_nodes);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct arena arena = { 0 };
    struct node_sums sums;

    node_sums_init(&sums, &arena);
    for (size_t i = 0; i < section->nodes.n; i++)
        node_sums_add(&sums, &section->nodes.node[i]);
    for (size_t i = 0; i < COUNT(totals); i++) {
        metric_begin(writer, totals[i].family);
        node_sums_write(writer, &totals[i], &sums, NULL);
    }
    collect_states(&sums, writer);
    arena_clear(&arena);
}

const struct collector collector_nodes = {
    .name = "nodes",
    .help = "CPUs, memory, load and nodes of the whole cluster, and by node state",
    .kind = KIND_NODES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
