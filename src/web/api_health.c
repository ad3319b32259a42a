/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How sonde itself is: what it knows of each cluster and since when, and what it says of its work,
 * which is for staff. */
#include "web/api_call.h"

struct told_kind {
    struct str kind;
    int64_t time, age_seconds;
    uint64_t bytes_read, skipped;
};

#define KIND(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct told_kind, member)                                             \
    }

static const struct api_field kind_fields[] = {
    KIND("kind", API_TEXT, kind),
    KIND("time", API_TIME, time),
    KIND("age_seconds", API_SPAN, age_seconds),
    KIND("bytes_read", API_U64, bytes_read),
    KIND("skipped", API_U64, skipped),
};
static const struct api_shape kind_shape = API_FIELDS(kind_fields);

static const struct api_member cluster_members[] = {
    { "name", API_MEMBER_TEXT, true, "Its name.", NULL },
    { "trouble", API_MEMBER_TEXT, true, "Why nothing newer is known.", NULL },
    { "kinds", API_MEMBER_LIST, false, "What is known of it.", &kind_shape },
};
static const struct api_shape cluster_shape = API_MEMBERS(cluster_members);

static const struct api_member members[] = {
    { "version", API_MEMBER_TEXT, false, "Of sonde.", NULL },
    { "now", API_MEMBER_TIME, false, "The time here.", NULL },
    { "store_is_readable", API_MEMBER_FLAG, false, "Whether the store can be read.", NULL },
    { "clusters", API_MEMBER_LIST, true, "What is known of each at the moment.", &cluster_shape },
    { "sonde", API_MEMBER_ANY, true, "What sonde says of its work; for staff.", NULL },
};
static const struct api_shape shape = API_MEMBERS(members);

static void put_kinds(struct api_call *call, const struct board_cluster *cluster)
{
    api_json_begin(&call->out, "kinds", '[');
    for (enum kind kind = 0; kind < KINDS; kind++) {
        const struct section *section = cluster->section[kind];
        int64_t time = section ? section->wall_ns / NS_PER_SEC : 0;

        if (!section)
            continue;
        api_json_put(&call->out, NULL, kind_fields, COUNT(kind_fields),
                     &(struct told_kind){ .kind = str_of(kind_name(kind)),
                                          .time = time,
                                          .age_seconds = call->now > time ? call->now - time : 0,
                                          .bytes_read = section->bytes_read,
                                          .skipped = section->skipped });
    }
    buf_byte(&call->out, ']');
}

static void put_clusters(struct api_call *call)
{
    struct buf *out = &call->out;

    if (!call->board)
        return;
    api_json_begin(out, "clusters", '[');
    for (size_t i = 0; i < call->board->n_clusters; i++) {
        const struct board_cluster *cluster = &call->board->cluster[i];

        api_json_begin(out, NULL, '{');
        api_json_text(out, "name", cluster->name);
        api_json_text(out, "trouble", viewer_trouble(&call->viewer, cluster));
        put_kinds(call, cluster);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void put_own(struct api_call *call)
{
    const struct api_config *config = call->config;
    size_t before = call->out.n;

    if (!config->health || !call->viewer.is_staff)
        return;
    api_json_name(&call->out, "sonde");
    if (!api_json_object(&call->out, config->health(config->health_ctx, &call->arena)))
        api_json_undo(&call->out, before);
}

static int answer_health(struct api_call *call)
{
    const bool is_readable = call->reader;

    api_json_text(&call->out, "version", STR(SONDE_VERSION));
    api_json_count(&call->out, "now", (uint64_t)call->now);
    api_json_name(&call->out, "store_is_readable");
    buf_text(&call->out, is_readable ? "true" : "false");
    put_clusters(call);
    put_own(call);
    return 0;
}

const struct api_resource api_health = {
    .path = "/api/v1/health",
    .shown = "/api/v1/health",
    .summary = "How sonde itself is, and since when it knows what.",
    .example = "",
    .needs = API_MAY_STORE | API_MAY_BOARD,
    .shape = &shape,
    .answer = answer_health,
};
