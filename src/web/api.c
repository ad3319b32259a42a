/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "web/api.h"

#include "web/api_call.h"
#include "web/api_readers.h"

#include <stdatomic.h>

#define JSON_TYPE "application/json"

enum {
    /* Answers that are being sent, all together: whoever reads slowly holds on to his. */
    SENDING_BYTES = 256 << 20,
    LINK_BYTES = 2048, /* a longer one might not fit into the answer's header */
    PAGE_BYTES = 256 << 10,
};

struct api {
    struct api_config config;
    struct api_readers *readers;
    atomic_bool is_anonymous_allowed;
    atomic_size_t sending_bytes;
};

const struct api_resource *const api_resources[API_RESOURCES] = {
    &api_jobs, &api_job, &api_clusters, &api_nodes, &api_usage, &api_constants,
};

static const struct outcome {
    int code;
    unsigned status;
    const char *retry_after; /* seconds, or NULL */
    const char *sentence;
} outcomes[] = {
    { -ETIMEDOUT, 504, NULL,
      "this took too long: ask for less (a shorter time, more filters), or have --api.timeout "
      "raised" },
    { -EFBIG, 413, NULL,
      "the answer would be too large: ask for less, with a smaller limit, a smaller group_by or "
      "more filters" },
    { -EBUSY, 503, "1", "the store is in use by somebody who keeps all others out: try again" },
};

static const struct outcome store_failed = {
    0, 503, "10", "the store cannot be read at the moment: sonde's log says why; try again"
};

static const struct outcome sending_too_much = {
    0, 503, "1", "too many large answers are being sent at the moment: try again"
};

int api_refuse(struct api_call *call, unsigned status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(call->err.text, sizeof(call->err.text), format, arguments);
    va_end(arguments);
    return (int)status;
}

static void reply_error(struct http_exchange *x, unsigned status, const char *sentence)
{
    struct buf body;

    buf_init(&body, 8 * sizeof(((struct err *)NULL)->text));
    buf_text(&body, "{\"error\":");
    buf_json(&body, str_of(sentence));
    buf_text(&body, "}\n");
    http_add_header(x, "Cache-Control", "no-store");
    http_reply(x, status, JSON_TYPE, buf_str(&body));
    buf_free(&body);
}

static void reply_outcome(struct http_exchange *x, const struct outcome *outcome)
{
    if (outcome->retry_after)
        http_add_header(x, "Retry-After", outcome->retry_after);
    reply_error(x, outcome->status, outcome->sentence);
}

/* Where the store is, and why it cannot be read, is nothing for whoever asks. */
static void reply_failure(struct api *api, struct http_exchange *x, int code, const struct err *err)
{
    for (size_t i = 0; i < COUNT(outcomes); i++)
        if (outcomes[i].code == code) {
            reply_outcome(x, &outcomes[i]);
            return;
        }
    LOG(api->config.log, LOG_ERROR, "the store cannot be read", LOG_STR("error", err->text));
    reply_outcome(x, &store_failed);
}

/* An answer that is being sent. */
struct sending {
    struct api *api;
    struct buf text;
};

static void release(void *ctx)
{
    struct sending *sending = ctx;

    atomic_fetch_sub(&sending->api->sending_bytes, sending->text.n);
    buf_free(&sending->text);
    free(sending);
}

/* Takes over what was written. */
static void send_answer(struct api *api, struct api_call *call)
{
    size_t n = call->out.n, before = atomic_fetch_add(&api->sending_bytes, n);
    struct sending *sending;
    struct http_body *body;

    if (before && before + n > SENDING_BYTES) {
        atomic_fetch_sub(&api->sending_bytes, n);
        reply_outcome(call->x, &sending_too_much);
        return;
    }
    sending = heap_alloc(sizeof(*sending));
    *sending = (struct sending){ api, call->out };
    buf_init(&call->out, 0);
    body =
        http_body_new(&(struct iovec){ sending->text.p, n }, 1, JSON_TYPE, NULL, release, sending);
    http_add_header(call->x, "Cache-Control", "no-store");
    http_reply_body(call->x, body);
    http_body_unref(body);
}

static int put_argument(void *ctx, struct str name, struct str value)
{
    struct buf *link = ctx;

    if (str_eq(name, STR("after")))
        return 0;
    buf_url(link, name);
    buf_byte(link, '=');
    buf_url(link, value);
    buf_byte(link, '&');
    return 0;
}

/* RFC 8288: the same question, from there on. */
static void add_link(const struct api_call *call)
{
    struct buf link;

    buf_init(&link, LINK_BYTES);
    buf_byte(&link, '<');
    buf_put(&link, http_path(call->x));
    buf_byte(&link, '?');
    http_queries(call->x, put_argument, &link);
    buf_text(&link, "after=");
    buf_put(&link, buf_str(&call->after));
    buf_text(&link, ">; rel=\"next\"");
    if (!link.over)
        http_add_header(call->x, "Link", link.p);
    buf_free(&link);
}

static bool has_pages(const struct api_resource *resource)
{
    for (size_t i = 0; i < resource->n_params; i++)
        if (resource->params[i].type == API_PARAM_LIMIT)
            return true;
    return false;
}

static void put_next(struct api_call *call)
{
    api_json_name(&call->out, "next");
    if (call->after.n) {
        buf_json(&call->out, buf_str(&call->after));
        add_link(call);
    } else {
        buf_text(&call->out, "null");
    }
}

static int answer(const struct api_resource *resource, struct api_call *call)
{
    int code;

    buf_byte(&call->out, '{');
    if (call->reader && store_reader_is_simulated(call->reader)) {
        api_json_name(&call->out, "simulated");
        buf_text(&call->out, "true");
    }
    code = resource->answer(call);
    if (code == 0 && has_pages(resource))
        put_next(call);
    buf_text(&call->out, "}\n");
    return code == 0 && call->out.over ? -EFBIG : code;
}

static int ask(struct api *api, const struct api_resource *resource, struct api_call *call)
{
    int64_t deadline_ns = http_started(call->x) + api->config.timeout_ns;
    struct api_reader *reader = NULL;
    int code;

    if (clock_mono(api->config.clock) >= deadline_ns)
        return -ETIMEDOUT; /* it waited all that time for a worker */
    code = api_readers_take(api->readers, deadline_ns, &reader, &call->err);
    if (code < 0 && !resource->works_without_store)
        return code;
    call->reader = reader ? reader->store : NULL;
    code = answer(resource, call);
    api_readers_give(api->readers, reader, code >= 0);
    return code;
}

struct reading {
    const struct api_resource *resource;
    struct api_call *call;
    uint64_t seen;
};

static int take_argument(void *ctx, struct str name, struct str value)
{
    struct reading *reading = ctx;
    struct api_call *call = reading->call;

    return api_request_take(&call->request, reading->resource->params, reading->resource->n_params,
                            &reading->seen, name, value, &call->arena, &call->err);
}

static void work(struct api *api, struct http_exchange *x, const struct api_resource *resource)
{
    struct api_call call = {
        .config = &api->config,
        .x = x,
        .rest = str_skip(http_path(x), strlen(resource->path) - 1),
        .now = clock_wall(api->config.clock) / NS_PER_SEC,
    };
    struct reading reading = { resource, &call, 0 };
    int code;

    buf_init(&call.out, API_ANSWER_BYTES);
    buf_init(&call.after, LINK_BYTES);
    api_request_clear(&call.request);
    if (http_queries(x, take_argument, &reading) < 0)
        reply_error(x, 400, call.err.text);
    else if ((code = ask(api, resource, &call)) < 0)
        reply_failure(api, x, code, &call.err);
    else if (code > 0)
        reply_error(x, (unsigned)code, call.err.text);
    else
        send_answer(api, &call);
    buf_free(&call.out);
    buf_free(&call.after);
    arena_clear(&call.arena);
}

/* A function for each resource: a route has no place for more than the API. */
#define WORK_ON(resource)                                                                          \
    static void work_on_##resource(void *ctx, struct http_exchange *x)                             \
    {                                                                                              \
        work(ctx, x, &api_##resource);                                                             \
    }
WORK_ON(jobs)
WORK_ON(job)
WORK_ON(clusters)
WORK_ON(nodes)
WORK_ON(usage)
WORK_ON(constants)

static void (*const workers[API_RESOURCES])(void *ctx, struct http_exchange *x) = {
    work_on_jobs, work_on_job, work_on_clusters, work_on_nodes, work_on_usage, work_on_constants,
};

static bool is_welcome(struct api *api, struct http_exchange *x)
{
    return http_user(x).n || atomic_load(&api->is_anonymous_allowed);
}

static void refuse_anonymous(struct http_exchange *x)
{
    reply_error(x, 403,
                "this is not for everybody: sonde web wants users in --web.config.file, or "
                "--web.allow-anonymous");
}

static enum http_verdict begin(void *ctx, struct http_exchange *x)
{
    if (is_welcome(ctx, x))
        return HTTP_WORK;
    refuse_anonymous(x);
    return HTTP_DONE;
}

static enum http_verdict serve_nothing(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    reply_error(x, 404, "there is nothing at this path: / lists what there is");
    return HTTP_DONE;
}

static enum http_verdict serve_page(void *ctx, struct http_exchange *x)
{
    struct buf page;

    if (!is_welcome(ctx, x)) {
        refuse_anonymous(x);
        return HTTP_DONE;
    }
    buf_init(&page, PAGE_BYTES);
    api_page(&page);
    http_reply(x, 200, "text/html; charset=utf-8", buf_str(&page));
    buf_free(&page);
    return HTTP_DONE;
}

struct api *api_new(const struct api_config *config)
{
    struct api *api = heap_alloc(sizeof(*api));

    api->config = *config;
    api->readers = api_readers_new(config->store);
    return api;
}

struct api *api_free(struct api *api)
{
    if (api) {
        api_readers_free(api->readers);
        free(api);
    }
    return NULL;
}

void api_set_anonymous(struct api *api, bool is_allowed)
{
    atomic_store(&api->is_anonymous_allowed, is_allowed);
}

void api_routes(struct api *api, struct http_route to[API_ROUTES])
{
    for (size_t i = 0; i < API_RESOURCES; i++)
        to[i] = (struct http_route){ .method = "GET",
                                     .path = api_resources[i]->path,
                                     .handle = begin,
                                     .work = workers[i],
                                     .ctx = api };
    to[API_RESOURCES] = (struct http_route){
        .method = "GET", .path = "/api/*", .handle = serve_nothing, .ctx = api
    };
    to[API_RESOURCES + 1] =
        (struct http_route){ .method = "GET", .path = "/", .handle = serve_page, .ctx = api };
}

_Static_assert(API_ROUTES == API_RESOURCES + 2, "the header says how many routes there are");
