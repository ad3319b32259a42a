/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partitions from scontrol(1), "scontrol --all --oneliner show partitions", for a section of nodes
 * that has been read: sinfo --Node tells of no partition without nodes, and JSON of the nodes
 * nothing but the names of theirs. */
#include "source/cli.h"
#include "source/pairs.h"
#include "source/partition_list.h"

enum { NAME, ALLOW_GROUPS, DEFAULT, TIME_LIMIT, STATE, KEYS };

static const struct str keys[KEYS] = {
    [NAME] = STR_INIT("PartitionName"), [ALLOW_GROUPS] = STR_INIT("AllowGroups"),
    [DEFAULT] = STR_INIT("Default"),    [TIME_LIMIT] = STR_INIT("MaxTime"),
    [STATE] = STR_INIT("State"),
};

struct scontrol_partitions {
    struct lined lined;
    struct partition_list list;
};

static void read_partition(void *ctx, struct str line)
{
    struct scontrol_partitions *all = ctx;
    struct answer *answer = &all->lined.answer;
    struct str values[KEYS];

    if (!line.n || str_starts(line, STR("No partitions in the system")))
        return;
    if (!pairs_read(line, keys, KEYS, values) || answer_is_nameless(values[NAME]) ||
        !values[STATE].p) {
        answer_leave_out(answer, line);
        return;
    }
    partition_list_tell(&all->list,
                        &(struct partition){
                            .name = answer_name(answer, values[NAME]),
                            .is_default = str_eq(values[DEFAULT], STR("YES")),
                            .is_up = str_eq(values[STATE], STR("UP")),
                            .time_limit_minutes = answer_limit_minutes(values[TIME_LIMIT]),
                        },
                        true);
}

static void begin(struct answer *answer)
{
    lined_begin(answer, read_partition);
    partition_list_init(&((struct scontrol_partitions *)answer)->list, answer->section);
}

static int end(struct answer *answer, struct err *err)
{
    struct partition_list *list = &((struct scontrol_partitions *)answer)->list;
    int code = lined_end(answer, &list->n_told, err);

    if (code == 0)
        partition_list_finish(list);
    return code;
}

static void release(struct answer *answer)
{
    lined_free(answer);
    partition_list_free(&((struct scontrol_partitions *)answer)->list);
}

const struct answer_class answer_partitions = {
    .size = sizeof(struct scontrol_partitions),
    .begin = begin,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
