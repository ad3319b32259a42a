/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reservations. For whom they are is told as far as who asks may see it. */
#include "web/api_call.h"

enum { NAMES_BYTES = 1 << 16 };

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "Of any of these clusters."),
};

struct told {
    struct str cluster, name, nodes, users, accounts, partition, flags, tres;
    uint32_t node_count, core_count;
    bool is_active;
    int64_t start_time, end_time;
};

#define TOLD(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct told, member)                                                  \
    }

static const struct api_field fields[] = {
    TOLD("cluster", API_TEXT, cluster),
    TOLD("name", API_TEXT, name),
    TOLD("is_active", API_FLAG, is_active),
    TOLD("start_time", API_TIME, start_time),
    TOLD("end_time", API_TIME, end_time),
    TOLD("nodes", API_TEXT, nodes),
    TOLD("node_count", API_U32, node_count),
    TOLD("core_count", API_U32, core_count),
    TOLD("partition", API_TEXT, partition),
    TOLD("flags", API_TEXT, flags),
    TOLD("tres", API_TEXT, tres),
    TOLD("users", API_TEXT, users),
    TOLD("accounts", API_TEXT, accounts),
};

static const struct api_shape reservation_shape = API_FIELDS(fields);
static const struct api_member members[] = {
    { "reservations", API_MEMBER_LIST, false, "In Slurm's order.", &reservation_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

/* Of "alice,bob", those that may be seen. */
static struct str seen_of(struct api_call *call, struct str names,
                          bool (*may_see)(const struct viewer *viewer, struct str name))
{
    struct str seen;
    struct buf list;

    if (call->viewer.is_staff || !names.n)
        return names;
    buf_init(&list, NAMES_BYTES);
    for (struct str name, rest = names; rest.p;) {
        name = str_cut(&rest, ',');
        if (!may_see(&call->viewer, name))
            continue;
        buf_text(&list, list.n ? "," : "");
        buf_put(&list, name);
    }
    seen = arena_str(&call->arena, buf_str(&list));
    buf_free(&list);
    return seen;
}

static void put_reservation(struct api_call *call, const struct board_cluster *cluster,
                            const struct reservation *reservation)
{
    const struct section *section = cluster->section[KIND_RESERVATIONS];
    const struct told told = {
        .cluster = cluster->name,
        .name = section_text(section, reservation->name),
        .nodes = api_tells(call, cluster, PRIVATE_NODES) ? section_text(section, reservation->nodes)
                                                         : (struct str){ 0 },
        .users = seen_of(call, section_text(section, reservation->users), viewer_may_see_user),
        .accounts =
            seen_of(call, section_text(section, reservation->accounts), viewer_may_see_account),
        .partition = api_tells(call, cluster, PRIVATE_PARTITIONS)
                         ? section_text(section, reservation->partition)
                         : (struct str){ 0 },
        .flags = section_text(section, reservation->flags),
        .tres = section_text(section, reservation->tres),
        .node_count = reservation->node_count,
        .core_count = reservation->core_count,
        .is_active = reservation->is_active,
        .start_time = reservation->start_time,
        .end_time = reservation->end_time,
    };

    api_json_put(&call->out, NULL, fields, COUNT(fields), &told);
}

static int answer_reservations(struct api_call *call)
{
    api_json_begin(&call->out, "reservations", '[');
    for (size_t i = 0; i < call->board->n_clusters; i++) {
        const struct board_cluster *cluster = &call->board->cluster[i];
        const struct section *section = cluster->section[KIND_RESERVATIONS];

        if (!section || !api_tells(call, cluster, PRIVATE_RESERVATIONS))
            continue;
        for (size_t k = 0; k < section->reservations.n; k++)
            put_reservation(call, cluster, &section->reservations.reservation[k]);
    }
    buf_byte(&call->out, ']');
    return 0;
}

const struct api_resource api_reservations = {
    .path = "/api/v1/reservations",
    .shown = "/api/v1/reservations",
    .summary = "Reservations that there are at the moment.",
    .example = "",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_BOARD,
    .shape = &shape,
    .answer = answer_reservations,
};
