/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partitions, with what their nodes have and their jobs hold. */
#include "web/api_call.h"

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "Of any of these clusters."),
    API_PARAM("name", API_PARAM_WORDS, filter.partitions, "Any of these partitions."),
};

struct told {
    struct str cluster, name;
    bool is_default, is_up;
    uint32_t time_limit_minutes;
    uint64_t nodes, nodes_unusable;
    double gpus, gpus_allocated;
};

#define TOLD(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct told, member)                                                  \
    }

/* The first ones are known of every partition, the last if the source tells its settings. */
static const struct api_field fields[] = {
    TOLD("cluster", API_TEXT, cluster),
    TOLD("name", API_TEXT, name),
    TOLD("nodes", API_U64, nodes),
    TOLD("nodes_unusable", API_U64, nodes_unusable),
    TOLD("gpus", API_NUMBER, gpus),
    TOLD("gpus_allocated", API_NUMBER, gpus_allocated),
    TOLD("time_limit_seconds", API_MINUTES, time_limit_minutes),
    TOLD("is_default", API_FLAG, is_default),
    TOLD("is_up", API_FLAG, is_up),
};
enum { SETTINGS = 3 };

static const struct api_member partition_members[] = {
    { "cpus", API_MEMBER_OBJECT, false, "CPUs of its nodes.", &api_amount_shape },
    { "memory_bytes", API_MEMBER_OBJECT, false, "Memory of its nodes.", &api_amount_shape },
    { "holding", API_MEMBER_OBJECT, false, "What its jobs hold.", &api_held_shape },
    { "pending", API_MEMBER_OBJECT, false, "What those that wait ask for.", &api_held_shape },
};
static const struct api_shape partition_shape = API_SHAPE(fields, partition_members);
static const struct api_member members[] = {
    { "partitions", API_MEMBER_LIST, false, "In Slurm's order.", &partition_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

static void put_shape(struct buf *out, const char *name, const struct api_shape *of,
                      const void *from)
{
    api_json_put(out, name, of->fields, of->n_fields, from);
}

static void put_partition(struct buf *out, const struct board_cluster *cluster,
                          const struct sums_partition *sums)
{
    const struct section *section = cluster->section[KIND_NODES];
    const struct partition *partition = sums->partition;
    const struct told told = {
        .cluster = cluster->name,
        .name = section_text(section, partition->name),
        .is_default = partition->is_default,
        .is_up = partition->is_up,
        .time_limit_minutes = partition->time_limit_minutes,
        .nodes = sums->nodes,
        .nodes_unusable = sums->nodes_unusable,
        .gpus = sums->gpus,
        .gpus_allocated = sums->gpus_allocated,
    };
    bool lacks_settings = section->nodes.lacks_settings;

    api_json_begin(out, NULL, '{');
    api_json_fields(out, fields, COUNT(fields) - (lacks_settings ? SETTINGS : 0), &told);
    put_shape(out, "cpus", &api_amount_shape, &sums->cpus);
    put_shape(out, "memory_bytes", &api_amount_shape, &sums->memory_bytes);
    put_shape(out, "holding", &api_held_shape, &sums->jobs.holding);
    put_shape(out, "pending", &api_held_shape, &sums->jobs.pending);
    buf_byte(out, '}');
}

static bool is_wanted(const struct words *names, struct str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(names->word[i], name))
            return true;
    return names->n == 0;
}

static void put_cluster(struct api_call *call, const struct board_cluster *cluster)
{
    const struct section *section = cluster->section[KIND_NODES];
    const struct cluster_sums *sums = &cluster->sums;

    for (size_t i = 0; section && i < sums->n_partitions; i++)
        if (is_wanted(&call->request.filter.partitions,
                      section_text(section, sums->partition[i].partition->name)))
            put_partition(&call->out, cluster, &sums->partition[i]);
}

static int answer_partitions(struct api_call *call)
{
    int status = api_await(call, KIND_NODES);

    if (status)
        return status;
    api_json_begin(&call->out, "partitions", '[');
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (api_tells(call, &call->board->cluster[i], PRIVATE_PARTITIONS))
            put_cluster(call, &call->board->cluster[i]);
    buf_byte(&call->out, ']');
    return 0;
}

const struct api_resource api_partitions = {
    .path = "/api/v1/partitions",
    .shown = "/api/v1/partitions",
    .summary = "Partitions, with what their nodes have and their jobs hold.",
    .example = "",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_BOARD,
    .shape = &shape,
    .answer = answer_partitions,
};
