/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cluster's name and release from the "meta" of any document, of /ping for instance: the
 * OPENAPI_META parser of Slurm's data_parser plugins. The cluster is told from v0.0.40 on. What is
 * hidden from us, and from whom, is not in it. */
#include "source/json_answers.h"
#include "source/json_table.h"

struct json_config {
    struct json_answer json;
    symbol release, cluster;
};

#define CONFIG(key, field) MEMBER(struct json_config, key, SHAPE_NAME, field)

/* "Slurm" up to v0.0.39, "slurm" from then on. */
static const struct json_member document_members[] = {
    CONFIG("meta/slurm/release", release),
    CONFIG("meta/Slurm/release", release),
    CONFIG("meta/slurm/cluster", cluster),
    CONFIG("meta/Slurm/cluster", cluster),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    json_answer_begin(answer, &document);
    answer->section->config.user_id = MODEL_UNKNOWN_U32;
}

static int end(struct answer *answer, struct err *err)
{
    struct json_config *all = (struct json_config *)answer;
    struct config *config = &answer->section->config;

    /* A document about something that failed still says who tells of it. */
    all->json.has_content = all->json.has_records = all->release != 0;
    config->cluster = all->cluster;
    config->version = all->release;
    return json_answer_end(answer, err);
}

const struct answer_class answer_json_config = {
    .size = sizeof(struct json_config),
    .begin = begin,
    .feed = json_answer_feed,
    .end = end,
    .free = json_answer_free,
};
