/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each cluster has and does at the moment, added up. Totals are for all; who has what, only
 * for those who may see it. */
#include "web/api_call.h"

enum { MOST_LISTED = 100 };

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "Of any of these clusters."),
};

#define FIELD(struct_of, name, type, member)                                                       \
    {                                                                                              \
        name, type, offsetof(struct struct_of, member)                                             \
    }

static const struct api_field amount_fields[] = {
    FIELD(sums_amount, "total", API_NUMBER, total),
    FIELD(sums_amount, "allocated", API_NUMBER, allocated),
    FIELD(sums_amount, "idle", API_NUMBER, idle),
    FIELD(sums_amount, "unusable", API_NUMBER, unusable),
};
const struct api_shape api_amount_shape = API_FIELDS(amount_fields);

static const struct api_field gpu_fields[] = {
    FIELD(sums_gpu, "type", API_TEXT, type),
    FIELD(sums_gpu, "total", API_NUMBER, amount.total),
    FIELD(sums_gpu, "allocated", API_NUMBER, amount.allocated),
    FIELD(sums_gpu, "idle", API_NUMBER, amount.idle),
    FIELD(sums_gpu, "unusable", API_NUMBER, amount.unusable),
};
static const struct api_shape gpu_shape = API_FIELDS(gpu_fields);

static const struct api_field held_fields[] = {
    FIELD(sums_jobs, "jobs", API_NUMBER, jobs),
    FIELD(sums_jobs, "cpus", API_NUMBER, cpus),
    FIELD(sums_jobs, "gpus", API_NUMBER, gpus),
    FIELD(sums_jobs, "memory_bytes", API_NUMBER, memory_bytes),
};
const struct api_shape api_held_shape = API_FIELDS(held_fields);

static const struct api_field node_state_fields[] = {
    FIELD(sums_state, "state", API_TEXT, word),
    FIELD(sums_state, "nodes", API_U64, nodes),
    FIELD(sums_state, "cpus", API_NUMBER, cpus),
};
static const struct api_shape node_state_shape = API_FIELDS(node_state_fields);

#define BY_WORD(name)                                                                              \
    {                                                                                              \
        FIELD(sums_by_word, name, API_TEXT, word),                                                 \
            FIELD(sums_by_word, "jobs", API_NUMBER, jobs.jobs),                                    \
            FIELD(sums_by_word, "cpus", API_NUMBER, jobs.cpus),                                    \
            FIELD(sums_by_word, "gpus", API_NUMBER, jobs.gpus),                                    \
            FIELD(sums_by_word, "memory_bytes", API_NUMBER, jobs.memory_bytes),                    \
    }
static const struct api_field job_state_fields[] = BY_WORD("state"),
                              reason_fields[] = BY_WORD("reason");
static const struct api_shape job_state_shape = API_FIELDS(job_state_fields),
                              reason_shape = API_FIELDS(reason_fields);

/* A node that takes no jobs. */
struct told_node {
    struct str name, state, reason, reason_user;
    int64_t reason_time;
};
static const struct api_field broken_fields[] = {
    FIELD(told_node, "name", API_TEXT, name),
    FIELD(told_node, "state", API_TEXT, state),
    FIELD(told_node, "reason", API_TEXT, reason),
    FIELD(told_node, "reason_user", API_TEXT, reason_user),
    FIELD(told_node, "reason_time", API_TIME, reason_time),
};
static const struct api_shape broken_shape = API_FIELDS(broken_fields);

static const struct api_field group_fields[] = { FIELD(sums_group, "name", API_TEXT, name) };
static const struct api_member group_members[] = {
    { "holding", API_MEMBER_OBJECT, false, "What their jobs hold.", &api_held_shape },
    { "pending", API_MEMBER_OBJECT, false, "What those that wait ask for.", &api_held_shape },
};
static const struct api_shape group_shape = API_SHAPE(group_fields, group_members);

/* What stands of a cluster beside its lists. */
struct told_cluster {
    struct str name, trouble;
    bool is_simulated;
    int64_t nodes_time, jobs_time;
    double stranded_gpus, stranded_cpus;
};
static const struct api_field cluster_fields[] = {
    FIELD(told_cluster, "name", API_TEXT, name),
    FIELD(told_cluster, "simulated", API_FLAG, is_simulated),
    FIELD(told_cluster, "trouble", API_TEXT, trouble),
    FIELD(told_cluster, "nodes_time", API_TIME, nodes_time),
    FIELD(told_cluster, "jobs_time", API_TIME, jobs_time),
    FIELD(told_cluster, "stranded_gpus", API_NUMBER, stranded_gpus),
    FIELD(told_cluster, "stranded_cpus", API_NUMBER, stranded_cpus),
};

static const struct api_member cluster_members[] = {
    { "hidden", API_MEMBER_TEXTS, false, "What Slurm's PrivateData hides from sonde.", NULL },
    { "cpus", API_MEMBER_OBJECT, false, "CPUs.", &api_amount_shape },
    { "memory_bytes", API_MEMBER_OBJECT, false, "Memory.", &api_amount_shape },
    { "gpus", API_MEMBER_LIST, true, "GPUs by type.", &gpu_shape },
    { "node_states", API_MEMBER_LIST, true, "Nodes by state.", &node_state_shape },
    { "job_states", API_MEMBER_LIST, true, "Jobs by state.", &job_state_shape },
    { "reasons", API_MEMBER_LIST, true, "Jobs that wait, by why.", &reason_shape },
    { "broken_nodes", API_MEMBER_COUNT, true, "Nodes that take no jobs.", NULL },
    { "broken", API_MEMBER_LIST, true, "The first 100 of them, the latest reason first.",
      &broken_shape },
    { "users", API_MEMBER_LIST, false, "Those who hold most, 100 at most, as far as you may see.",
      &group_shape },
    { "accounts", API_MEMBER_LIST, false, "Likewise.", &group_shape },
};
static const struct api_shape cluster_shape = API_SHAPE(cluster_fields, cluster_members);
static const struct api_member members[] = {
    { "now", API_MEMBER_TIME, false, "When it was added up.", NULL },
    { "clusters", API_MEMBER_LIST, false, "The clusters.", &cluster_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

static int64_t time_of(const struct section *section)
{
    return section ? section->wall_ns / NS_PER_SEC : 0;
}

static void put_hidden(struct buf *out, const struct section *section)
{
    unsigned hidden = section ? section->config.hidden : 0;

    api_json_begin(out, "hidden", '[');
    for (size_t i = 0; i < PRIVATE_DATA; i++)
        if (hidden & 1u << i) {
            api_json_next(out);
            buf_json(out, private_data_words[i]);
        }
    buf_byte(out, ']');
}

static void put_broken(struct api_call *call, const struct board_cluster *cluster)
{
    const struct cluster_sums *sums = &cluster->sums;
    const struct section *section = cluster->section[KIND_NODES];
    size_t n_told = api_tells(call, cluster, PRIVATE_NODES) ? sums->n_broken : 0;
    struct buf *out = &call->out;

    api_json_count(out, "broken_nodes", sums->n_broken);
    api_json_begin(out, "broken", '[');
    for (size_t i = 0; i < n_told && i < MOST_LISTED; i++) {
        const struct node *node = sums->broken[i];
        struct str by = section_text(section, node->reason_user);
        const struct told_node told = {
            .name = section_text(section, node->name),
            .state = node_state_word(node->state),
            .reason = section_text(section, node->reason),
            .reason_user = viewer_may_see_user(&call->viewer, by) ? by : (struct str){ 0 },
            .reason_time = node->reason_time,
        };

        api_json_put(out, NULL, broken_fields, COUNT(broken_fields), &told);
    }
    buf_byte(out, ']');
}

static void put_groups(struct api_call *call, const char *name, const struct sums_group *group,
                       size_t n, bool (*may_see)(const struct viewer *viewer, struct str name))
{
    struct buf *out = &call->out;
    size_t n_listed = 0;

    api_json_begin(out, name, '[');
    for (size_t i = 0; i < n && n_listed < MOST_LISTED; i++) {
        if (!may_see(&call->viewer, group[i].name))
            continue;
        n_listed++;
        api_json_begin(out, NULL, '{');
        api_json_fields(out, group_fields, COUNT(group_fields), &group[i]);
        api_json_put(out, "holding", held_fields, COUNT(held_fields), &group[i].holding);
        api_json_put(out, "pending", held_fields, COUNT(held_fields), &group[i].pending);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

#define PUT_LIST(out, name, fields, from, n)                                                       \
    api_json_list(out, name, fields, COUNT(fields), from, n, sizeof(*(from)))

/* Nothing is said of what nobody has told, nor of jobs below. */
static void put_node_sums(struct api_call *call, const struct board_cluster *cluster)
{
    const struct cluster_sums *sums = &cluster->sums;

    if (!cluster->section[KIND_NODES])
        return;
    PUT_LIST(&call->out, "gpus", gpu_fields, sums->gpu, sums->n_gpus);
    PUT_LIST(&call->out, "node_states", node_state_fields, sums->state, sums->n_states);
    put_broken(call, cluster);
}

static void put_cluster(struct api_call *call, const struct board_cluster *cluster)
{
    const struct cluster_sums *sums = &cluster->sums;
    const struct told_cluster told = {
        .name = cluster->name,
        .trouble = viewer_trouble(&call->viewer, cluster),
        .is_simulated = cluster->is_simulated,
        .nodes_time = time_of(cluster->section[KIND_NODES]),
        .jobs_time = time_of(cluster->section[KIND_JOBS]),
        .stranded_gpus = sums->stranded_gpus,
        .stranded_cpus = sums->stranded_cpus,
    };
    struct buf *out = &call->out;

    api_json_begin(out, NULL, '{');
    api_json_fields(out, cluster_fields, COUNT(cluster_fields), &told);
    put_hidden(out, cluster->section[KIND_CONFIG]);
    api_json_put(out, "cpus", amount_fields, COUNT(amount_fields), &sums->cpus);
    api_json_put(out, "memory_bytes", amount_fields, COUNT(amount_fields), &sums->memory_bytes);
    put_node_sums(call, cluster);
    if (cluster->section[KIND_JOBS]) {
        PUT_LIST(out, "job_states", job_state_fields, sums->job_state, sums->n_job_states);
        PUT_LIST(out, "reasons", reason_fields, sums->reason, sums->n_reasons);
    }
    put_groups(call, "users", sums->user, sums->n_users, viewer_may_see_user);
    put_groups(call, "accounts", sums->account, sums->n_accounts, viewer_may_see_account);
    buf_byte(out, '}');
}

static int answer_overview(struct api_call *call)
{
    api_json_count(&call->out, "now", (uint64_t)call->board->now);
    api_json_begin(&call->out, "clusters", '[');
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (api_wants(call, &call->board->cluster[i]))
            put_cluster(call, &call->board->cluster[i]);
    buf_byte(&call->out, ']');
    return 0;
}

const struct api_resource api_overview = {
    .path = "/api/v1/overview",
    .shown = "/api/v1/overview",
    .summary = "What each cluster has and does at the moment, added up.",
    .example = "",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_BOARD,
    .shape = &shape,
    .answer = answer_overview,
};
