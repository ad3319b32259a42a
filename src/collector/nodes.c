/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cluster as a whole: CPUs, memory, load and nodes, each node counted once. Names as
 * prometheus-slurm-exporter has them; and the nodes as Slurm itself knows them, by base state and
 * by flag, since sinfo's one word hides that a drained node is idle or down. */
#include "collector/groups.h"
#include "collector/node_sums.h"
#include "collector/top.h"

enum {
    CPUS_TOTAL,
    CPUS_IDLE,
    CPU_LOAD,
    CPUS_PER_STATE,
    NODES_PER_STATE,
    MEM_REAL,
    MEM_FREE,
    MEM_ALLOC,
    NODES,
    NODES_FLAGGED,
    FEATURE_NODES,
};

enum { MOST_FEATURES = 200 };

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
    [NODES] = { "slurm_nodes",
                METRIC_GAUGE,
                "Nodes by base state, whatever their flags: each counts in one.",
                { "state" } },
    [NODES_FLAGGED] = { "slurm_nodes_flagged",
                        METRIC_GAUGE,
                        "Nodes that have a flag beside their base state: each counts in all that "
                        "it has.",
                        { "flag" } },
    [FEATURE_NODES] = { "slurm_feature_nodes",
                        METRIC_GAUGE,
                        "Nodes that have a feature: each counts in all that it has. Past the 200 "
                        "most frequent ones the rest is called other.",
                        { "feature" } },
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

static void collect_bases(const struct nodes *nodes, struct metric_writer *writer)
{
    uint64_t bases[NODE_BASES] = { 0 }, flags[NODE_FLAGS] = { 0 };

    for (size_t i = 0; i < nodes->n; i++) {
        struct node_state state = nodes->node[i].state;

        bases[state.base]++;
        for (unsigned bit = 0; state.flags >> bit && bit < NODE_FLAGS; bit++)
            flags[bit] += state.flags >> bit & 1;
    }
    metric_begin(writer, NODES);
    for (unsigned base = 0; base < NODE_BASES; base++)
        metric_u64(writer, METRIC_VALUES(node_base_word(base)), bases[base]);
    metric_begin(writer, NODES_FLAGGED);
    for (unsigned bit = 0; bit < NODE_FLAGS; bit++)
        metric_u64(writer, METRIC_VALUES(node_flag_word(1u << bit)), flags[bit]);
}

static void collect_features(const struct section *section, struct metric_writer *writer)
{
    const struct nodes *nodes = &section->nodes;
    struct groups features;
    struct top_row *rows;

    groups_init(&features, section, groups_cut_at_commas);
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->node[i].features)
            groups_of(&features, nodes->node[i].features);
    rows = heap_alloc((features.names.n + 1) * sizeof(*rows));
    for (size_t i = 0; i < features.names.n; i++)
        rows[i].name = groups_name(&features, i);
    for (size_t i = 0; i < nodes->n; i++) {
        struct group_list list = { .n = 0 };

        if (nodes->node[i].features)
            list = groups_of(&features, nodes->node[i].features);
        for (size_t k = 0; k < list.n; k++)
            rows[list.group[k]].amount++;
    }
    metric_begin(writer, FEATURE_NODES);
    top_write(writer, rows, features.names.n, MOST_FEATURES);
    groups_free(&features);
    free(rows);
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
    collect_bases(&section->nodes, writer);
    collect_features(section, writer);
    arena_clear(&arena);
}

const struct collector collector_nodes = {
    .name = "nodes",
    .help = "CPUs, memory and load of the whole cluster, nodes by state, flag and feature",
    .kind = KIND_NODES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
