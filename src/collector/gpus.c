/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GPUs, shards of them, and all GRES by name and type, for the cluster (each node counted once),
 * for each partition and by node state. All = allocated + idle + unusable. */
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

/* The same of all GRES, GPUs and shards included. */
static const struct family gres_families[] = {
    [OF_CLUSTER + ALL] = { "slurm_gres",
                           METRIC_GAUGE,
                           "GRES of all nodes by name and type, GPUs included: none where Slurm "
                           "names no type.",
                           { "gres", "type" } },
    [OF_CLUSTER + ALLOCATED] = { "slurm_gres_allocated",
                                 METRIC_GAUGE,
                                 "GRES that are allocated to jobs; those of a no_consume GRES are "
                                 "never allocated.",
                                 { "gres", "type" } },
    [OF_CLUSTER + IDLE] = { "slurm_gres_idle",
                            METRIC_GAUGE,
                            "GRES that are not allocated, on nodes that take jobs.",
                            { "gres", "type" } },
    [OF_CLUSTER + UNUSABLE] = { "slurm_gres_unusable",
                                METRIC_GAUGE,
                                "GRES that are not allocated, on " NODES_WITHOUT_JOBS,
                                { "gres", "type" } },
    [OF_PARTITION + ALL] = { "slurm_partition_gres",
                             METRIC_GAUGE,
                             "GRES of a partition's nodes by name and type, GPUs included.",
                             { "partition", "gres", "type" } },
    [OF_PARTITION + ALLOCATED] = { "slurm_partition_gres_allocated",
                                   METRIC_GAUGE,
                                   "GRES of a partition's nodes that are allocated to jobs of any "
                                   "partition.",
                                   { "partition", "gres", "type" } },
    [OF_PARTITION + IDLE] = { "slurm_partition_gres_idle",
                              METRIC_GAUGE,
                              "GRES that are not allocated, on those of a partition's nodes that "
                              "take jobs.",
                              { "partition", "gres", "type" } },
    [OF_PARTITION + UNUSABLE] = { "slurm_partition_gres_unusable",
                                  METRIC_GAUGE,
                                  "GRES that are not allocated, on those of a "
                                  "partition's " NODES_WITHOUT_JOBS,
                                  { "partition", "gres", "type" } },
    [PER_STATE] = { "slurm_gres_per_state",
                    METRIC_GAUGE,
                    "GRES of the nodes in a state, in sinfo's words, allocated or not.",
                    { "state", "gres", "type" } },
};

struct gres_sums {
    size_t n_nodes; /* that have any */
    struct known_sum sum[SUMS];
};

struct table {
    const struct section *section;
    struct gres_reader reader;
    size_t n_types;
    struct gres_sums *cluster;    /* by type */
    struct gres_sums *partitions; /* by partition and type */
    struct known_sum *per_state;  /* by state and type */
    bool *occurs;                 /* by state: some node of the cluster is in it */
    struct arena arena;
};

static void add_item(struct gres_sums *sums, const struct node *node,
                     const struct node_gres_item *item)
{
    uint64_t use[NODE_USES];

    node_use_gres(node, item, use);
    sums->n_nodes++;
    known_sum_add(&sums->sum[ALL], item->count);
    known_sum_add(&sums->sum[ALLOCATED], use[USE_ALLOCATED]);
    known_sum_add(&sums->sum[IDLE], use[USE_IDLE]);
    known_sum_add(&sums->sum[UNUSABLE], use[USE_UNUSABLE]);
}

static void add_node(struct table *table, const struct node *node)
{
    const struct nodes *nodes = &table->section->nodes;
    size_t state = node_state_index(node->state);
    struct node_gres gres;

    table->occurs[state] = true;
    node_gres_read(&table->reader, node, &gres);
    for (size_t i = 0; i < gres.n; i++) {
        const struct node_gres_item *item = &gres.item[i];

        add_item(&table->cluster[item->type], node, item);
        known_sum_add(&table->per_state[state * table->n_types + item->type], item->count);
        for (uint32_t k = 0; k < node->n_partitions; k++) {
            size_t partition = nodes->membership[node->first_partition + k];

            add_item(&table->partitions[partition * table->n_types + item->type], node, item);
        }
    }
}

static void table_init(struct table *table, const struct section *section, struct str name)
{
    const struct nodes *nodes = &section->nodes;

    *table = (struct table){ .section = section };
    gres_reader_init(&table->reader, section, name);
    table->n_types = node_gres_types(&table->reader);
    table->cluster = ARENA_ARRAY(&table->arena, struct gres_sums, table->n_types);
    table->partitions =
        ARENA_ARRAY(&table->arena, struct gres_sums, nodes->n_partitions * table->n_types);
    table->per_state =
        ARENA_ARRAY(&table->arena, struct known_sum, n_node_state_words * table->n_types);
    table->occurs = ARENA_ARRAY(&table->arena, bool, n_node_state_words);
    for (size_t i = 0; i < nodes->n; i++)
        add_node(table, &nodes->node[i]);
}

static void table_free(struct table *table)
{
    gres_reader_free(&table->reader);
    arena_clear(&table->arena);
}

/* The last labels: of all GRES the name, then the type. */
static void put_type(const struct table *table, size_t type, struct str *labels)
{
    if (!table->reader.name.n)
        *labels++ = gres_name(&table->reader, type);
    *labels = gres_type_label(&table->reader, type);
}

static void write_cluster(const struct table *table, struct metric_writer *writer, size_t sum)
{
    for (size_t type = 0; type < table->n_types; type++) {
        const struct gres_sums *sums = &table->cluster[type];
        struct str labels[2];

        put_type(table, type, labels);
        if (sums->n_nodes)
            known_sum_write(writer, &sums->sum[sum], sums->n_nodes, 0, labels);
    }
}

/* Of the types that a partition's nodes have. */
static void write_partitions(const struct table *table, struct metric_writer *writer, size_t sum)
{
    const struct nodes *nodes = &table->section->nodes;

    for (size_t i = 0; i < nodes->n_partitions; i++) {
        for (size_t type = 0; type < table->n_types; type++) {
            const struct gres_sums *sums = &table->partitions[i * table->n_types + type];
            struct str labels[3] = { section_text(table->section, nodes->partition[i].name) };

            put_type(table, type, labels + 1);
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
            struct str labels[3] = { node_state_words[state] };

            put_type(table, type, labels + 1);
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

static void collect_all(const struct section *section, struct metric_writer *writer)
{
    collect_resource(section, writer, STR(""), 0);
}

const struct collector collector_gres = {
    .name = "gres",
    .help = "all GRES by name and type, of the cluster, by partition and by node state",
    .kind = KIND_NODES,
    .families = gres_families,
    .n_families = COUNT(gres_families),
    .collect = collect_all,
};
