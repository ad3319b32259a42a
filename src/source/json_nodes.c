/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes from sinfo --json up to Slurm 22.05, and from scontrol --json show nodes and slurmrestd's
 * /nodes of any release: the NODE parser of Slurm's data_parser plugins, and dump_node() of its
 * older openapi plugins. */
#include "source/json_answers.h"
#include "source/json_table.h"
#include "source/node_list.h"

#include <math.h>

enum { FEATURES_MAX = 64 << 10 };

/* A node before its place in the list is known. */
struct node_draft {
    struct node node;
    symbol *partitions;
    size_t n_partitions, partitions_room;
    struct buf features;
};

struct json_nodes {
    struct json_answer json;
    struct node_list list;
    struct node_draft draft;
    bool is_grouped;
};

#define NODE(key, shape, field) MEMBER(struct node_draft, key, shape, node.field)

static const struct json_member node_members[] = {
    NODE("name", SHAPE_NAME, name),
    MEMBER_WORDS("state"),
    MEMBER_WORDS("state_flags"), /* up to v0.0.38 */
    NODE("cpus", SHAPE_U32, cpus),
    NODE("alloc_cpus", SHAPE_U32, cpus_alloc),
    NODE("cpu_load", SHAPE_HUNDREDTHS, cpu_load),
    NODE("real_memory", SHAPE_MEBIBYTES, memory_bytes),
    NODE("alloc_memory", SHAPE_MEBIBYTES, memory_alloc_bytes),
    NODE("free_memory", SHAPE_MEBIBYTES, memory_free_bytes), /* up to v0.0.38 */
    NODE("free_mem", SHAPE_MEBIBYTES, memory_free_bytes),
    NODE("gres", SHAPE_TEXT, gres),
    NODE("gres_used", SHAPE_TEXT, gres_used),
    MEMBER_WORDS("features"),
    NODE("reservation", SHAPE_NAME, reservation),
    NODE("slurmd_version", SHAPE_TEXT, version), /* up to v0.0.38 */
    NODE("version", SHAPE_TEXT, version),
    NODE("reason", SHAPE_TEXT, reason),
    NODE("reason_set_by_user", SHAPE_NAME, reason_user),
    NODE("reason_changed_at", SHAPE_TIME, reason_time),
    NODE("weight", SHAPE_U32, weight),
    MEMBER_WORDS("partitions"),
};

static void *begin_node(struct answer *answer)
{
    struct node_draft *draft = &((struct json_nodes *)answer)->draft;

    draft->node = (struct node){
        .state = NODE_STATE_NONE,
        .cpus = MODEL_UNKNOWN_U32,
        .cpus_alloc = MODEL_UNKNOWN_U32,
        .cpus_idle = MODEL_UNKNOWN_U32,
        .cpus_other = MODEL_UNKNOWN_U32,
        .cpu_load = NAN,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .memory_alloc_bytes = MODEL_UNKNOWN_U64,
        .memory_free_bytes = MODEL_UNKNOWN_U64,
        .weight = MODEL_UNKNOWN_U32,
    };
    draft->n_partitions = 0;
    buf_reset(&draft->features);
    return draft;
}

static void add_word(struct answer *answer, void *record, const struct json_member *member,
                     struct str word)
{
    struct node_draft *draft = record;

    if (str_starts(member->key, STR("state"))) {
        node_state_add(&draft->node.state, word);
    } else if (str_eq(member->key, STR("features"))) {
        if (draft->features.n)
            buf_byte(&draft->features, ',');
        buf_put(&draft->features, word);
    } else {
        draft->partitions = section_grow(answer->section, draft->partitions, draft->n_partitions,
                                         &draft->partitions_room, sizeof(*draft->partitions));
        draft->partitions[draft->n_partitions++] = answer_name(answer, word);
    }
}

/* As sinfo does it: what is not allocated on a node that takes no job is not idle. */
static void settle_cpus(struct node *node)
{
    uint32_t rest;

    if (node->cpus == MODEL_UNKNOWN_U32 || node->cpus_alloc > node->cpus)
        return;
    rest = node->cpus - node->cpus_alloc;
    node->cpus_idle = node->cpus_other = 0;
    if (node->state.base == NODE_DOWN || node->state.flags & NODE_DRAIN)
        node->cpus_other = rest;
    else
        node->cpus_idle = rest;
}

static void settle_node(struct answer *answer, struct node_draft *draft)
{
    struct node *node = &draft->node;

    settle_cpus(node);
    node->features = answer_text(answer, buf_str(&draft->features));
    /* From v0.0.40 on a load that was never told is 0, as is that of a node without load: but then
     * its free memory was told. */
    if (node->cpu_load == 0 && node->memory_free_bytes == MODEL_UNKNOWN_U64)
        node->cpu_load = NAN;
    if (!node->reason) {
        node->reason_user = 0;
        node->reason_time = 0;
    }
}

static void join_partition(struct json_nodes *all, const struct node *node, symbol name)
{
    struct section *section = all->json.answer.section;
    struct partition *partition;
    bool is_new;

    if (!name)
        return;
    partition = node_list_partition(&all->list, section_text(section, name), &is_new);
    if (is_new)
        partition->time_limit_minutes = MODEL_UNKNOWN_U32;
    node_list_join(&all->list, node, partition);
}

static void end_node(struct answer *answer, void *record)
{
    struct json_nodes *all = (struct json_nodes *)answer;
    struct node_draft *draft = record;
    struct node *node;
    bool is_new;

    if (!draft->node.name) {
        answer_leave_out(answer, STR("a node without a name"));
        return;
    }
    node = node_list_node(&all->list, section_text(answer->section, draft->node.name), &is_new);
    if (is_new) {
        settle_node(answer, draft);
        *node = draft->node;
    }
    for (size_t i = 0; i < draft->n_partitions; i++)
        join_partition(all, node, draft->partitions[i]);
}

static const struct json_table node_table = {
    .members = node_members,
    .n = COUNT(node_members),
    .begin = begin_node,
    .word = add_word,
    .end = end_node,
};

static void *begin_group(struct answer *answer)
{
    ((struct json_nodes *)answer)->is_grouped = true;
    return answer;
}

static const struct json_table group_table = { .begin = begin_group };

static const struct json_member document_members[] = {
    MEMBER_LIST("nodes", &node_table),
    MEMBER_LIST("sinfo", &group_table),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    struct json_nodes *all = (struct json_nodes *)answer;

    json_answer_begin(answer, &document);
    node_list_init(&all->list, answer->section);
    buf_init(&all->draft.features, FEATURES_MAX);
    answer->section->nodes.lacks_settings = true;
}

static int feed(struct answer *answer, struct str piece, struct err *err)
{
    const struct json_nodes *all = (const struct json_nodes *)answer;
    int code = json_answer_feed(answer, piece, err);

    if (all->is_grouped)
        return err_set(err, EOPNOTSUPP,
                       "from Slurm 23.02 on sinfo --json tells groups of nodes, not nodes: ask "
                       "\"scontrol show nodes --json\" in its place");
    return code;
}

static int end(struct answer *answer, struct err *err)
{
    struct json_nodes *all = (struct json_nodes *)answer;
    int code = json_answer_end(answer, err);

    if (code == 0)
        node_list_finish(&all->list);
    return code;
}

static void release(struct answer *answer)
{
    struct json_nodes *all = (struct json_nodes *)answer;

    json_answer_free(answer);
    node_list_free(&all->list);
    free(all->draft.partitions);
    buf_free(&all->draft.features);
}

const struct answer_class answer_json_nodes = {
    .size = sizeof(struct json_nodes),
    .begin = begin,
    .feed = feed,
    .end = end,
    .free = release,
};
