/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes as they were last seen, by cluster and name, a page at a time. */
#include "collector/node_gres.h"
#include "web/api_call.h"
#include "web/api_key.h"

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "Of any of these clusters."),
    API_PARAM("name", API_PARAM_HOSTS, filter.nodes, "Any of these nodes."),
    API_PARAM("state", API_PARAM_NODE_STATES, filter.states,
              "In any of these states: drain finds \"idle+drain\"."),
    API_PARAM("partition", API_PARAM_WORDS, filter.partitions, "In any of these partitions."),
    API_PARAM("limit", API_PARAM_LIMIT, limit, "Rows of a page: 50 if not told, at most 1000."),
    API_PARAM("after", API_PARAM_NODE, after_node,
              "What follows this key: the \"next\" of a page."),
};

#define NODE(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct node_row, member)                                              \
    }

static const struct api_field node_fields[] = {
    NODE("cluster", API_TEXT, cluster),
    NODE("name", API_TEXT, record.name),
    NODE("seen_time", API_TIME, seen_time),
    NODE("state", API_TEXT, record.state),
    NODE("partitions", API_TEXT, record.partitions),
    NODE("features", API_TEXT, record.features),
    NODE("gres", API_TEXT, record.gres),
    NODE("gres_used", API_TEXT, record.gres_used),
    NODE("reservation", API_TEXT, record.reservation),
    NODE("reason", API_TEXT, record.reason),
    NODE("reason_user", API_TEXT, record.reason_user),
    NODE("reason_time", API_TIME, record.reason_time),
    NODE("version", API_TEXT, record.version),
    NODE("cpus", API_U32, record.cpus),
    NODE("cpus_alloc", API_U32, record.cpus_alloc),
    NODE("cpus_idle", API_U32, record.cpus_idle),
    NODE("cpus_other", API_U32, record.cpus_other),
    NODE("cpu_load", API_NUMBER, record.cpu_load),
    NODE("memory_bytes", API_U64, record.memory_bytes),
    NODE("memory_alloc_bytes", API_U64, record.memory_alloc_bytes),
    NODE("memory_free_bytes", API_U64, record.memory_free_bytes),
};

struct gres_row {
    struct str name, type;
    uint64_t total, allocated;
};

#define GRES(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct gres_row, member)                                              \
    }

static const struct api_field gres_fields[] = {
    GRES("name", API_TEXT, name),
    GRES("type", API_TEXT, type),
    GRES("total", API_U64, total),
    GRES("allocated", API_U64, allocated),
};

static const struct api_shape gres_shape = API_FIELDS(gres_fields);
static const struct api_member node_members[] = {
    { "gres_by_type", API_MEMBER_LIST, true, "GRES by name and type, GPUs included.", &gres_shape },
};
static const struct api_shape node_shape = { node_fields, COUNT(node_fields), node_members,
                                             COUNT(node_members) };
static const struct api_member members[] = {
    { "nodes", API_MEMBER_LIST, false, "By cluster and name.", &node_shape },
    { "next", API_MEMBER_KEY, false, "The key of what follows.", NULL },
};
static const struct api_shape shape = API_MEMBERS(members);

/* Whether this cluster's nodes may be told, and asked for by this. */
static bool is_told(const struct api_call *call, const struct board_cluster *cluster)
{
    return api_tells(call, cluster, PRIVATE_NODES) &&
           (!call->request.filter.partitions.n || api_tells(call, cluster, PRIVATE_PARTITIONS));
}

/* Who is not staff is told of clusters only of which it is known what they keep private. */
static int choose_clusters(struct api_call *call, struct words *clusters)
{
    const struct board *board = call->board;
    struct str *name;
    size_t n = 0;

    if (call->viewer.is_staff)
        return 0;
    if (!board)
        return api_refuse(call, 503, "it is not known at the moment whether nodes are private");
    name = ARENA_ARRAY(&call->arena, struct str, board->n_clusters);
    for (size_t i = 0; i < board->n_clusters; i++)
        if (is_told(call, &board->cluster[i]))
            name[n++] = board->cluster[i].name;
    *clusters = (struct words){ name, n };
    return n ? 0
             : api_refuse(call, 403,
                          "no such cluster tells its nodes: they are private (PrivateData of "
                          "slurm.conf)");
}

/* What they have that others may not know. */
static void hide_private(const struct api_call *call, struct node_row *row)
{
    const struct board_cluster *cluster =
        call->board ? board_find(call->board, row->cluster) : NULL;

    if (!viewer_may_see_user(&call->viewer, row->record.reason_user))
        row->record.reason_user = (struct str){ 0 };
    if (!cluster)
        return;
    if (viewer_is_denied(&call->viewer, cluster, PRIVATE_PARTITIONS))
        row->record.partitions = (struct str){ 0 };
    if (viewer_is_denied(&call->viewer, cluster, PRIVATE_RESERVATIONS))
        row->record.reservation = (struct str){ 0 };
}

static void put_gres(struct api_call *call, const struct node_record *record)
{
    struct gres_row rows[GRES_TYPES_ROOM];
    struct gres_reader reader;
    struct node_gres gres;

    gres_reader_init(&reader, NULL, STR(""));
    node_gres_read_text(&reader, record->gres, record->gres_used, &gres);
    for (size_t i = 0; i < gres.n; i++) {
        const struct node_gres_item *item = &gres.item[i];

        rows[i] =
            (struct gres_row){ gres_name(&reader, item->type), gres_type_name(&reader, item->type),
                               item->count, item->allocated };
    }
    if (gres.n)
        api_json_list(&call->out, "gres_by_type", gres_fields, COUNT(gres_fields), rows, gres.n,
                      sizeof(*rows));
    gres_reader_free(&reader);
}

static void put_nodes(struct api_call *call, const struct node_row *rows, size_t n)
{
    api_json_begin(&call->out, "nodes", '[');
    for (size_t i = 0; i < n; i++) {
        api_json_begin(&call->out, NULL, '{');
        api_json_fields(&call->out, node_fields, COUNT(node_fields), &rows[i]);
        put_gres(call, &rows[i].record);
        buf_byte(&call->out, '}');
    }
    buf_byte(&call->out, ']');
}

static int answer_nodes(struct api_call *call)
{
    const struct api_request *request = &call->request;
    struct node_filter filter = {
        .clusters = request->filter.clusters,
        .names = request->filter.nodes,
        .states = request->filter.states,
        .partitions = request->filter.partitions,
        .after_cluster = request->after_node.cluster,
        .after_name = request->after_node.name,
        .limit = request->limit + 1,
    };
    struct node_row *rows;
    size_t n;
    int code = choose_clusters(call, &filter.clusters);

    if (code)
        return code;
    code = store_nodes(call->reader, &filter, &call->arena, &rows, &n, &call->err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++)
        hide_private(call, &rows[i]);
    put_nodes(call, rows, n < request->limit ? n : request->limit);
    if (n > request->limit) {
        const struct node_row *last = &rows[request->limit - 1];

        api_key_put_node(&call->after, &(struct api_node_key){ last->cluster, last->record.name });
    }
    return 0;
}

const struct api_resource api_nodes = {
    .path = "/api/v1/nodes",
    .shown = "/api/v1/nodes",
    .summary = "Nodes as they were last seen, a page at a time.",
    .example = "?state=drain,down",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_STORE | API_MAY_BOARD,
    .shape = &shape,
    .answer = answer_nodes,
};
