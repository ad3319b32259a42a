/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the nodes of a cluster have, by the rules of the collectors. */
#include "web/sums.h"

#include "collector/node_use.h"
#include "collector/top.h"
#include "web/sums_parts.h"

#include <math.h>
#include <stdlib.h>

static const struct sums_amount untold = { NAN, NAN, NAN, NAN };

double sums_known(const struct known_sum *sum, size_t n_members)
{
    return sum->is_over || (n_members && !sum->n) ? NAN : (double)sum->total;
}

/* What some of the nodes have of a thing. */
struct part {
    size_t n_nodes;
    struct known_sum all, use[NODE_USES];
};

struct table {
    const struct section *section;
    struct arena *to;
    struct gres_reader reader;
    size_t n_types;
    struct part cpus, memory, *gpus; /* GPUs by type */
    struct partition_parts {
        struct part cpus, memory, gpus;
        uint64_t nodes, unusable;
    } * partitions;
    struct {
        uint64_t n_nodes;
        struct known_sum cpus;
    } * states;
    size_t n_stranding; /* nodes that have GPUs */
    struct known_sum stranded_gpus, stranded_cpus;
    const struct node **broken;
    size_t n_broken;
    struct arena arena;
};

static void add_part(struct part *part, uint64_t all, const uint64_t use[NODE_USES])
{
    part->n_nodes++;
    known_sum_add(&part->all, all);
    for (unsigned i = 0; i < NODE_USES; i++)
        known_sum_add(&part->use[i], use[i]);
}

static struct sums_amount amount_of(const struct part *part)
{
    return (struct sums_amount){
        .total = sums_known(&part->all, part->n_nodes),
        .allocated = sums_known(&part->use[USE_ALLOCATED], part->n_nodes),
        .idle = sums_known(&part->use[USE_IDLE], part->n_nodes),
        .unusable = sums_known(&part->use[USE_UNUSABLE], part->n_nodes),
    };
}

/* What a node has, counted in the cluster once and in each of its partitions. */
struct node_has {
    uint64_t cpus[NODE_USES], memory[NODE_USES];
    struct node_gres gpus;
};

static void add_gpus(struct table *table, const struct node *node, const struct node_has *has)
{
    for (size_t i = 0; i < has->gpus.n; i++) {
        const struct node_gres_item *gpu = &has->gpus.item[i];
        uint64_t use[NODE_USES];

        node_use_gres(node, gpu, use);
        add_part(&table->gpus[gpu->type], gpu->count, use);
        known_sum_add(&table->stranded_gpus,
                      node_stranded_gpus(node, use[USE_IDLE], has->cpus[USE_IDLE]));
        for (uint32_t k = 0; k < node->n_partitions; k++) {
            size_t partition = table->section->nodes.membership[node->first_partition + k];

            add_part(&table->partitions[partition].gpus, gpu->count, use);
        }
    }
    if (node_has_gpus(&has->gpus)) {
        table->n_stranding++;
        known_sum_add(&table->stranded_cpus, node_stranded_cpus(&has->gpus, has->cpus[USE_IDLE]));
    }
}

static void add_to_partitions(struct table *table, const struct node *node,
                              const struct node_has *has)
{
    for (uint32_t k = 0; k < node->n_partitions; k++) {
        size_t partition = table->section->nodes.membership[node->first_partition + k];
        struct partition_parts *parts = &table->partitions[partition];

        add_part(&parts->cpus, known_u32(node->cpus), has->cpus);
        add_part(&parts->memory, node->memory_bytes, has->memory);
        parts->nodes++;
        parts->unusable += !node_takes_jobs(node->state);
    }
}

static void add_node(struct table *table, const struct node *node)
{
    size_t state = node_state_index(node->state);
    struct node_has has;

    node_use_cpus(node, has.cpus);
    node_use_memory(node, has.memory);
    node_gres_read(&table->reader, node, &has.gpus);
    add_part(&table->cpus, known_u32(node->cpus), has.cpus);
    add_part(&table->memory, node->memory_bytes, has.memory);
    add_gpus(table, node, &has);
    add_to_partitions(table, node, &has);
    table->states[state].n_nodes++;
    known_sum_add(&table->states[state].cpus, known_u32(node->cpus));
    if (!node_takes_jobs(node->state))
        table->broken[table->n_broken++] = node;
}

static int by_type(const void *a, const void *b)
{
    const struct sums_gpu *x = a, *y = b;

    return top_by_name(x->type, y->type);
}

static void give_gpus(struct table *table, struct cluster_sums *sums)
{
    sums->gpu = ARENA_ARRAY(table->to, struct sums_gpu, table->n_types);
    for (size_t type = 0; type < table->n_types; type++) {
        struct str name = gres_type_name(&table->reader, type);

        if (table->gpus[type].n_nodes)
            sums->gpu[sums->n_gpus++] =
                (struct sums_gpu){ arena_str(table->to, name), amount_of(&table->gpus[type]) };
    }
    qsort(sums->gpu, sums->n_gpus, sizeof(*sums->gpu), by_type);
    sums->stranded_gpus = sums_known(&table->stranded_gpus, table->n_stranding);
    sums->stranded_cpus = sums_known(&table->stranded_cpus, table->n_stranding);
}

static int by_nodes(const void *a, const void *b)
{
    const struct sums_state *x = a, *y = b;

    if (x->nodes != y->nodes)
        return x->nodes > y->nodes ? -1 : 1;
    return top_by_name(x->word, y->word);
}

static void give_states(struct table *table, struct cluster_sums *sums)
{
    sums->state = ARENA_ARRAY(table->to, struct sums_state, n_node_state_words);
    for (size_t i = 0; i < n_node_state_words; i++)
        if (table->states[i].n_nodes)
            sums->state[sums->n_states++] = (struct sums_state){
                .word = node_state_words[i],
                .nodes = table->states[i].n_nodes,
                .cpus = sums_known(&table->states[i].cpus, table->states[i].n_nodes),
            };
    qsort(sums->state, sums->n_states, sizeof(*sums->state), by_nodes);
}

static int latest_reason_first(const void *a, const void *b, void *ctx)
{
    const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
    const struct section *section = ctx;

    if (x->reason_time != y->reason_time)
        return x->reason_time > y->reason_time ? -1 : 1;
    return top_by_name(section_text(section, x->name), section_text(section, y->name));
}

static void give_broken(struct table *table, struct cluster_sums *sums)
{
    qsort_r(table->broken, table->n_broken, sizeof(*table->broken), latest_reason_first,
            (void *)(uintptr_t)table->section);
    sums->broken = ARENA_ARRAY(table->to, const struct node *, table->n_broken);
    sums->n_broken = table->n_broken;
    for (size_t i = 0; i < table->n_broken; i++)
        sums->broken[i] = table->broken[i];
}

static void give_partitions(struct table *table, struct cluster_sums *sums)
{
    const struct nodes *nodes = &table->section->nodes;

    sums->n_partitions = nodes->n_partitions;
    sums->partition = ARENA_ARRAY(table->to, struct sums_partition, nodes->n_partitions);
    for (size_t i = 0; i < nodes->n_partitions; i++) {
        const struct partition_parts *parts = &table->partitions[i];
        struct sums_amount gpus = amount_of(&parts->gpus);

        sums->partition[i] = (struct sums_partition){
            .partition = &nodes->partition[i],
            .jobs = { .name = section_text(table->section, nodes->partition[i].name),
                      .holding = { NAN, NAN, NAN, NAN },
                      .pending = { NAN, NAN, NAN, NAN } },
            .cpus = amount_of(&parts->cpus),
            .memory_bytes = amount_of(&parts->memory),
            .gpus = gpus.total,
            .gpus_allocated = gpus.allocated,
            .nodes = parts->nodes,
            .nodes_unusable = parts->unusable,
        };
    }
}

void sums_add_nodes(struct cluster_sums *sums, const struct section *nodes, struct arena *arena)
{
    struct table table = { .section = nodes, .to = arena };

    gres_reader_init(&table.reader, nodes, STR("gpu"));
    table.n_types = node_gres_types(&table.reader);
    table.gpus = ARENA_ARRAY(&table.arena, struct part, table.n_types);
    table.partitions = ARENA_ARRAY(&table.arena, struct partition_parts, nodes->nodes.n_partitions);
    table.states = arena_array(&table.arena, n_node_state_words, sizeof(*table.states));
    table.broken = ARENA_ARRAY(&table.arena, const struct node *, nodes->nodes.n);
    for (size_t i = 0; i < nodes->nodes.n; i++)
        add_node(&table, &nodes->nodes.node[i]);
    sums->cpus = amount_of(&table.cpus);
    sums->memory_bytes = amount_of(&table.memory);
    give_gpus(&table, sums);
    give_states(&table, sums);
    give_broken(&table, sums);
    give_partitions(&table, sums);
    gres_reader_free(&table.reader);
    arena_clear(&table.arena);
}

void cluster_sums_make(struct cluster_sums *ret, const struct section *nodes,
                       const struct section *jobs, struct arena *arena)
{
    *ret = (struct cluster_sums){
        .cpus = untold,
        .memory_bytes = untold,
        .stranded_gpus = NAN,
        .stranded_cpus = NAN,
        .has_jobs = jobs != NULL,
    };
    if (nodes)
        sums_add_nodes(ret, nodes, arena);
    if (jobs)
        sums_add_jobs(ret, jobs, arena);
}
