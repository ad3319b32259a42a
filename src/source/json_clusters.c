/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name of the cluster from slurmrestd's /clusters of slurmdbd, for versions whose other
 * documents do not tell it: the CLUSTER_REC parser of Slurm's data_parser plugins, and that of its
 * older openapi plugins. Which of several is ours is not told. */
#include "source/json_answers.h"
#include "source/json_table.h"

struct json_clusters {
    struct json_answer json;
    symbol name; /* of the last one */
    size_t n;
};

static const struct json_member cluster_members[] = {
    MEMBER(struct json_clusters, "name", SHAPE_NAME, name),
};

static void *begin_cluster(struct answer *answer)
{
    ((struct json_clusters *)answer)->n++;
    return answer;
}

static const struct json_table cluster_table = {
    .members = cluster_members,
    .n = COUNT(cluster_members),
    .begin = begin_cluster,
};

static const struct json_member document_members[] = {
    MEMBER_LIST("clusters", &cluster_table),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    json_answer_begin(answer, &document);
}

static int end(struct answer *answer, struct err *err)
{
    const struct json_clusters *all = (const struct json_clusters *)answer;
    int code = json_answer_end(answer, err);

    if (code == 0 && all->n == 1)
        answer->section->config.cluster = all->name;
    return code;
}

const struct answer_class answer_json_clusters = {
    .size = sizeof(struct json_clusters),
    .begin = begin,
    .feed = json_answer_feed,
    .end = end,
    .free = json_answer_free,
};
