/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partitions from slurmrestd's /partitions and scontrol show partitions --json of any release: the
 * PARTITION_INFO parser of Slurm's data_parser plugins, and dump_part_info() of its older openapi
 * plugins. Which one is the default is not told by v0.0.39 to v0.0.44. */
#include "source/json_answers.h"
#include "source/json_table.h"
#include "source/partition_list.h"

struct json_partitions {
    struct json_answer json;
    struct partition_list list;
    struct partition partition; /* the one being read */
    bool has_state;             /* … been told; v0.0.36 has none */
};

static const struct json_member partition_members[] = {
    MEMBER(struct partition, "name", SHAPE_NAME, name),
    MEMBER(struct partition, "maximums/time", SHAPE_U32, time_limit_minutes),
    MEMBER(struct partition, "max_time_limit", SHAPE_U32, time_limit_minutes), /* up to v0.0.38 */
    MEMBER_WORDS("partition/state"),
    MEMBER_WORDS("state"), /* up to v0.0.38 */
    MEMBER_WORDS("flags"), /* up to v0.0.38, and from v0.0.45 on */
};

static void *begin_partition(struct answer *answer)
{
    struct json_partitions *all = (struct json_partitions *)answer;

    all->partition = (struct partition){ .time_limit_minutes = MODEL_UNKNOWN_U32 };
    all->has_state = false;
    return &all->partition;
}

static void add_word(struct answer *answer, void *record, const struct json_member *member,
                     struct str word)
{
    struct partition *partition = record;

    if (str_eq(member->key, STR("flags"))) {
        partition->is_default |= str_eq_nocase(word, STR("default"));
    } else {
        partition->is_up = str_eq_nocase(word, STR("up"));
        ((struct json_partitions *)answer)->has_state = true;
    }
}

static void end_partition(struct answer *answer, void *record)
{
    struct json_partitions *all = (struct json_partitions *)answer;
    const struct partition *partition = record;

    if (partition->name)
        partition_list_tell(&all->list, partition, all->has_state);
    else
        answer_leave_out(answer, STR("a partition without a name"));
}

static const struct json_table partition_table = {
    .members = partition_members,
    .n = COUNT(partition_members),
    .begin = begin_partition,
    .word = add_word,
    .end = end_partition,
};

static const struct json_member document_members[] = {
    MEMBER_LIST("partitions", &partition_table),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    json_answer_begin(answer, &document);
    partition_list_init(&((struct json_partitions *)answer)->list, answer->section);
}

static int end(struct answer *answer, struct err *err)
{
    int code = json_answer_end(answer, err);

    if (code == 0)
        partition_list_finish(&((struct json_partitions *)answer)->list);
    return code;
}

static void release(struct answer *answer)
{
    json_answer_free(answer);
    partition_list_free(&((struct json_partitions *)answer)->list);
}

const struct answer_class answer_json_partitions = {
    .size = sizeof(struct json_partitions),
    .begin = begin,
    .feed = json_answer_feed,
    .end = end,
    .free = release,
};
