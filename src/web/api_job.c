/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run whole: all that Slurm said of it, its life, the other runs of its job, and what agents
 * counted of it. */
#include "web/api_call.h"
#include "web/api_key.h"

enum { MOST_RUNS = 100 };

#define RUN(name, type, member)                                                                    \
    {                                                                                              \
        name, type, offsetof(struct job_row, member)                                               \
    }

static const struct api_field run_fields[] = {
    RUN("key", API_RUN_KEY, key),
    RUN("submit_time", API_TIME, record.submit_time),
    RUN("restarts", API_U32, record.restarts),
    RUN("state", API_STATE, record.state),
    RUN("start_time", API_TIME, record.start_time),
    RUN("end_time", API_TIME, record.end_time),
    RUN("elapsed_seconds", API_SPAN, elapsed_seconds),
};

static const struct api_shape run_shape = API_FIELDS(run_fields);
static const struct api_member members[] = {
    { "job", API_MEMBER_OBJECT, false, "Every field.", &api_whole_shape },
    { "life", API_MEMBER_LIST, false, "What it was when.", &api_moment_shape },
    { "runs", API_MEMBER_LIST, false, "All runs of the same job, the newest first.", &run_shape },
    { "agents", API_MEMBER_LIST, false, "What agents counted, node by node.", &api_final_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

struct search {
    struct api_call *call;
    struct run_key key;
    bool is_found, is_hidden;
    int64_t first_submit_time;
    size_t n_runs;
};

static int put_whole(void *ctx, const struct job_row *row)
{
    struct search *search = ctx;
    struct buf *out = &search->call->out;

    if (row->key.submit_time < search->key.submit_time)
        return -ECANCELED;
    if (row->key.job_id != search->key.job_id || !str_eq(row->key.cluster, search->key.cluster))
        return 0;
    search->is_found = true;
    if (!viewer_may_see(&search->call->viewer, row->record.user, row->record.account)) {
        search->is_hidden = true;
        return -ECANCELED;
    }
    search->first_submit_time = row->first_submit_time;
    api_json_name(out, "job");
    buf_byte(out, '{');
    api_put_run(out, row);
    buf_byte(out, '}');
    return -ECANCELED;
}

/* A job id of a cluster is used again after years: those are other jobs. */
static int put_run(void *ctx, const struct job_row *row)
{
    struct search *search = ctx;
    struct buf *out = &search->call->out;

    if (row->record.id != search->key.job_id || row->first_submit_time != search->first_submit_time)
        return 0;
    api_json_put(out, NULL, run_fields, COUNT(run_fields), row);
    return ++search->n_runs == MOST_RUNS ? -ECANCELED : 0;
}

static int for_runs(struct search *search, const struct job_order *order,
                    int (*see)(void *ctx, const struct job_row *row))
{
    struct api_call *call = search->call;
    struct job_filter filter;
    int code;

    job_filter_clear(&filter);
    filter.clusters = (struct words){ &search->key.cluster, 1 };
    filter.ids = &search->key.job_id;
    filter.n_ids = 1;
    code = store_jobs(call->reader, &filter, order, call->now, see, search, &call->err);
    return code == -ECANCELED ? 0 : code;
}

static int put_runs(struct search *search)
{
    int code;

    api_json_name(&search->call->out, "runs");
    buf_byte(&search->call->out, '[');
    code = for_runs(search, &(struct job_order){ 0 }, put_run);
    buf_byte(&search->call->out, ']');
    return code;
}

static int answer_job(struct api_call *call)
{
    struct search search = { .call = call };
    struct job_order whole = { .wants_extra = true };
    int code;

    if (!api_key_read_run(call->rest, &call->arena, &search.key))
        return api_refuse(call, 404, "this is no key: take that of a row of /api/v1/jobs");
    /* From just before it: of an array, this passes over the tasks, which are younger. */
    whole.after = search.key;
    whole.after.job_id++;
    code = for_runs(&search, &whole, put_whole);
    if (code == 0 && !search.is_found)
        return api_refuse(call, 404, "there is no such run: it was deleted, or is another store's");
    if (code == 0 && search.is_hidden)
        return api_refuse(call, 403,
                          "this is another's job: you can see your own, and those of accounts that "
                          "you coordinate");
    if (code == 0)
        code = api_put_life(&call->out, call->reader, &search.key, &call->arena, &call->err);
    if (code == 0)
        code = put_runs(&search);
    if (code == 0)
        code = api_put_agents(&call->out, call->reader, &search.key, &call->arena, &call->err);
    return code;
}

const struct api_resource api_job = {
    .path = "/api/v1/jobs/*",
    .shown = "/api/v1/jobs/KEY",
    .summary = "One run whole: every field, its life, the runs of the same job, what agents "
               "counted.",
    .needs = API_STORE,
    .shape = &shape,
    .answer = answer_job,
};
