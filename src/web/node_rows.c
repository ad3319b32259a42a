/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filters and sorts the nodes of a board. */
#include "web/node_rows.h"

#include "collector/node_use.h"
#include "model/hostlist.h"
#include "web/job_rows.h"

#include <math.h>

const struct node_choice_row node_choices[NODE_CHOICES] = {
    [NODE_FREE_CPUS] = { STR_INIT("free"), STR_INIT("with free CPUs") },
    [NODE_FREE_GPUS] = { STR_INIT("free-gpus"), STR_INIT("with free GPUs") },
    [NODE_FREE_MEMORY] = { STR_INIT("free-memory"), STR_INIT("with free memory") },
    [NODE_STRANDED_GPUS] = { STR_INIT("stranded-gpus"),
                             STR_INIT("GPUs free, no CPU or memory left") },
    [NODE_STRANDED_CPUS] = { STR_INIT("stranded-cpus"), STR_INIT("CPUs free, no GPU left") },
    [NODE_UNUSABLE] = { STR_INIT("unusable"), STR_INIT("takes no jobs") },
};

/* NODE_CHOICES: none of them. */
static enum node_choice find_choice(struct str word)
{
    enum node_choice choice = 0;

    while (choice < NODE_CHOICES && !str_eq(word, node_choices[choice].word))
        choice++;
    return choice;
}

static bool has_word(struct str list, struct str word)
{
    for (struct str rest = list; rest.p;)
        if (str_eq(str_trim(str_cut(&rest, ',')), word))
            return true;
    return false;
}

static bool has_text(struct str text, struct str part)
{
    for (size_t i = 0; i + part.n <= text.n; i++)
        if (str_eq_nocase((struct str){ text.p + i, part.n }, part))
            return true;
    return false;
}

bool node_rows_is_state_word(struct str word)
{
    for (size_t i = 0; i < n_node_state_words; i++)
        if (str_eq_nocase(node_state_words[i], word))
            return true;
    return false;
}

/* A word of sinfo's is that and nothing else, as it is counted elsewhere; any other is a base
 * state or a flag, which nodes of several words have. */
static bool is_in_state(const struct node *node, struct str word)
{
    struct node_state state = node->state;

    if (node_rows_is_state_word(word))
        return str_eq_nocase(node_state_word(state), word);
    if (str_eq_nocase(node_base_word(state.base), word))
        return true;
    for (unsigned bit = 0; bit < NODE_FLAGS; bit++)
        if (state.flags >> bit & 1 && str_eq_nocase(node_flag_word(1u << bit), word))
            return true;
    return false;
}

static bool is_in_partition(const struct node_entry *entry, struct str name)
{
    const struct nodes *nodes = &entry->cluster->section[KIND_NODES]->nodes;
    const uint32_t *partition = nodes->membership + entry->node->first_partition;

    for (uint32_t i = 0; i < entry->node->n_partitions; i++)
        if (str_eq(node_entry_text(entry, nodes->partition[partition[i]].name), name))
            return true;
    return false;
}

struct asked {
    const struct str *wanted; /* by enum node_field */
    enum node_choice choice;  /* in the place of a state */
    struct map names;         /* of the list, if one is asked for */
};

/* By what can be told without a look at its GPUs, which costs more. */
static bool is_wanted(const struct node_entry *entry, const struct asked *asked)
{
    const struct node *node = entry->node;
    const struct str *wanted = asked->wanted;
    struct str text = wanted[NODE_OF_TEXT];

    if (wanted[NODE_OF_NAME].n && !map_get(&asked->names, node_entry_text(entry, node->name)))
        return false;
    if (asked->choice == NODE_CHOICES && wanted[NODE_OF_STATE].n &&
        !is_in_state(node, wanted[NODE_OF_STATE]))
        return false;
    if (asked->choice == NODE_UNUSABLE && node_takes_jobs(node->state))
        return false;
    if (wanted[NODE_OF_PARTITION].n && !is_in_partition(entry, wanted[NODE_OF_PARTITION]))
        return false;
    if (wanted[NODE_OF_FEATURE].n &&
        !has_word(node_entry_text(entry, node->features), wanted[NODE_OF_FEATURE]))
        return false;
    if (wanted[NODE_OF_RESERVATION].n &&
        !str_eq(node_entry_text(entry, node->reservation), wanted[NODE_OF_RESERVATION]))
        return false;
    return !text.n || has_text(node_entry_text(entry, node->name), text) ||
           has_text(node_entry_text(entry, node->reason), text);
}

static void count_gpus(struct node_entry *entry, const struct node_gres *gpus)
{
    entry->gpus = entry->gpus_allocated = gpus->n ? 0 : NAN;
    for (size_t i = 0; i < gpus->n; i++) {
        entry->gpus += job_known_u64(gpus->item[i].count);
        entry->gpus_allocated += job_known_u64(gpus->item[i].allocated);
    }
}

/* Leaves those that are asked for. */
static void keep_types(struct node_gres *gpus, const struct gres_reader *reader, struct str types)
{
    size_t n = 0;

    if (!types.n || str_eq(types, STR("any")))
        return;
    for (size_t i = 0; i < gpus->n; i++)
        if (has_word(types, gres_type_name(reader, gpus->item[i].type)))
            gpus->item[n++] = gpus->item[i];
    gpus->n = n;
}

static bool is_any(uint64_t amount)
{
    return amount && amount != MODEL_UNKNOWN_U64;
}

/* Of all its GPUs, those that are idle and those of them that are stranded, as sums.c has them. */
static void count_idle_gpus(const struct node *node, const struct node_gres *gpus,
                            uint64_t idle_cpus, bool ret[NODE_CHOICES])
{
    for (size_t i = 0; i < gpus->n; i++) {
        uint64_t use[NODE_USES];

        node_use_gres(node, &gpus->item[i], use);
        ret[NODE_FREE_GPUS] |= is_any(use[USE_IDLE]);
        ret[NODE_STRANDED_GPUS] |= is_any(node_stranded_gpus(node, use[USE_IDLE], idle_cpus));
    }
}

static bool is_chosen(const struct node *node, const struct node_gres *gpus,
                      enum node_choice choice)
{
    bool is[NODE_CHOICES] = { [NODE_UNUSABLE] = !node_takes_jobs(node->state) };
    uint64_t cpus[NODE_USES], memory[NODE_USES];

    if (choice == NODE_CHOICES)
        return true;
    node_use_cpus(node, cpus);
    node_use_memory(node, memory);
    is[NODE_FREE_CPUS] = is_any(cpus[USE_IDLE]);
    is[NODE_FREE_MEMORY] = is_any(memory[USE_IDLE]);
    is[NODE_STRANDED_CPUS] =
        node_has_gpus(gpus) && is_any(node_stranded_cpus(gpus, cpus[USE_IDLE]));
    count_idle_gpus(node, gpus, cpus[USE_IDLE], is);
    return is[choice];
}

static void take_cluster(struct node_rows *rows, const struct board_cluster *cluster,
                         const struct asked *asked)
{
    const struct section *section = cluster->section[KIND_NODES];
    struct gres_reader reader;

    gres_reader_init(&reader, section, STR("gpu"));
    node_gres_types(&reader);
    for (size_t i = 0; i < section->nodes.n; i++) {
        struct node_entry entry = { .cluster = cluster, .node = &section->nodes.node[i] };

        struct node_gres gpus;

        rows->n_nodes++;
        if (!is_wanted(&entry, asked))
            continue;
        node_gres_read(&reader, entry.node, &gpus);
        keep_types(&gpus, &reader, asked->wanted[NODE_OF_GPU]);
        if ((asked->wanted[NODE_OF_GPU].n && !node_has_gpus(&gpus)) ||
            !is_chosen(entry.node, &gpus, asked->choice))
            continue;
        count_gpus(&entry, &gpus);
        rows->entry[rows->n++] = entry;
    }
    gres_reader_free(&reader);
}

/* A question by what is private would be answered by the nodes that are left. */
static bool is_told(const struct site_call *call, const struct board_cluster *cluster,
                    const struct str *wanted)
{
    return site_shows(call, cluster) && cluster->section[KIND_NODES] &&
           !show_is_private(call, cluster, PRIVATE_NODES) &&
           !(wanted[NODE_OF_PARTITION].n && show_is_private(call, cluster, PRIVATE_PARTITIONS)) &&
           !(wanted[NODE_OF_RESERVATION].n && show_is_private(call, cluster, PRIVATE_RESERVATIONS));
}

static void find_rows(struct site_call *call, const struct asked *asked, struct node_rows *ret)
{
    const struct board *board = call->board;
    size_t most = 0;

    for (size_t i = 0; i < board->n_clusters; i++)
        if (is_told(call, &board->cluster[i], asked->wanted))
            most += board->cluster[i].section[KIND_NODES]->nodes.n;
    *ret = (struct node_rows){ .entry = ARENA_ARRAY(&call->arena, struct node_entry, most) };
    for (size_t i = 0; i < board->n_clusters; i++)
        if (is_told(call, &board->cluster[i], asked->wanted))
            take_cluster(ret, &board->cluster[i], asked);
}

int node_rows_find(struct site_call *call, const struct str wanted[NODE_FIELDS],
                   struct node_rows *ret)
{
    struct asked asked = { .wanted = wanted, .choice = find_choice(wanted[NODE_OF_STATE]) };
    struct hostlist names = { 0 };
    int code =
        hostlist_expand(wanted[NODE_OF_NAME], &call->arena, STORE_NODES_MAX, &names, &call->err);

    if (code < 0)
        return code;
    map_init(&asked.names, &call->arena);
    for (size_t i = 0; i < names.n; i++)
        map_put(&asked.names, names.hosts[i]);
    find_rows(call, &asked, ret);
    map_free(&asked.names);
    return 0;
}

static double cpus_of(const struct node_entry *entry)
{
    return job_known_u32(entry->node->cpus_alloc);
}

static double load_of(const struct node_entry *entry)
{
    return entry->node->cpu_load;
}

static double gpus_of(const struct node_entry *entry)
{
    return entry->gpus_allocated;
}

static double memory_of(const struct node_entry *entry)
{
    return job_known_u64(entry->node->memory_alloc_bytes);
}

static double since_of(const struct node_entry *entry)
{
    return entry->node->reason_time ? (double)entry->node->reason_time : NAN;
}

static struct str state_of(const struct node_entry *entry)
{
    return node_state_word(entry->node->state);
}

static struct str reason_of(const struct node_entry *entry)
{
    return node_entry_text(entry, entry->node->reason);
}

/* By a number or by a text; by neither: as they stand. */
struct key {
    double (*number)(const struct node_entry *entry);
    struct str (*text)(const struct node_entry *entry);
};

static const struct key keys[NODE_SORTS] = {
    [NODE_BY_NAME] = { NULL, NULL },        [NODE_BY_STATE] = { NULL, state_of },
    [NODE_BY_CPUS] = { cpus_of, NULL },     [NODE_BY_LOAD] = { load_of, NULL },
    [NODE_BY_GPUS] = { gpus_of, NULL },     [NODE_BY_MEMORY] = { memory_of, NULL },
    [NODE_BY_REASON] = { NULL, reason_of }, [NODE_BY_SINCE] = { since_of, NULL },
};

struct order {
    const struct key *key;
    int sign;
};

static int compare_numbers(double a, double b, int sign)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return sign * ((a > b) - (a < b));
}

static int compare_texts(struct str a, struct str b, int sign)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (!a.n || !b.n)
        return !a.n - !b.n;
    return sign * (order ? order : (a.n > b.n) - (a.n < b.n));
}

/* Nodes of the same rank stay as Slurm lists them. */
static int by_key(const void *a, const void *b, void *ctx)
{
    const struct node_entry *x = a, *y = b;
    const struct order *order = ctx;
    const struct key *key = order->key;
    int rank = key->number ? compare_numbers(key->number(x), key->number(y), order->sign)
               : key->text ? compare_texts(key->text(x), key->text(y), order->sign)
                           : 0;

    if (rank)
        return rank;
    if (x->cluster != y->cluster)
        return x->cluster < y->cluster ? -1 : 1;
    rank = x->node < y->node ? -1 : x->node > y->node;
    return key->number || key->text ? rank : rank * order->sign;
}

void node_rows_sort(struct node_rows *rows, enum node_sort sort, bool is_descending)
{
    struct order order = { &keys[sort], is_descending ? -1 : 1 };

    qsort_r(rows->entry, rows->n, sizeof(rows->entry[0]), by_key, &order);
}
