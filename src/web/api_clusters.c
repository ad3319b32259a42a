/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clusters of which anything is kept. */
#include "web/api_call.h"

#define CLUSTER(name, type, member)                                                                \
    {                                                                                              \
        name, type, offsetof(struct cluster_row, member)                                           \
    }

const struct api_field api_cluster_fields[] = {
    CLUSTER("name", API_TEXT, name),
    CLUSTER("runs", API_U64, runs),
    CLUSTER("nodes", API_U64, nodes),
    CLUSTER("first_submit_time", API_TIME, first_submit_time),
    CLUSTER("last_seen_time", API_TIME, last_seen_time),
    CLUSTER("accounted_since", API_TIME, accounted_since),
    CLUSTER("accounted_until", API_TIME, accounted_until),
};
const size_t n_api_cluster_fields = COUNT(api_cluster_fields);

static int answer_clusters(struct api_call *call)
{
    struct cluster_row *rows;
    size_t n;
    int code = store_clusters(call->reader, &call->arena, &rows, &n, &call->err);

    if (code < 0)
        return code;
    api_json_name(&call->out, "clusters");
    buf_byte(&call->out, '[');
    for (size_t i = 0; i < n; i++) {
        api_json_next(&call->out);
        buf_byte(&call->out, '{');
        api_json_fields(&call->out, api_cluster_fields, n_api_cluster_fields, &rows[i]);
        buf_byte(&call->out, '}');
    }
    buf_byte(&call->out, ']');
    return 0;
}

const struct api_resource api_clusters = {
    .path = "/api/v1/clusters",
    .shown = "/api/v1/clusters",
    .summary = "The clusters, and what is kept of each.",
    .example = "",
    .answer = answer_clusters,
};
