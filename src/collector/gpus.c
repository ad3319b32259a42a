/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GPUs and shards of them by type, for the cluster (each node counted once), for each partition and
 * by node state. All = allocated + idle + unusable. */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/node_use.h"

/* What is told of a type, of the cluster and of a partition. */
enum { ALL, ALLOCATED, IDLE, UNUSABLE, SUMS };

/* The families of GPUs, and behind them the same of shards. */
enum { OF_CLUSTER, OF_PARTITION = SUMS, PER_STATE = 2 * SUMS, FAMILIES };

static const struct family families[] = {
    [OF_CLUSTER + ALL] = { "slurm_gpus",
                           METRIC_GAUGE,
                           "GPUs of all nodes by type: none where Slurm names no type.",
                           { "type" } },
    [OF_CLUSTER + ALLOCATED] = { "slurm_gpus_allocated",
                                 METRIC_GAUGE,
                                 "GPUs that are allocated to jobs.",
                                 { "type" } },
    [OF_CLUSTER + IDLE] = { "slurm_gpus_idle",
                            METRIC_GAUGE,
                            "GPUs that are free on nodes that take jobs, powered-down ones "
                            "included: Slurm powers them up.",
                            { "type" } },
    [OF_CLUSTER + UNUSABLE] = { "slurm_gpus_unusable",
                                METRIC_GAUGE,
                                "GPUs that are free on " NODES_WITHOUT_JOBS,
                                { "type" } },
    [OF_PARTITION + ALL] = { "slurm_partition_gpus",
                             METRIC_GAUGE,
                             "GPUs of a partition's nodes by type.",
                             { "partition", "type" } },
    [OF_PARTITION + ALLOCATED] = { "slurm_partition_gpus_allocated",
                                   METRIC_GAUGE,
                                   "GPUs of a partition's nodes that are allocated to jobs, in "
                                   "whatever partition these run.",
                                   { "partition", "type" } },
    [OF_PARTITION + IDLE] = { "slurm_partition_gpus_idle",
                              METRIC_GAUGE,
                              "GPUs that are free on those of a partition's nodes that take jobs.",
                              { "partition", "type" } },
    [OF_PARTITION +
        UNUSABLE] = { "slurm_partition_gpus_unusable",
                      METRIC_GAUGE,
                      "GPUs that are free on those of a partition's " NODES_WITHOUT_JOBS,
                      { "partition", "type" } },
    [PER_STATE] = { "slurm_gpus_per_state",
                    METRIC_GAUGE,
                    "GPUs of the nodes in a state, in sinfo's words, allocated or not.",
                    { "state", "type" } },
    [FAMILIES + OF_CLUSTER + ALL] = { "slurm_gpu_shards",
                                      METRIC_GAUGE,
                                      "Shards of GPUs of all nodes by type of GPU. Those of one "
                                      "GPU and the GPU itself cannot both be allocated.",
                                      { "type" } },
    [FAMILIES + OF_CLUSTER + ALLOCATED] = { "slurm_gpu_shards_allocated",
                                            METRIC_GAUGE,
                                            "Shards of GPUs that are allocated to jobs.",
                                            { "type" } },
    [FAMILIES + OF_CLUSTER + IDLE] = { "slurm_gpu_shards_idle",
                                       METRIC_GAUGE,
                                       "Shards of GPUs that are not allocated, on nodes that take "
                                       "jobs.",
                                       { "type" } },
    [FAMILIES + OF_CLUSTER + UNUSABLE] = { "slurm_gpu_shards_unusable",
                                           METRIC_GAUGE,
                                           "Shards of GPUs that are not allocated, "
                                           "on " NODES_WITHOUT_JOBS,
                                           { "type" } },
    [FAMILIES + OF_PARTITION + ALL] = { "slurm_partition_gpu_shards",
                                        METRIC_GAUGE,
                                        "Shards of GPUs of a partition's nodes by type of GPU.",
                                        { "partition", "type" } },
    [FAMILIES + OF_PARTITION + ALLOCATED] = { "slurm_partition_gpu_shards_allocated",
                                              METRIC_GAUGE,
                                              "Shards of GPUs of a partition's nodes that are "
                                              "allocated to jobs.",
                                              { "partition", "type" } },
    [FAMILIES + OF_PARTITION + IDLE] = { "slurm_partition_gpu_shards_idle",
                                         METRIC_GAUGE,
                                         "Shards of GPUs that are not allocated, on those of a "
                                         "partition's nodes that take jobs.",
                                         { "partition", "type" } },
    [FAMILIES + OF_PARTITION + UNUSABLE] = { "slurm_partition_gpu_shards_unusable",
                                             METRIC_GAUGE,
                                             "Shards of GPUs that are not allocated, on those of a "
                                             "partition's " NODES_WITHOUT_JOBS,
                                             { "partition", "type" } },
    [FAMILIES + PER_STATE] = { "slurm_gpu_shards_per_state",
                               METRIC_GAUGE,
                               "Shards of GPUs of the nodes in a state, in sinfo's words, "
                               "allocated or not.",
                               { "state", "type" } },
};

struct gpu_sums {
    size_t n_nodes; /* that have any */
    struct known_sum sum[SUMS];
};

struct table {
    const struct section *section;
    struct gpu_reader reader;
    size_t n_types;
    struct gpu_sums *cluster;    /* by type */
    struct gpu_sums *partitions; /* by partition and type */
    struct known_sum *per_state; /* by state and type */
    bool *occurs;                /* by state: some node of the cluster is in it */
    struct arena arena;
};

static void add_gpu(struct gpu_sums *sums, const struct node *node, const struct node_gpu *gpu)
{
    uint64_t use[NODE_USES];

    node_use_gpus(node, gpu, use);
    sums->n_nodes++;
    known_sum_add(&sums->sum[ALL], gpu->count);
    known_sum_add(&sums->sum[ALLOCATED], use[USE_ALLOCATED]);
    known_sum_add(&sums->sum[IDLE], use[USE_IDLE]);
    known_sum_add(&sums->sum[UNUSABLE], use[USE_UNUSABLE]);
}

static void add_node(struct table *table, const struct node *node)
{
    const struct nodes *nodes = &table->section->nodes;
    size_t state = node_state_index(node->state);
    struct node_gpus gpus;

    table->occurs[state] = true;
    node_gpus_read(&table->reader, node, &gpus);
    for (size_t i = 0; i < gpus.n; i++) {
        const struct node_gpu *gpu = &gpus.item[i];

        add_gpu(&table->cluster[gpu->type], node, gpu);
        known_sum_add(&table->per_state[state * table->n_types + gpu->type], gpu->count);
        for (uint32_t k = 0; k < node->n_partitions; k++) {
            size_t partition = nodes->membership[node->first_partition + k];

            add_gpu(&table->partitions[partition * table->n_types + gpu->type], node, gpu);
        }
    }
}

static void table_init(struct table *table, const struct section *section, struct str name)
{
    const struct nodes *nodes = &section->nodes;

    *table = (struct table){ .section = section };
    gpu_reader_init(&table->reader, section, name);
    table->n_types = node_gpus_types(&table->reader);
    table->cluster = ARENA_ARRAY(&table->arena, struct gpu_sums, table->n_types);
    table->partitions =
        ARENA_ARRAY(&table->arena, struct gpu_sums, nodes->n_partitions * table->n_types);
    table->per_state =
        ARENA_ARRAY(&table->arena, struct known_sum, n_node_state_words * table->n_types);
    table->occurs = ARENA_ARRAY(&table->arena, bool, n_node_state_words);
    for (size_t i = 0; i < nodes->n; i++)
        add_node(table, &nodes->node[i]);
}

static void table_free(struct table *table)
{
    gpu_reader_free(&table->reader);
    arena_clear(&table->arena);
}

static void write_cluster(const struct table *table, struct metric_writer *writer, size_t sum)
{
    for (size_t type = 0; type < table->n_types; type++) {
        const struct gpu_sums *sums = &table->cluster[type];

        if (sums->n_nodes)
            known_sum_write(writer, &sums->sum[sum], sums->n_nodes, 0,
                            METRIC_VALUES(gpu_type(&table->reader, (symbol)type)));
    }
}

/* Of the types that a partition's nodes have. */
static void write_partitions(const struct table *table, struct metric_writer *writer, size_t sum)
{
    const struct nodes *nodes = &table->section->nodes;

    for (size_t i = 0; i < nodes->n_partitions; i++) {
        for (size_t type = 0; type < table->n_types; type++) {
            const struct gpu_sums *sums = &table->partitions[i * table->n_types + type];
            const struct str labels[] = { section_text(table->section, nodes->partition[i].name),
                                          gpu_type(&table->reader, (symbol)type) };

            if (sums->n_nodes)
                known_sum_write(writer, &sums->sum[sum], sums->n_nodes, 0, labels);
        }
    }
}

/* Zero is said for every state that occurs in the cluster. */
static void write_states(const struct table *table, struct metric_writer *writer)
{
    for (size_t state = 0; state < n_node_state_words; state++) {
        for (size_t type = 0; table->occurs[state] && type < table->n_types; type++) {
            const struct str labels[] = { node_state_words[state],
                                          gpu_type(&table->reader, (symbol)type) };

            if (table->cluster[type].sum[ALL].n)
                known_sum_write(writer, &table->per_state[state * table->n_types + type], 0, 0,
                                labels);
        }
    }
}

static void collect_resource(const struct section *section, struct metric_writer *writer,
                             struct str name, size_t first_family)
{
    struct table table;

    table_init(&table, section, name);
    for (size_t sum = 0; sum < SUMS; sum++) {
        metric_begin(writer, first_family + OF_CLUSTER + sum);
        write_cluster(&table, writer, sum);
    }
    for (size_t sum = 0; sum < SUMS; sum++) {
        metric_begin(writer, first_family + OF_PARTITION + sum);
        write_partitions(&table, writer, sum);
    }
    metric_begin(writer, first_family + PER_STATE);
    write_states(&table, writer);
    table_free(&table);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    collect_resource(section, writer, STR("gpu"), 0);
    collect_resource(section, writer, STR("shard"), FAMILIES);
}

const struct collector collector_gpus = {
    .name = "gpus",
    .help = "GPUs and their shards by type, of the cluster, by partition and by node state",
    .kind = KIND_NODES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
