/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs and GPUs by reservation, and each node's state, under the names of
 * slurm_monitoring_and_reporting. docs/compatibility.md tells what it computed otherwise. */
#include "base/map.h"
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/node_use.h"
#include "collector/once.h"

/* Its words: what is allocated, idle and unusable, and all. */
enum { ALLOC, IDLE, DRAIN, TOTAL, SUMS };

enum { CPUS, GPUS = SUMS, NODE_STATES = 2 * SUMS };

#define BY_RESERVATION                                                                             \
    " by the reservation that a node is in now: None, or unknown where Slurm does not name it."

static const struct family families[] = {
    [CPUS + ALLOC] = { "slurm_cpus_alloc",
                       METRIC_GAUGE,
                       "CPUs that are allocated to jobs," BY_RESERVATION,
                       { "reservation" } },
    [CPUS + IDLE] = { "slurm_cpus_idle",
                      METRIC_GAUGE,
                      "CPUs that are free on nodes that take jobs," BY_RESERVATION,
                      { "reservation" } },
    [CPUS +
        DRAIN] = { "slurm_cpus_drain",
                   METRIC_GAUGE,
                   "CPUs that are free on nodes that take no jobs, drained or not," BY_RESERVATION,
                   { "reservation" } },
    [CPUS + TOTAL] = { "slurm_cpus_total",
                       METRIC_GAUGE,
                       "CPUs of all nodes," BY_RESERVATION,
                       { "reservation" } },
    [GPUS + ALLOC] = { "slurm_gpus_alloc",
                       METRIC_GAUGE,
                       "GPUs that are allocated to jobs, by type, and" BY_RESERVATION,
                       { "type", "reservation" } },
    [GPUS + IDLE] = { "slurm_gpus_idle",
                      METRIC_GAUGE,
                      "GPUs that are free on nodes that take jobs, by type, and" BY_RESERVATION,
                      { "type", "reservation" } },
    [GPUS + DRAIN] = { "slurm_gpus_drain",
                       METRIC_GAUGE,
                       "GPUs that are free on nodes that take no jobs, drained or not, by type, "
                       "and" BY_RESERVATION,
                       { "type", "reservation" } },
    [GPUS + TOTAL] = { "slurm_gpus_total",
                       METRIC_GAUGE,
                       "GPUs of all nodes, by type, and" BY_RESERVATION,
                       { "type", "reservation" } },
    [NODE_STATES] = { "slurm_node_states",
                      METRIC_GAUGE,
                      "1 for the state that a node is in, 0 for the other 17. Of all that holds of "
                      "a node, down comes first, then drained, whether jobs still run there or "
                      "not, then not_responding, then sinfo's word.",
                      { "name", "slurm_node_states" } },
};

/* In the order in which it has them. No node is perfctrs: Slurm has lost that state. */
#define STATE_WORDS(WORD)                                                                          \
    WORD(ALLOCATED, "allocated")                                                                   \
    WORD(COMPLETING, "completing")                                                                 \
    WORD(IDLE, "idle")                                                                             \
    WORD(MAINT, "maint")                                                                           \
    WORD(MIXED, "mixed")                                                                           \
    WORD(PERFCTRS, "perfctrs")                                                                     \
    WORD(POWER_UP, "power_up")                                                                     \
    WORD(RESERVED, "reserved")                                                                     \
    WORD(REBOOT, "reboot")                                                                         \
    WORD(DOWN, "down")                                                                             \
    WORD(DRAINED, "drained")                                                                       \
    WORD(DRAINING, "draining")                                                                     \
    WORD(FAIL, "fail")                                                                             \
    WORD(FAILING, "failing")                                                                       \
    WORD(FUTURE, "future")                                                                         \
    WORD(POWER_DOWN, "power_down")                                                                 \
    WORD(UNKNOWN, "unknown")                                                                       \
    WORD(NOT_RESPONDING, "not_responding")

#define STATE_ENUM(name, text) STATE_##name,
#define STATE_TEXT(name, text) STR_INIT(text),

enum state { STATE_WORDS(STATE_ENUM) STATES };
static const struct str state_words[STATES] = { STATE_WORDS(STATE_TEXT) };

/* Words of sinfo's that it does not have, and what comes nearest; the others are unknown. */
static const struct {
    struct str word;
    enum state state;
} nearest[] = {
    { STR_INIT("planned"), STATE_IDLE }, /* for a job that is to start soon */
    { STR_INIT("powering_up"), STATE_POWER_UP },
    { STR_INIT("powering_down"), STATE_POWER_DOWN },
    { STR_INIT("powered_down"), STATE_POWER_DOWN },
};

static enum state find_word(struct str word)
{
    for (unsigned i = 0; i < STATES; i++)
        if (str_eq(word, state_words[i]))
            return i;
    for (size_t i = 0; i < COUNT(nearest); i++)
        if (str_eq(word, nearest[i].word))
            return nearest[i].state;
    return STATE_UNKNOWN;
}

static enum state state_of(struct node_state state)
{
    if (state.base == NODE_DOWN)
        return STATE_DOWN;
    if (state.flags & NODE_DRAIN)
        return STATE_DRAINED;
    if (state.flags & NODE_NOT_RESPONDING)
        return STATE_NOT_RESPONDING;
    return find_word(node_state_word(state));
}

struct part {
    size_t n_nodes;
    struct known_sum sum[SUMS];
};

struct table {
    const struct section *section;
    struct gres_reader reader;
    size_t n_types;
    struct map reservations; /* reservation i is entries[i].key */
    struct part *cpus;       /* by reservation */
    struct part *gpus;       /* by reservation and type */
    struct arena arena;
};

static void add_part(struct part *part, uint64_t all, const uint64_t use[NODE_USES])
{
    part->n_nodes++;
    known_sum_add(&part->sum[ALLOC], use[USE_ALLOCATED]);
    known_sum_add(&part->sum[IDLE], use[USE_IDLE]);
    known_sum_add(&part->sum[DRAIN], use[USE_UNUSABLE]);
    known_sum_add(&part->sum[TOTAL], all);
}

static void add_node(struct table *table, const struct node *node)
{
    size_t reservation = map_index(&table->reservations, node_reservation(table->section, node));
    uint64_t use[NODE_USES];
    struct node_gres gpus;

    node_use_cpus(node, use);
    add_part(&table->cpus[reservation], known_u32(node->cpus), use);
    node_gres_read(&table->reader, node, &gpus);
    for (size_t i = 0; i < gpus.n; i++) {
        const struct node_gres_item *gpu = &gpus.item[i];

        node_use_gres(node, gpu, use);
        add_part(&table->gpus[reservation * table->n_types + gpu->type], gpu->count, use);
    }
}

static void table_init(struct table *table, const struct section *section)
{
    const struct nodes *nodes = &section->nodes;

    *table = (struct table){ .section = section };
    gres_reader_init(&table->reader, section, STR("gpu"));
    table->n_types = node_gres_types(&table->reader);
    map_init(&table->reservations, &table->arena);
    for (size_t i = 0; i < nodes->n; i++)
        map_index(&table->reservations, node_reservation(section, &nodes->node[i]));
    table->cpus = ARENA_ARRAY(&table->arena, struct part, table->reservations.n);
    table->gpus = ARENA_ARRAY(&table->arena, struct part, table->reservations.n * table->n_types);
    for (size_t i = 0; i < nodes->n; i++)
        add_node(table, &nodes->node[i]);
}

static void table_free(struct table *table)
{
    gres_reader_free(&table->reader);
    map_free(&table->reservations);
    arena_clear(&table->arena);
}

static void write_cpus(const struct table *table, struct metric_writer *writer, size_t sum)
{
    metric_begin(writer, CPUS + sum);
    for (size_t i = 0; i < table->reservations.n; i++)
        known_sum_write(writer, &table->cpus[i].sum[sum], table->cpus[i].n_nodes, 0,
                        METRIC_VALUES(table->reservations.entries[i].key));
}

/* Of the types that a reservation's nodes have. */
static void write_gpus(const struct table *table, struct metric_writer *writer, size_t sum)
{
    metric_begin(writer, GPUS + sum);
    for (size_t i = 0; i < table->reservations.n; i++) {
        for (size_t type = 0; type < table->n_types; type++) {
            const struct part *part = &table->gpus[i * table->n_types + type];

            if (part->n_nodes)
                known_sum_write(writer, &part->sum[sum], part->n_nodes, 0,
                                METRIC_VALUES(gres_type_label(&table->reader, type),
                                              table->reservations.entries[i].key));
        }
    }
}

/* A node that is told twice is in the state that was told first. */
static void write_states(const struct section *section, struct metric_writer *writer)
{
    struct once once;

    once_init(&once);
    metric_begin(writer, NODE_STATES);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];
        enum state now = state_of(node->state);
        bool is_first = once_numbers(&once, node->name);

        for (unsigned state = 0; is_first && state < STATES; state++)
            metric_u64(writer, METRIC_VALUES(section_text(section, node->name), state_words[state]),
                       state == now);
    }
    once_free(&once);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct table table;

    table_init(&table, section);
    for (size_t sum = 0; sum < SUMS; sum++)
        write_cpus(&table, writer, sum);
    for (size_t sum = 0; sum < SUMS; sum++)
        write_gpus(&table, writer, sum);
    table_free(&table);
    write_states(section, writer);
}

const struct collector collector_mila_nodes = {
    .name = "mila_nodes",
    .help = "CPUs and GPUs by reservation, and each node's state: 18 series a node",
    .kind = KIND_NODES,
    .also = KIND_BIT(KIND_RESERVATIONS),
    .profile = "mila",
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
