/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs, newest first, a page at a time. */
#include "web/api_call.h"
#include "web/api_key.h"

static const struct api_param params[] = {
    API_FILTER_PARAMS,
    API_PARAM("from", API_PARAM_TIME, filter.from, "That waited, ran or ended after this time."),
    API_PARAM("to", API_PARAM_TIME, filter.to, "That waited, ran or ended before this time."),
    API_PARAM("ended", API_PARAM_FLAG, filter.by_end, "Only those that ended between from and to."),
    API_PARAM("limit", API_PARAM_LIMIT, limit, "Rows of a page: 50 if not told, at most 1000."),
    API_PARAM("after", API_PARAM_RUN, after, "What follows this key: the \"next\" of a page."),
};

struct page {
    struct api_call *call;
    const struct api_choice *choice;
    size_t n;
    struct buf last; /* the key of the last row */
};

/* Once there is one more than fits on the page, it is known that there is more. */
static int put_row(void *ctx, const struct job_row *row)
{
    struct page *page = ctx;
    struct api_call *call = page->call;
    const struct api_request *request = &call->request;

    if (page->choice && !page->choice->has(page->choice->ctx, row))
        return 0;
    if (page->n == request->limit) {
        buf_put(&call->after, buf_str(&page->last));
        return -ECANCELED;
    }
    page->n++;
    buf_reset(&page->last);
    api_key_put_run(&page->last, &row->key);
    api_json_put(&call->out, NULL, api_job_fields, n_api_job_fields, row);
    return call->out.over ? -EFBIG : 0;
}

int api_put_jobs(struct api_call *call, const struct job_filter *filter,
                 const struct api_choice *choice)
{
    const struct api_request *request = &call->request;
    const struct job_order order = { .after = request->after,
                                     .limit = choice ? 0 : request->limit + 1 };
    struct page page = { .call = call, .choice = choice };
    int code;

    buf_init(&page.last, API_KEY_MAX);
    api_json_begin(&call->out, "jobs", '[');
    code = store_jobs(call->reader, filter, &order, call->now, put_row, &page, &call->err);
    buf_byte(&call->out, ']');
    buf_free(&page.last);
    return code == -ECANCELED ? 0 : code;
}

static int answer_jobs(struct api_call *call)
{
    const struct job_filter *filter = &call->request.filter;

    if (filter->from && filter->to && filter->from >= filter->to)
        return api_refuse(call, 400, "from must lie before to");
    if (filter->by_end && !filter->from && !filter->to)
        return api_refuse(call, 400, "ended=true needs a time: add from, to, or both");
    return api_put_jobs(call, filter, NULL);
}

static const struct api_member members[] = {
    { "jobs", API_MEMBER_LIST, false, "The newest submit time first.", &api_row_shape },
    { "next", API_MEMBER_KEY, false, "The key of what follows.", NULL },
};
static const struct api_shape shape = API_MEMBERS(members);

const struct api_resource api_jobs = {
    .path = "/api/v1/jobs",
    .shown = "/api/v1/jobs",
    .summary = "Runs of jobs, newest first, a page at a time.",
    .example = "?state=FAILED,TIMEOUT&min_gpus=1&limit=10",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_STORE,
    .shape = &shape,
    .answer = answer_jobs,
};
