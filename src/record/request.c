/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to the recorder's thread and their results. */
#include "record/request.h"

static const size_t job_texts[] = {
    offsetof(struct job_record, user),        offsetof(struct job_record, account),
    offsetof(struct job_record, qos),         offsetof(struct job_record, name),
    offsetof(struct job_record, reservation), offsetof(struct job_record, partition),
    offsetof(struct job_record, reason),      offsetof(struct job_record, nodes),
    offsetof(struct job_record, tres),        offsetof(struct job_record, tres_requested),
};

static void copy_extras(struct arena *arena, struct job_record *record)
{
    struct record_extra *extras = ARENA_ARRAY(arena, struct record_extra, record->n_extra);

    for (size_t i = 0; i < record->n_extra; i++) {
        extras[i].name = arena_str(arena, record->extra[i].name);
        extras[i].value = arena_str(arena, record->extra[i].value);
    }
    record->extra = extras;
}

static const struct job_record *copy_jobs(struct arena *arena, const struct job_record *from,
                                          size_t n)
{
    struct job_record *jobs = ARENA_ARRAY(arena, struct job_record, n);

    for (size_t i = 0; i < n; i++) {
        jobs[i] = from[i];
        for (size_t k = 0; k < COUNT(job_texts); k++) {
            struct str *text = (struct str *)(void *)((char *)&jobs[i] + job_texts[k]);

            if (text->n)
                *text = arena_str(arena, *text);
        }
        copy_extras(arena, &jobs[i]);
    }
    return jobs;
}

static const struct final_record *copy_finals(struct arena *arena, const struct final_record *from,
                                              size_t n)
{
    struct final_record *finals = ARENA_ARRAY(arena, struct final_record, n);

    for (size_t i = 0; i < n; i++) {
        finals[i] = from[i];
        finals[i].node = arena_str(arena, from[i].node);
        finals[i].document = arena_str(arena, from[i].document);
    }
    return finals;
}

static const struct summary_record *copy_summaries(struct arena *arena,
                                                   const struct summary_record *from, size_t n)
{
    struct summary_record *summaries = ARENA_ARRAY(arena, struct summary_record, n);

    for (size_t i = 0; i < n; i++) {
        summaries[i] = from[i];
        summaries[i].document = arena_str(arena, from[i].document);
    }
    return summaries;
}

static const struct record_mark *copy_marks(struct arena *arena, const struct record_mark *from,
                                            size_t n)
{
    struct record_mark *marks = ARENA_ARRAY(arena, struct record_mark, n);

    for (size_t i = 0; i < n; i++)
        marks[i] = (struct record_mark){ arena_str(arena, str_of(from[i].name)).p, from[i].value };
    return marks;
}

static int run_put(struct request *request, struct store *store, struct str cluster,
                   const struct changes *seen, struct err *err)
{
    const struct record_batch *batch = &request->batch;
    int code = 0;

    (void)seen;
    for (size_t i = 0; i < batch->n_jobs && code >= 0; i++)
        code = store_put_job(store, cluster, &batch->jobs[i], err);
    for (size_t i = 0; i < batch->n_finals && code >= 0; i++)
        code = store_put_final(store, cluster, &batch->finals[i], err);
    for (size_t i = 0; i < batch->n_summaries && code >= 0; i++)
        code = store_put_summary(store, cluster, &batch->summaries[i], err);
    for (size_t i = 0; i < batch->n_marks && code >= 0; i++)
        code = store_set_mark(store, cluster, batch->marks[i].name, batch->marks[i].value, err);
    return code;
}

struct request *request_put(const struct record_batch *batch)
{
    struct request *request = heap_alloc(sizeof(*request));
    struct arena *arena = &request->arena;

    request->run = run_put;
    request->is_written = true;
    request->batch = *batch;
    request->batch.jobs = copy_jobs(arena, batch->jobs, batch->n_jobs);
    request->batch.finals = copy_finals(arena, batch->finals, batch->n_finals);
    request->batch.summaries = copy_summaries(arena, batch->summaries, batch->n_summaries);
    request->batch.marks = copy_marks(arena, batch->marks, batch->n_marks);
    return request;
}

static int run_marks(struct request *request, struct store *store, struct str cluster,
                     const struct changes *seen, struct err *err)
{
    int code = 0;

    (void)seen;
    for (size_t i = 0; i < request->n && code >= 0; i++)
        code = store_get_mark(store, cluster, request->names[i], 0, &request->values[i], err);
    return code;
}

struct request *request_marks(size_t cluster, const char *const *names, size_t n)
{
    struct request *request = heap_alloc(sizeof(*request));
    const char **copies = ARENA_ARRAY(&request->arena, const char *, n);

    request->run = run_marks;
    request->batch.cluster = cluster;
    request->n = n;
    request->values = ARENA_ARRAY(&request->arena, int64_t, n);
    for (size_t i = 0; i < n; i++)
        copies[i] = arena_str(&request->arena, str_of(names[i])).p;
    request->names = copies;
    return request;
}

/* The store has heard nothing lately of those that are seen unchanged: they are not meant. */
static bool is_seen(const void *ctx, uint32_t job_id)
{
    return changes_sees(ctx, job_id);
}

static int run_open_runs(struct request *request, struct store *store, struct str cluster,
                         const struct changes *seen, struct err *err)
{
    const struct open_filter filter = { request->as_of, request->after, is_seen, seen };

    return store_open_runs(store, cluster, &filter, request->ids, request->most, &request->n, err);
}

struct request *request_open_runs(size_t cluster, int64_t as_of, uint32_t after, size_t most)
{
    struct request *request = heap_alloc(sizeof(*request));

    request->run = run_open_runs;
    request->batch.cluster = cluster;
    request->as_of = as_of;
    request->after = after;
    request->most = most;
    request->ids = ARENA_ARRAY(&request->arena, uint32_t, most);
    return request;
}

struct request *request_free(struct request *request)
{
    if (request) {
        arena_clear(&request->arena);
        free(request);
    }
    return NULL;
}
