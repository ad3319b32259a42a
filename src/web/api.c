/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP routes of the API. */
#include "web/api.h"

#include "web/api_call.h"
#include "web/api_host.h"
#include "web/api_readers.h"
#include "web/openapi.h"

#include <stdatomic.h>

#define JSON_TYPE "application/json"

enum {
    /* Answers that are being sent, all together: whoever reads slowly holds on to his. Small ones
     * are sent in any case, or one who reads none of his would keep everybody else's away; of 4096
     * connections they are no more than that again. */
    SENDING_BYTES = 256 << 20,
    SMALL_BYTES = 64 << 10,
    LINK_BYTES = 2048, /* a longer one might not fit into the answer's header */
    PAGE_BYTES = 256 << 10,
};

/* A resource of an API: what its route is given. */
struct asked {
    struct api *api;
    const struct api_resource *resource;
};

struct api {
    struct api_config config;
    struct asked asked[API_RESOURCES];
    struct api_readers *readers;
    struct buf page, description; /* made once */
    atomic_bool is_anonymous_allowed, is_host_checked;
    atomic_bool is_away_told; /* that the store cannot be read is in the log */
    atomic_size_t sending_bytes;
};

const struct api_resource *const api_resources[API_RESOURCES] = {
    &api_overview, &api_queue,      &api_jobs,         &api_job,    &api_array,
    &api_nodes,    &api_partitions, &api_reservations, &api_user,   &api_account,
    &api_usage,    &api_constants,  &api_clusters,     &api_search, &api_health,
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

static const struct outcome board_failed = {
    0, 503, "10", "nothing is known of the clusters at the moment: sonde's log says why; try again"
};

static const struct outcome asked_too_much = {
    0, 503, "1", "too much is asked for at once: try again in a moment"
};

static const struct outcome sending_too_much = {
    0, 503, "1", "too many large answers are being sent at the moment: try again"
};

bool api_wants(const struct api_call *call, const struct board_cluster *cluster)
{
    return board_asks(&call->request.filter.clusters, cluster->name);
}

int api_await(struct api_call *call, enum kind kind)
{
    if (board_has_told(call->board, &call->request.filter.clusters, kind))
        return 0;
    return api_refuse(call, 503, "Slurm has not told its %s: try again", kind_name(kind));
}

bool api_tells(const struct api_call *call, const struct board_cluster *cluster,
               enum private_data what)
{
    return api_wants(call, cluster) && !viewer_is_denied(&call->viewer, cluster, what);
}

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

    if (n > SMALL_BYTES && before && before + n > SENDING_BYTES) {
        atomic_fetch_sub(&api->sending_bytes, n);
        reply_outcome(call->x, &sending_too_much);
        return;
    }
    sending = heap_alloc(sizeof(*sending));
    *sending = (struct sending){ api, call->out };
    buf_init(&call->out, 0);
    body =
        http_body_new(&(struct iovec){ sending->text.p, n }, 1, JSON_TYPE, NULL, release, sending);
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

/* Those that follow each other by key. */
static bool has_pages(const struct api_resource *resource)
{
    for (size_t i = 0; i < resource->n_params; i++)
        if (resource->params[i].type == API_PARAM_RUN || resource->params[i].type == API_PARAM_NODE)
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

static bool is_simulated(const struct api_call *call)
{
    for (size_t i = 0; call->board && i < call->board->n_clusters; i++)
        if (call->board->cluster[i].is_simulated)
            return true;
    return call->reader && store_reader_is_simulated(call->reader);
}

static int answer(const struct api_resource *resource, struct api_call *call)
{
    int code;

    buf_byte(&call->out, '{');
    if (is_simulated(call)) {
        api_json_name(&call->out, "simulated");
        buf_text(&call->out, "true");
    }
    code = resource->answer(call);
    if (code == 0 && has_pages(resource))
        put_next(call);
    buf_text(&call->out, "}\n");
    return code == 0 && call->out.over ? -EFBIG : code;
}

static int take_board(struct api *api, struct api_call *call, unsigned needs, int64_t deadline_ns,
                      struct board **ret)
{
    const struct board_source *boards = &api->config.boards;

    *ret = NULL;
    if (!(needs & (API_BOARD | API_MAY_BOARD)))
        return 0;
    if (boards->take)
        *ret = boards->take(boards->ctx, deadline_ns, &call->err);
    if (*ret || !(needs & API_BOARD))
        return 0;
    if (!boards->take)
        return api_refuse(call, 404, "nothing is told here of what the clusters do at the moment");
    LOG(api->config.log, LOG_WARN, "nothing is known of the clusters",
        LOG_STR("error", call->err.text));
    http_add_header(call->x, "Retry-After", board_failed.retry_after);
    return api_refuse(call, board_failed.status, "%s", board_failed.sentence);
}

static int take_reader(struct api *api, struct api_call *call, unsigned needs, int64_t deadline_ns,
                       struct api_reader **ret)
{
    int code;

    *ret = NULL;
    if (!(needs & (API_STORE | API_MAY_STORE)))
        return 0;
    code = api_readers_take(api->readers, deadline_ns, ret, &call->err);
    return needs & API_STORE ? code : 0;
}

static int ask(struct api *api, const struct api_resource *resource, struct api_call *call)
{
    int64_t deadline_ns = http_started(call->x) + api->config.timeout_ns;
    struct api_reader *reader = NULL;
    struct board *board;
    int code;

    if (clock_mono(api->config.clock) >= deadline_ns)
        return -ETIMEDOUT; /* it waited all that time for a worker */
    code = take_board(api, call, resource->needs, deadline_ns, &board);
    if (code == 0)
        code = take_reader(api, call, resource->needs, deadline_ns, &reader);
    call->board = board;
    call->reader = reader ? reader->store : NULL;
    if (code == 0)
        code = answer(resource, call);
    api_readers_give(api->readers, reader, code >= 0);
    board_unref(board);
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

/* What the star of a path stands for. */
static struct str find_rest(const char *pattern, struct str path)
{
    struct str after = str_of(pattern), before = str_cut(&after, '*');
    struct str rest = str_skip(path, before.n);

    return str_head(rest, rest.n > after.n ? rest.n - after.n : 0);
}

static int answer_call(struct api *api, const struct api_resource *resource, struct api_call *call)
{
    struct reading reading = { resource, call, 0 };

    if (viewer_of(&api->config.viewer, call->x, &call->arena, &call->viewer, &call->err) < 0)
        return 403;
    if (http_queries(call->x, take_argument, &reading) < 0)
        return 400;
    api_filter_limit(&call->request.filter, &call->viewer);
    return ask(api, resource, call);
}

static void work(void *ctx, struct http_exchange *x)
{
    struct asked *asked = ctx;
    struct api *api = asked->api;
    struct api_call call = {
        .config = &api->config,
        .x = x,
        .rest = find_rest(asked->resource->path, http_path(x)),
        .now = clock_wall(api->config.clock) / NS_PER_SEC,
    };
    int code;

    buf_init(&call.out, API_ANSWER_BYTES);
    buf_init(&call.after, LINK_BYTES);
    api_request_clear(&call.request);
    code = answer_call(api, asked->resource, &call);
    if (code < 0)
        reply_failure(api, x, code, &call.err);
    else if (code > 0)
        reply_error(x, (unsigned)code, call.err.text);
    else
        send_answer(api, &call);
    buf_free(&call.out);
    buf_free(&call.after);
    arena_clear(&call.arena);
}

static void refuse(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    reply_outcome(x, &asked_too_much);
}

/* Has proved a name, or needs none. Gets a share of the workers then. */
static bool is_known(struct api *api, struct http_exchange *x, struct err *err)
{
    struct arena arena = { 0 };
    struct viewer viewer;
    int code;

    if (api->config.viewer.auth == VIEWER_NONE && !http_user(x).n &&
        !atomic_load(&api->is_anonymous_allowed)) {
        err_set(err, EACCES,
                "this is not for everybody: sonde web wants users in --web.config.file, or "
                "--web.allow-anonymous");
        return false;
    }
    code = viewer_of(&api->config.viewer, x, &arena, &viewer, err);
    if (code == 0)
        http_share(x, viewer.user, refuse);
    arena_clear(&arena);
    return code == 0;
}

/* True, or it is refused. */
static bool is_welcome(struct api *api, struct http_exchange *x)
{
    struct err err;

    if (!is_known(api, x, &err)) {
        reply_error(x, 403, err.text);
        return false;
    }
    if (atomic_load(&api->is_host_checked) &&
        !api_host_is_ours(http_header(x, "Host"), api->config.hosts, api->config.n_hosts)) {
        reply_error(x, 421,
                    "sonde web is not known by this name: call it localhost, or say the name with "
                    "--web.host");
        return false;
    }
    return true;
}

static enum http_verdict begin(void *ctx, struct http_exchange *x)
{
    struct asked *asked = ctx;

    return is_welcome(asked->api, x) ? HTTP_WORK : HTTP_DONE;
}

static enum http_verdict serve_nothing(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    reply_error(x, 404, "there is nothing at this path: /api lists what there is");
    return HTTP_DONE;
}

static enum http_verdict serve_text(struct api *api, struct http_exchange *x, const char *type,
                                    const struct buf *text)
{
    if (is_welcome(api, x))
        http_reply(x, 200, type, buf_str(text));
    return HTTP_DONE;
}

static enum http_verdict serve_page(void *ctx, struct http_exchange *x)
{
    struct api *api = ctx;

    return serve_text(api, x, "text/html; charset=utf-8", &api->page);
}

static enum http_verdict serve_description(void *ctx, struct http_exchange *x)
{
    struct api *api = ctx;

    return serve_text(api, x, JSON_TYPE, &api->description);
}

struct api *api_new(const struct api_config *config)
{
    struct api *api = heap_alloc(sizeof(*api));

    api->config = *config;
    api->readers = api_readers_new(config->store);
    buf_init(&api->page, PAGE_BYTES);
    api_page(&api->page);
    buf_init(&api->description, PAGE_BYTES);
    openapi_put(&api->description);
    return api;
}

struct api *api_free(struct api *api)
{
    if (api) {
        api_readers_free(api->readers);
        buf_free(&api->page);
        buf_free(&api->description);
        free(api);
    }
    return NULL;
}

void api_set_access(struct api *api, bool is_anonymous_allowed, bool is_host_checked)
{
    atomic_store(&api->is_host_checked, is_host_checked);
    atomic_store(&api->is_anonymous_allowed, is_anonymous_allowed);
}

int api_check_store(struct api *api, struct err *err)
{
    struct api_reader *reader = NULL;
    int code = api_readers_take(
        api->readers, clock_mono(api->config.clock) + api->config.timeout_ns, &reader, err);

    api_readers_give(api->readers, reader, true);
    if (code == 0) {
        atomic_store(&api->is_away_told, false);
        return 0;
    }
    if (!atomic_exchange(&api->is_away_told, true))
        LOG(api->config.log, LOG_WARN, "the store cannot be read: answers are 503 until it can",
            LOG_STR("error", err->text));
    return err_set(err, -code, "%s", store_failed.sentence);
}

void api_routes(struct api *api, struct http_route to[API_ROUTES])
{
    static const struct {
        const char *path;
        enum http_verdict (*handle)(void *ctx, struct http_exchange *x);
    } others[] = {
        { "/api", serve_page },
        { "/api/v1/openapi.json", serve_description },
        { "/api/*", serve_nothing },
    };
    _Static_assert(API_ROUTES == API_RESOURCES + COUNT(others), "the header says how many");

    for (size_t i = 0; i < API_RESOURCES; i++) {
        api->asked[i] = (struct asked){ api, api_resources[i] };
        to[i] = (struct http_route){ .method = "GET",
                                     .path = api_resources[i]->path,
                                     .handle = begin,
                                     .work = work,
                                     .ctx = &api->asked[i] };
    }
    for (size_t i = 0; i < COUNT(others); i++)
        to[API_RESOURCES + i] = (struct http_route){
            .method = "GET", .path = others[i].path, .handle = others[i].handle, .ctx = api
        };
}
