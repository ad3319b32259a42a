/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes and partitions from sinfo(1) -N with the fields of cli_format.h, framed by source/frame. */
#include "base/num.h"
#include "source/cli.h"
#include "source/cli_format.h"
#include "source/node_list.h"

#include <math.h>

_Static_assert((int)SINFO_N_FIELDS <= FRAME_FIELDS_MAX, "more fields than a frame has");

struct sinfo {
    struct framed framed;
    struct node_list list;
    bool tells_states;
};

static void read_node(struct answer *answer, struct node *node, const struct str *fields)
{
    /* A flag that a newer Slurm has thought of is left out, and the node is there. */
    node_state_parse(fields[SINFO_STATE], &node->state);
    answer_cpus(fields[SINFO_CPUS], node);
    /* 22.05 calls a node that drains allocated, however little of it is in use. */
    if (node->state.base == NODE_ALLOCATED && node->state.flags & NODE_DRAIN &&
        node->cpus_alloc < node->cpus)
        node->state.base = NODE_MIXED;
    if (!num_get_double(fields[SINFO_CPU_LOAD], &node->cpu_load))
        node->cpu_load = NAN;
    node->memory_bytes = answer_mebibytes(fields[SINFO_MEMORY]);
    node->memory_alloc_bytes = answer_mebibytes(fields[SINFO_ALLOC_MEMORY]);
    node->memory_free_bytes = answer_mebibytes(fields[SINFO_FREE_MEMORY]);
    node->gres = answer_text(answer, fields[SINFO_GRES]);
    node->gres_used = answer_text(answer, fields[SINFO_GRES_USED]);
    node->features = answer_text(answer, fields[SINFO_FEATURES]);
    node->version = answer_text(answer, fields[SINFO_VERSION]);
    node->reason = answer_text(answer, fields[SINFO_REASON]);
    if (node->reason) { /* without one, 22.05 calls root its author */
        node->reason_user = answer_text(answer, fields[SINFO_REASON_USER]);
        node->reason_time = answer_timestamp(fields[SINFO_REASON_TIME]);
    }
    node->weight = answer_u32(fields[SINFO_WEIGHT], MODEL_UNKNOWN_U32);
}

static void read_partition(struct partition *partition, bool is_default, const struct str *fields)
{
    partition->is_default = is_default;
    partition->is_up = str_eq_nocase(fields[SINFO_AVAILABLE], STR("up"));
    partition->time_limit_minutes = answer_limit_minutes(fields[SINFO_TIME_LIMIT]);
}

/* One row: a node in one of its partitions. */
static void read_row(void *ctx, const struct str *fields)
{
    struct sinfo *sinfo = ctx;
    struct answer *answer = &sinfo->framed.answer;
    struct str name = fields[SINFO_PARTITION];
    bool is_default = str_ends(name, STR("*")), is_new;
    struct partition *partition;
    struct node *node;

    if (answer_is_nameless(fields[SINFO_NODE])) {
        answer_leave_out(answer, fields[0]);
        return;
    }
    node = node_list_node(&sinfo->list, fields[SINFO_NODE], &is_new);
    if (is_new)
        read_node(answer, node, fields);
    sinfo->tells_states |= fields[SINFO_STATE].n > 0;
    name.n -= is_default;
    if (answer_is_nameless(name))
        return;
    partition = node_list_partition(&sinfo->list, name, &is_new);
    if (is_new)
        read_partition(partition, is_default, fields);
    node_list_join(&sinfo->list, node, partition);
}

static void begin(struct answer *answer)
{
    struct sinfo *sinfo = (struct sinfo *)answer;

    frame_init(&sinfo->framed.frame, SINFO_N_FIELDS, read_row, sinfo);
    node_list_init(&sinfo->list, answer->section);
}

static void put_format(const struct answer *answer, struct buf *to)
{
    framed_put_format(answer, sinfo_fields, SINFO_N_FIELDS, to);
}

static void put_older_format(const struct answer *answer, struct buf *to)
{
    const char *fields[SINFO_N_FIELDS];

    memcpy(fields, sinfo_fields, sizeof(fields));
    fields[SINFO_STATE] = SINFO_OLDER_STATE;
    framed_put_format(answer, fields, SINFO_N_FIELDS, to);
}

static int end_older(struct answer *answer, struct err *err)
{
    struct sinfo *sinfo = (struct sinfo *)answer;
    int code = framed_end(answer, err);

    if (code == 0)
        node_list_finish(&sinfo->list);
    return code;
}

/* A field that sinfo does not know it leaves empty; all it says of that goes to standard error. */
static int end(struct answer *answer, struct err *err)
{
    if (answer->section->nodes.n && !((struct sinfo *)answer)->tells_states)
        return err_set(err, EOPNOTSUPP, "this release knows no %s", sinfo_fields[SINFO_STATE]);
    return end_older(answer, err);
}

static void release(struct answer *answer)
{
    struct sinfo *sinfo = (struct sinfo *)answer;

    frame_free(&sinfo->framed.frame);
    node_list_free(&sinfo->list);
}

const struct answer_class answer_sinfo = {
    .size = sizeof(struct sinfo),
    .begin = begin,
    .put_format = put_format,
    .feed = framed_feed,
    .end = end,
    .free = release,
};

const struct answer_class answer_sinfo_older = {
    .size = sizeof(struct sinfo),
    .begin = begin,
    .put_format = put_older_format,
    .feed = framed_feed,
    .end = end_older,
    .free = release,
};
