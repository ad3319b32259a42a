/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the cluster has, by the state that its nodes are in and by use, so that nothing is called
 * idle that no job could get: all = allocated + idle + unusable. And what is stranded: free, but
 * beside nothing that a job could use with it. */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/node_use.h"

enum {
    STATE_CPUS,
    STATE_GPUS,
    FLAG_CPUS,
    FLAG_GPUS,
    STRANDED_CPUS,
    STRANDED_GPUS,
    RESERVATION_INFO,
};

#define BY_USE                                                                                     \
    "by use: allocated to jobs; idle, where a job could start; unusable, which is free "           \
    "on " NODES_WITHOUT_JOBS

static const struct family families[] = {
    [STATE_CPUS] = { "slurm_state_cpus",
                     METRIC_GAUGE,
                     "CPUs of the nodes in a state, in sinfo's words, " BY_USE,
                     { "state", "use" } },
    [STATE_GPUS] = { "slurm_state_gpus",
                     METRIC_GAUGE,
                     "GPUs of the nodes in a state, in sinfo's words, by type and " BY_USE,
                     { "state", "type", "use" } },
    [FLAG_CPUS] = { "slurm_flag_cpus",
                    METRIC_GAUGE,
                    "CPUs of the nodes that have a flag beside their base state, allocated or not: "
                    "a node counts in each flag that it has.",
                    { "flag" } },
    [FLAG_GPUS] = { "slurm_flag_gpus",
                    METRIC_GAUGE,
                    "GPUs by type of the nodes that have a flag beside their base state, allocated "
                    "or not: a node counts in each flag that it has.",
                    { "flag", "type" } },
    [STRANDED_CPUS] = { "slurm_stranded_cpus",
                        METRIC_GAUGE,
                        "Idle CPUs of nodes that have GPUs, of which none is free. They count as "
                        "idle all the same.",
                        { NULL } },
    [STRANDED_GPUS] = { "slurm_stranded_gpus",
                        METRIC_GAUGE,
                        "Idle GPUs by type of nodes that have no idle CPU, or less than 1 MiB of "
                        "memory that is not allocated. They count as idle all the same.",
                        { "type" } },
    [RESERVATION_INFO] = { "slurm_node_reservation_info",
                           METRIC_GAUGE,
                           "Always 1; the labels tell in which reservation a node is now. "
                           "slurm_reservation_node_info tells of reservations to come as well.",
                           { "node", "reservation" } },
};

/* What some of the nodes have of a thing. */
struct part {
    size_t n_nodes;
    struct known_sum all, use[NODE_USES];
};

struct stranded {
    size_t n_nodes; /* that have any, stranded or not */
    struct known_sum sum;
};

struct table {
    const struct section *section;
    struct gres_reader reader;
    size_t n_types;
    struct part *state_cpus, *flag_cpus; /* by state, by flag */
    struct part *state_gpus, *flag_gpus; /* likewise, and by type */
    struct stranded cpus, *gpus;         /* of nodes with GPUs; by type */
    struct arena arena;
};

static void add_part(struct part *part, uint64_t all, const uint64_t use[NODE_USES])
{
    part->n_nodes++;
    known_sum_add(&part->all, all);
    for (unsigned i = 0; i < NODE_USES; i++)
        known_sum_add(&part->use[i], use[i]);
}

static void add_stranded(struct stranded *stranded, uint64_t amount)
{
    stranded->n_nodes++;
    known_sum_add(&stranded->sum, amount);
}

static void add_cpus(struct table *table, const struct node *node, const uint64_t use[NODE_USES])
{
    uint64_t all = known_u32(node->cpus);

    add_part(&table->state_cpus[node_state_index(node->state)], all, use);
    for (unsigned bit = 0; bit < NODE_FLAGS; bit++)
        if (node->state.flags >> bit & 1)
            add_part(&table->flag_cpus[bit], all, use);
}

static void add_gpu(struct table *table, const struct node *node, const struct node_gres_item *gpu,
                    uint64_t idle_cpus)
{
    size_t state = node_state_index(node->state);
    uint64_t use[NODE_USES];

    node_use_gres(node, gpu, use);
    add_part(&table->state_gpus[state * table->n_types + gpu->type], gpu->count, use);
    for (unsigned bit = 0; bit < NODE_FLAGS; bit++)
        if (node->state.flags >> bit & 1)
            add_part(&table->flag_gpus[bit * table->n_types + gpu->type], gpu->count, use);
    add_stranded(&table->gpus[gpu->type], node_stranded_gpus(node, use[USE_IDLE], idle_cpus));
}

static void add_node(struct table *table, const struct node *node)
{
    uint64_t cpus[NODE_USES];
    struct node_gres gpus;

    node_use_cpus(node, cpus);
    add_cpus(table, node, cpus);
    node_gres_read(&table->reader, node, &gpus);
    for (size_t i = 0; i < gpus.n; i++)
        add_gpu(table, node, &gpus.item[i], cpus[USE_IDLE]);
    if (node_has_gpus(&gpus))
        add_stranded(&table->cpus, node_stranded_cpus(&gpus, cpus[USE_IDLE]));
}

static void table_init(struct table *table, const struct section *section)
{
    struct arena *arena = &table->arena;

    *table = (struct table){ .section = section };
    gres_reader_init(&table->reader, section, STR("gpu"));
    table->n_types = node_gres_types(&table->reader);
    table->state_cpus = ARENA_ARRAY(arena, struct part, n_node_state_words);
    table->state_gpus = ARENA_ARRAY(arena, struct part, n_node_state_words * table->n_types);
    table->flag_cpus = ARENA_ARRAY(arena, struct part, NODE_FLAGS);
    table->flag_gpus = ARENA_ARRAY(arena, struct part, NODE_FLAGS * table->n_types);
    table->gpus = ARENA_ARRAY(arena, struct stranded, table->n_types);
    for (size_t i = 0; i < section->nodes.n; i++)
        add_node(table, &section->nodes.node[i]);
}

static void table_free(struct table *table)
{
    gres_reader_free(&table->reader);
    arena_clear(&table->arena);
}

static void write_state_cpus(const struct table *table, struct metric_writer *writer)
{
    metric_begin(writer, STATE_CPUS);
    for (size_t state = 0; state < n_node_state_words; state++) {
        const struct part *part = &table->state_cpus[state];

        for (unsigned use = 0; use < NODE_USES; use++)
            known_sum_write(writer, &part->use[use], part->n_nodes, 0,
                            METRIC_VALUES(node_state_words[state], node_use_words[use]));
    }
}

static void write_gpus_of_state(const struct table *table, struct metric_writer *writer,
                                size_t state)
{
    for (size_t type = 0; type < table->n_types; type++) {
        const struct part *part = &table->state_gpus[state * table->n_types + type];
        struct str name = gres_type_label(&table->reader, type);

        for (unsigned use = 0; table->gpus[type].n_nodes && use < NODE_USES; use++)
            known_sum_write(writer, &part->use[use], part->n_nodes, 0,
                            METRIC_VALUES(node_state_words[state], name, node_use_words[use]));
    }
}

/* Zero is said for every state that occurs in the cluster. */
static void write_state_gpus(const struct table *table, struct metric_writer *writer)
{
    metric_begin(writer, STATE_GPUS);
    for (size_t state = 0; state < n_node_state_words; state++)
        if (table->state_cpus[state].n_nodes)
            write_gpus_of_state(table, writer, state);
}

static void write_flags(const struct table *table, struct metric_writer *writer)
{
    metric_begin(writer, FLAG_CPUS);
    for (unsigned bit = 0; bit < NODE_FLAGS; bit++)
        known_sum_write(writer, &table->flag_cpus[bit].all, table->flag_cpus[bit].n_nodes, 0,
                        METRIC_VALUES(node_flag_word(1u << bit)));
    metric_begin(writer, FLAG_GPUS);
    for (unsigned bit = 0; bit < NODE_FLAGS; bit++) {
        for (size_t type = 0; type < table->n_types; type++) {
            const struct part *part = &table->flag_gpus[bit * table->n_types + type];

            if (table->gpus[type].n_nodes)
                known_sum_write(writer, &part->all, part->n_nodes, 0,
                                METRIC_VALUES(node_flag_word(1u << bit),
                                              gres_type_label(&table->reader, type)));
        }
    }
}

static void write_stranded(const struct table *table, struct metric_writer *writer)
{
    metric_begin(writer, STRANDED_CPUS);
    known_sum_write(writer, &table->cpus.sum, table->cpus.n_nodes, 0, NULL);
    metric_begin(writer, STRANDED_GPUS);
    for (size_t type = 0; type < table->n_types; type++)
        if (table->gpus[type].n_nodes)
            known_sum_write(writer, &table->gpus[type].sum, table->gpus[type].n_nodes, 0,
                            METRIC_VALUES(gres_type_label(&table->reader, type)));
}

static void write_reservations(const struct section *section, struct metric_writer *writer)
{
    metric_begin(writer, RESERVATION_INFO);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        if (node->reservation)
            metric_u64(writer,
                       METRIC_VALUES(section_text(section, node->name),
                                     section_text(section, node->reservation)),
                       1);
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct table table;

    table_init(&table, section);
    write_state_cpus(&table, writer);
    write_state_gpus(&table, writer);
    write_flags(&table, writer);
    write_stranded(&table, writer);
    write_reservations(section, writer);
    table_free(&table);
}

const struct collector collector_capacity = {
    .name = "capacity",
    .help = "CPUs and GPUs by node state, flag and use, what is stranded, and reserved nodes",
    .kind = KIND_NODES,
    .also = KIND_BIT(KIND_RESERVATIONS),
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
