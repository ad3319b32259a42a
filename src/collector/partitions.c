/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs, memory, load and nodes of each partition; a node counts in every partition that has it.
 * Names as prometheus-slurm-exporter has them. */
#include "collector/node_sums.h"

enum {
    TOTAL_CPUS,
    IDLE_CPUS,
    CPU_LOAD,
    REAL_MEM,
    FREE_MEM,
    WEIGHT,
    WEIGHT_MIN,
    WEIGHT_MAX,
    UP,
    TIME_LIMIT,
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
                 "Sum of the weights of a partition's nodes. A weight is a number that slurm.conf "
                 "gives a node; Slurm fills nodes of low weight first. The sum itself has no "
                 "meaning but is what dashboards know.",
                 { "partition" } },
    [WEIGHT_MIN] = { "slurm_partition_weight_min",
                     METRIC_GAUGE,
                     "Smallest weight of a partition's nodes: that of those filled first.",
                     { "partition" } },
    [WEIGHT_MAX] = { "slurm_partition_weight_max",
                     METRIC_GAUGE,
                     "Largest weight of a partition's nodes: that of those filled last.",
                     { "partition" } },
    [UP] = { "slurm_partition_up",
             METRIC_GAUGE,
             "1 if a partition is up; 0 if its state is DOWN, DRAIN or INACTIVE.",
             { "partition" } },
    [TIME_LIMIT] = { "slurm_partition_time_limit_seconds",
                     METRIC_GAUGE,
                     "Longest time that a job may run in a partition; absent where unlimited.",
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

static const struct node_sums_row totals[] = {
    { TOTAL_CPUS, offsetof(struct node_sums, cpus), 0 },
    { IDLE_CPUS, offsetof(struct node_sums, cpus_idle), 0 },
    { CPU_LOAD, offsetof(struct node_sums, load_hundredths), 100 },
    { REAL_MEM, offsetof(struct node_sums, memory_bytes), 0 },
    { FREE_MEM, offsetof(struct node_sums, memory_free_bytes), 0 },
    { WEIGHT, offsetof(struct node_sums, weight), 0 },
};

static const struct node_sums_row by_state[] = {
    { ALLOC_CPUS, offsetof(struct node_state_sums, cpus_alloc), 0 },
    { ALLOC_MEM, offsetof(struct node_state_sums, memory_alloc_bytes), 0 },
};

/* What is told of every partition. */
struct table {
    const struct section *section;
    struct node_sums *sums; /* by partition */
    bool *occurs;           /* by state: some node of the cluster is in it */
};

static struct str partition_name(const struct table *table, size_t i)
{
    return section_text(table->section, table->section->nodes.partition[i].name);
}

/* Zero is said for every state that occurs in the cluster; for all that Slurm has, it would be a
 * hundred series a partition. */
static void write_states(const struct table *table, struct metric_writer *writer,
                         const struct node_sums_row *row)
{
    for (size_t i = 0; i < table->section->nodes.n_partitions; i++) {
        for (size_t state = 0; state < n_node_state_words; state++) {
            const struct str labels[] = { partition_name(table, i), node_state_words[state] };

            if (!table->occurs[state])
                continue;
            if (row)
                node_sums_write_state(writer, row, &table->sums[i], state, labels);
            else
                metric_u64(writer, labels, table->sums[i].by_state[state].n_nodes);
        }
    }
}

static void write_weights(const struct table *table, struct metric_writer *writer, size_t family)
{
    metric_begin(writer, family);
    for (size_t i = 0; i < table->section->nodes.n_partitions; i++)
        if (table->sums[i].weight.n)
            metric_u64(writer, METRIC_VALUES(partition_name(table, i)),
                       family == WEIGHT_MIN ? table->sums[i].weight_min
                                            : table->sums[i].weight_max);
}

/* What a partition is, whatever its nodes are. */
static void write_settings(const struct table *table, struct metric_writer *writer)
{
    const struct nodes *nodes = &table->section->nodes;

    if (nodes->lacks_settings)
        return;
    metric_begin(writer, UP);
    for (size_t i = 0; i < nodes->n_partitions; i++)
        metric_u64(writer, METRIC_VALUES(partition_name(table, i)), nodes->partition[i].is_up);
    metric_begin(writer, TIME_LIMIT);
    for (size_t i = 0; i < nodes->n_partitions; i++)
        if (nodes->partition[i].time_limit_minutes != MODEL_UNKNOWN_U32)
            metric_u64(writer, METRIC_VALUES(partition_name(table, i)),
                       UINT64_C(60) * nodes->partition[i].time_limit_minutes);
}

static void write_table(const struct table *table, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(totals); k++) {
        metric_begin(writer, totals[k].family);
        for (size_t i = 0; i < table->section->nodes.n_partitions; i++)
            node_sums_write(writer, &totals[k], &table->sums[i],
                            METRIC_VALUES(partition_name(table, i)));
    }
    write_weights(table, writer, WEIGHT_MIN);
    write_weights(table, writer, WEIGHT_MAX);
    write_settings(table, writer);
    for (size_t k = 0; k < COUNT(by_state); k++) {
        metric_begin(writer, by_state[k].family);
        write_states(table, writer, &by_state[k]);
    }
    metric_begin(writer, NODE_COUNT);
    write_states(table, writer, NULL);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct nodes *nodes = &section->nodes;
    struct arena arena = { 0 };
    struct table table = {
        .section = section,
        .sums = ARENA_ARRAY(&arena, struct node_sums, nodes->n_partitions),
        .occurs = ARENA_ARRAY(&arena, bool, n_node_state_words),
    };

    for (size_t i = 0; i < nodes->n_partitions; i++)
        node_sums_init(&table.sums[i], &arena);
    for (size_t i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->node[i];

        table.occurs[node_state_index(node->state)] = true;
        for (uint32_t k = 0; k < node->n_partitions; k++)
            node_sums_add(&table.sums[nodes->membership[node->first_partition + k]], node);
    }
    write_table(&table, writer);
    arena_clear(&arena);
}

const struct collector collector_partitions = {
    .name = "partitions",
    .help = "CPUs, memory, load, nodes and settings of each partition",
    .kind = KIND_NODES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
