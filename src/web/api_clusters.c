/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clusters of which anything is kept. */
#include "web/api_call.h"

#define CLUSTER(name, type, member)                                                                \
    {                                                                                              \
        name, type, offsetof(struct cluster_row, member)                                           \
    }

static const struct api_field cluster_fields[] = {
    CLUSTER("name", API_TEXT, name),
    CLUSTER("runs", API_U64, runs),
    CLUSTER("nodes", API_U64, nodes),
    CLUSTER("first_submit_time", API_TIME, first_submit_time),
    CLUSTER("last_seen_time", API_TIME, last_seen_time),
    CLUSTER("accounted_since", API_TIME, accounted_since),
    CLUSTER("accounted_until", API_TIME, accounted_until),
};

static const struct api_shape cluster_shape = API_FIELDS(cluster_fields);
static const struct api_member members[] = {
    { "clusters", API_MEMBER_LIST, false, "By name.", &cluster_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

static int answer_clusters(struct api_call *call)
{
    struct cluster_row *rows;
    size_t n;
    int code = store_clusters(call->reader, &call->arena, &rows, &n, &call->err);

    if (code < 0)
        return code;
    api_json_list(&call->out, "clusters", cluster_fields, COUNT(cluster_fields), rows, n,
                  sizeof(*rows));
    return 0;
}

const struct api_resource api_clusters = {
    .path = "/api/v1/clusters",
    .shown = "/api/v1/clusters",
    .summary = "The clusters, and what is kept of each.",
    .example = "",
    .needs = API_STORE,
    .shape = &shape,
    .answer = answer_clusters,
};
