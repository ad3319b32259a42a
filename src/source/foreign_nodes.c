/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes from a command of the site's own: the lines (FOREIGN_SINFO) or the padded columns that
 * releases of prometheus-slurm-exporter ask sinfo(1) for, or a document with a list of nodes. */
#include "base/num.h"
#include "model/units.h"
#include "source/cli.h"
#include "source/foreign.h"
#include "source/json_line.h"
#include "source/node_list.h"

#include <math.h>

/* In the order of FOREIGN_SINFO, and of the columns: sinfo -O StateCompact, Memory, NodeHost,
 * CPUsLoad, Partition, FreeMem, CPUsState, Weight, AllocMem, Gres, GresUsed. */
enum {
    STATE,
    MEMORY,
    NAME,
    CPU_LOAD,
    PARTITION,
    FREE_MEMORY,
    CPUS,
    WEIGHT,
    LINE_FIELDS,
    ALLOC_MEMORY = LINE_FIELDS,
    GRES,
    GRES_USED,
    FIELDS,
};

struct node_lines {
    struct lined lined;
    struct json_line form;
    struct node_list list;
};

/* A column is as wide as it was asked for, 30 and 40 bytes here: what just fills it may have been
 * cut, and half a list of GPUs is worse than none. A site may ask for more. */
static symbol read_gres(struct answer *answer, struct str field, size_t width)
{
    return field.n != width ? answer_text(answer, field) : 0;
}

/* False if a column is there but cannot be read. */
static bool read_columns(const struct str *fields, struct node *node)
{
    bool is_read[FIELDS] = { 0 }, are_all_read = true;

    is_read[STATE] = node_state_parse(fields[STATE], &node->state);
    answer_cpus(fields[CPUS], node);
    is_read[CPUS] = node->cpus != MODEL_UNKNOWN_U32;
    is_read[CPU_LOAD] = num_get_double(fields[CPU_LOAD], &node->cpu_load);
    if (!is_read[CPU_LOAD])
        node->cpu_load = NAN;
    node->memory_bytes = answer_mebibytes(fields[MEMORY]);
    is_read[MEMORY] = node->memory_bytes != MODEL_UNKNOWN_U64;
    node->memory_free_bytes = answer_mebibytes(fields[FREE_MEMORY]);
    is_read[FREE_MEMORY] = node->memory_free_bytes != MODEL_UNKNOWN_U64;
    node->memory_alloc_bytes = answer_mebibytes(fields[ALLOC_MEMORY]);
    is_read[ALLOC_MEMORY] = node->memory_alloc_bytes != MODEL_UNKNOWN_U64;
    node->weight = answer_u32(fields[WEIGHT], MODEL_UNKNOWN_U32);
    is_read[WEIGHT] = node->weight != MODEL_UNKNOWN_U32;
    is_read[NAME] = is_read[PARTITION] = is_read[GRES] = is_read[GRES_USED] = true;
    for (size_t i = 0; i < FIELDS; i++)
        are_all_read &= is_read[i] || units_absent(fields[i]);
    return are_all_read;
}

/* A node changes while sinfo prints its lines, or is shown by each in another light: all flags, and
 * the base that says most, whichever line comes first. */
static void unite_states(struct node_state *state, struct node_state other)
{
    static const unsigned char says[NODE_BASES] = {
        [NODE_FUTURE] = 1,    [NODE_IDLE] = 2,  [NODE_MIXED] = 3,
        [NODE_ALLOCATED] = 4, [NODE_ERROR] = 5, [NODE_DOWN] = 6,
    };

    if (says[other.base] > says[state->base])
        state->base = other.base;
    state->flags |= other.flags;
}

/* The node in one of its partitions. Of a node that is told again its state is united with what the
 * lines before said; of the rest only CPUs that could not be read are taken. False if something in
 * the line cannot be read. */
static bool read_row(struct node_lines *all, const struct str *fields)
{
    struct str name = fields[PARTITION];
    bool is_default = str_ends(name, STR("*")), is_new;
    struct partition *partition;
    struct node *node, told = { 0 };
    bool is_read;

    if (answer_is_nameless(fields[NAME]))
        return false;
    is_read = read_columns(fields, &told);
    node = node_list_node(&all->list, fields[NAME], &is_new);
    if (is_new) {
        told.name = node->name;
        told.gres = read_gres(&all->lined.answer, fields[GRES], 30);
        told.gres_used = read_gres(&all->lined.answer, fields[GRES_USED], 40);
        *node = told;
    } else {
        unite_states(&node->state, told.state);
        if (node->cpus == MODEL_UNKNOWN_U32)
            answer_cpus(fields[CPUS], node);
    }
    name.n -= is_default;
    if (answer_is_nameless(name))
        return is_read;
    partition = node_list_partition(&all->list, name, &is_new);
    if (is_new)
        *partition = (struct partition){ .name = partition->name,
                                         .is_default = is_default,
                                         .time_limit_minutes = MODEL_UNKNOWN_U32 };
    node_list_join(&all->list, node, partition);
    return is_read;
}

/* At least the columns that the first of these releases asked for. */
static bool cut_columns(struct str line, struct str *fields)
{
    size_t n = 0;

    for (struct str rest = line; rest.p && n < FIELDS; n++)
        fields[n] = str_trim(str_cut(&rest, '|'));
    return n >= LINE_FIELDS;
}

static void read_line(void *ctx, struct str line)
{
    struct node_lines *all = ctx;
    struct str fields[FIELDS] = { 0 };
    bool is_cut;

    line = str_trim(line);
    if (!line.n)
        return;
    is_cut =
        line.p[0] == '{' ? json_line_read(&all->form, line, fields) : cut_columns(line, fields);
    if (!is_cut || !read_row(all, fields))
        answer_leave_out(&all->lined.answer, line);
}

static void begin_lines(struct answer *answer)
{
    struct node_lines *all = (struct node_lines *)answer;

    lined_begin(answer, read_line);
    json_line_init(&all->form, STR(FOREIGN_SINFO));
    node_list_init(&all->list, answer->section);
    answer->section->nodes.lacks_settings = true;
}

static int end_lines(struct answer *answer, struct err *err)
{
    struct node_lines *all = (struct node_lines *)answer;
    int code = lined_end(answer, &answer->section->nodes.n, err);

    if (code == 0)
        node_list_finish(&all->list);
    return code;
}

static void free_lines(struct answer *answer)
{
    struct node_lines *all = (struct node_lines *)answer;

    lined_free(answer);
    json_line_free(&all->form);
    node_list_free(&all->list);
}

static const struct answer_class node_lines = {
    .size = sizeof(struct node_lines),
    .begin = begin_lines,
    .feed = lined_feed,
    .end = end_lines,
    .free = free_lines,
};

static void begin(struct answer *answer)
{
    foreign_begin(answer, &node_lines, &answer_json_nodes);
}

const struct answer_class answer_foreign_nodes = FOREIGN_CLASS(begin);
