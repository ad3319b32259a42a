/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The jobs that Slurm knows at the moment, filtered and sorted, a page by its offset. */
#include "web/api_call.h"
#include "web/job_find.h"

static const struct api_param params[] = {
    API_QUEUE_PARAMS,
    API_PARAM("reason", API_PARAM_WORDS, reasons, "That wait for any of these reasons."),
    API_PARAM("q", API_PARAM_PHRASE, phrase,
              "With this anywhere in id, name, user, account or node list, whatever its case."),
    API_PARAM("sort", API_PARAM_SORT, sort,
              "By this column, or with a minus the most first: submit, id, name, user, account, "
              "partition, state, reason, nodes, cpus, gpus, memory, start, elapsed, limit, "
              "priority. The newest first if not told."),
    API_PARAM("offset", API_PARAM_OFFSET, offset, "So many rows are left out before the first."),
    API_PARAM("limit", API_PARAM_LIMIT, limit, "Rows of a page: 50 if not told, at most 1000."),
};

static const struct api_member members[] = {
    { "now", API_MEMBER_TIME, false, "When it was looked at.", NULL },
    { "matches", API_MEMBER_COUNT, false, "Rows in all.", NULL },
    { "tasks", API_MEMBER_COUNT, false, "Jobs in all, every task of an array counted.", NULL },
    { "offset", API_MEMBER_COUNT, false, "Of the first row.", NULL },
    { "jobs", API_MEMBER_LIST, false, "In the order that is asked for.", &api_row_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

static void put_rows(struct api_call *call, const struct queue_page *page)
{
    struct buf *out = &call->out;

    api_json_begin(out, "jobs", '[');
    for (size_t i = 0; i < page->n && !out->over; i++) {
        struct job_row row;

        job_row_of_board(page->row[i].cluster, page->row[i].job, call->now, &call->arena, &row);
        api_json_put(out, NULL, api_job_fields, n_api_job_fields, &row);
    }
    buf_byte(out, ']');
}

static int answer_queue(struct api_call *call)
{
    const struct api_request *request = &call->request;
    const struct queue_question question = {
        .filter = &request->filter,
        .text = request->phrase,
        .reasons = request->reasons,
        .sort = request->sort.by,
        .is_descending = request->sort.is_descending,
        .offset = request->offset,
        .limit = request->limit,
        .viewer = &call->viewer,
        .now = call->now,
    };
    struct queue_page page;
    int status = api_await(call, KIND_JOBS);

    if (status)
        return status;
    if (queue_find(call->board, &question, &call->arena, &page, &call->err) < 0)
        return 400;
    api_json_count(&call->out, "now", (uint64_t)call->board->now);
    api_json_count(&call->out, "matches", page.matches);
    api_json_count(&call->out, "tasks", page.jobs);
    api_json_count(&call->out, "offset", request->offset);
    put_rows(call, &page);
    return 0;
}

const struct api_resource api_queue = {
    .path = "/api/v1/queue",
    .shown = "/api/v1/queue",
    .summary = "The jobs that Slurm knows at the moment, filtered and sorted, a page at a time.",
    .example = "?state=PENDING&sort=-priority&limit=10",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_BOARD,
    .shape = &shape,
    .answer = answer_queue,
};
