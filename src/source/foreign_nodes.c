/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes from a command of the site's own: the lines (FOREIGN_SINFO) or the padded columns that
 * releases of prometheus-slurm-exporter ask sinfo(1) for, or a document with a list of nodes. */
#include "base/num.h"
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

/* A column is as wide as it was asked for, 30 and 40 bytes here: what fills it may have been cut,
 * and half a list of GPUs is worse than none. */
static symbol read_gres(struct answer *answer, struct str field, size_t width)
{
    return field.n < width ? answer_text(answer, field) : 0;
}

static void read_node(struct answer *answer, struct node *node, const struct str *fields)
{
    node_state_parse(fields[STATE], &node->state);
    answer_cpus(fields[CPUS], node);
    if (!num_get_double(fields[CPU_LOAD], &node->cpu_load))
        node->cpu_load = NAN;
    node->memory_bytes = answer_mebibytes(fields[MEMORY]);
    node->memory_free_bytes = answer_mebibytes(fields[FREE_MEMORY]);
    node->memory_alloc_bytes = answer_mebibytes(fields[ALLOC_MEMORY]);
    node->weight = answer_u32(fields[WEIGHT], MODEL_UNKNOWN_U32);
    node->gres = read_gres(answer, fields[GRES], 30);
    node->gres_used = read_gres(answer, fields[GRES_USED], 40);
}

/* The node in one of its partitions. Of a node that is told again only what could not be read is
 * read again. */
static bool read_row(struct node_lines *all, const struct str *fields)
{
    struct str name = fields[PARTITION];
    bool is_default = str_ends(name, STR("*")), is_new;
    struct partition *partition;
    struct node *node;

    if (answer_is_nameless(fields[NAME]))
        return false;
    node = node_list_node(&all->list, fields[NAME], &is_new);
    if (is_new)
        read_node(&all->lined.answer, node, fields);
    else if (node->cpus == MODEL_UNKNOWN_U32)
        answer_cpus(fields[CPUS], node);
    name.n -= is_default;
    if (answer_is_nameless(name))
        return true;
    partition = node_list_partition(&all->list, name, &is_new);
    if (is_new)
        *partition = (struct partition){ .name = partition->name,
                                         .is_default = is_default,
                                         .time_limit_minutes = MODEL_UNKNOWN_U32 };
    node_list_join(&all->list, node, partition);
    return true;
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
