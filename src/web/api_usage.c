/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What runs held of a time, as sreport counts it, by whatever is asked for. */
#include "web/api_call.h"

enum { MOST_GROUPS = 10000 };

static const int64_t usual_seconds = 30 * 86400;

static const struct api_param params[] = {
    API_PARAM("group_by", API_PARAM_GROUPS, keys,
              "A row for each of these together: cluster, account, user, partition, qos, gpu_type, "
              "state."),
    API_PARAM("from", API_PARAM_TIME, filter.from,
              "Begin of the time; 30 days before its end if not told."),
    API_PARAM("to", API_PARAM_TIME, filter.to,
              "End of the time, itself excluded; now if not told, or if it lies in the future."),
    API_FILTER_PARAMS,
};

/* What is told of a row, beside its keys. */
struct told {
    struct usage_row row;
    double mean_wait_seconds, cpu_efficiency;
};

#define TOLD(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct told, member)                                                  \
    }

static const struct api_field usage_fields[] = {
    TOLD("jobs", API_U64, row.jobs),
    TOLD("started", API_U64, row.started),
    TOLD("ended", API_U64, row.ended),
    TOLD("cpu_seconds", API_U64, row.cpu_seconds),
    TOLD("gpu_seconds", API_U64, row.gpu_seconds),
    TOLD("billing_seconds", API_U64, row.billing_seconds),
    TOLD("node_seconds", API_U64, row.node_seconds),
    TOLD("memory_byte_seconds", API_NUMBER, row.memory_byte_seconds),
    TOLD("mean_wait_seconds", API_NUMBER, mean_wait_seconds),
    TOLD("cpu_efficiency", API_NUMBER, cpu_efficiency),
};
const struct api_shape api_usage_shape = API_FIELDS(usage_fields);

/* The words of usage_key. */
static const struct api_member key_members[] = {
    { "cluster", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
    { "account", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
    { "user", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
    { "partition", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
    { "qos", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
    { "gpu_type", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
    { "state", API_MEMBER_TEXT, true, "If grouped by it.", NULL },
};
_Static_assert(COUNT(key_members) == USAGE_KEYS, "each has a member");
static const struct api_shape row_shape = API_SHAPE(usage_fields, key_members);
static const struct api_member members[] = {
    { "from", API_MEMBER_TIME, false, "Begin of the time.", NULL },
    { "to", API_MEMBER_TIME, false, "End of the time, itself excluded.", NULL },
    { "rows", API_MEMBER_LIST, false,
      "One for each group. While a run is suspended its CPUs do not count, but its GPUs, billing, "
      "nodes and memory do. Idle time of reservations is not included; sreport adds it to the "
      "reservation's accounts and users.",
      &row_shape },
    { "total", API_MEMBER_OBJECT, false, "Of all together, each run once.", &api_usage_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

void api_put_usage(struct buf *out, const struct usage_row *row)
{
    const struct told told = {
        .row = *row,
        .mean_wait_seconds = row->waited ? (double)row->wait_seconds / (double)row->waited : NAN,
        .cpu_efficiency =
            row->of_cpu_seconds > 0 ? row->used_cpu_seconds / row->of_cpu_seconds : NAN,
    };

    api_json_fields(out, usage_fields, COUNT(usage_fields), &told);
}

static void put_row(struct buf *out, const struct usage_question *question,
                    const struct usage_row *row)
{
    buf_byte(out, '{');
    for (size_t i = 0; i < question->n_keys; i++) {
        struct str word = usage_key_words[question->keys[i]];

        if (!row->keys[i].n)
            continue;
        api_json_next(out);
        buf_json(out, word);
        buf_byte(out, ':');
        buf_json(out, row->keys[i]);
    }
    api_put_usage(out, row);
    buf_byte(out, '}');
}

static int put_rows(struct api_call *call, const struct usage_question *question)
{
    struct usage_row *rows;
    size_t n;
    int code = store_usage(call->reader, question, &call->arena, &rows, &n, &call->err);

    if (code < 0)
        return code;
    api_json_name(&call->out, "rows");
    buf_byte(&call->out, '[');
    for (size_t i = 0; i < n; i++) {
        api_json_next(&call->out);
        put_row(&call->out, question, &rows[i]);
    }
    buf_byte(&call->out, ']');
    return 0;
}

static int answer_usage(struct api_call *call)
{
    const struct api_request *request = &call->request;
    struct usage_row total = { 0 };
    struct usage_question question = {
        .filter = request->filter,
        .keys = request->keys,
        .n_keys = request->n_keys,
        .now = call->now,
        .most = MOST_GROUPS,
        .total = &total,
    };
    struct job_filter *filter = &question.filter;
    int code;

    if (!filter->to || filter->to > call->now)
        filter->to = call->now;
    if (!filter->from)
        filter->from = filter->to - usual_seconds;
    if (filter->from >= filter->to)
        return api_refuse(call, 400, "from must lie before to, and not in the future");
    api_json_name(&call->out, "from");
    buf_i64(&call->out, filter->from);
    api_json_name(&call->out, "to");
    buf_i64(&call->out, filter->to);
    code = put_rows(call, &question);
    if (code < 0)
        return code;
    api_json_name(&call->out, "total");
    question.n_keys = 0;
    put_row(&call->out, &question, &total);
    return 0;
}

const struct api_resource api_usage = {
    .path = "/api/v1/usage",
    .shown = "/api/v1/usage",
    .summary = "What runs held of a time: CPUs, GPUs and billing, by whatever is asked for.",
    .example = "?group_by=account,gpu_type",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_STORE,
    .shape = &shape,
    .answer = answer_usage,
};
