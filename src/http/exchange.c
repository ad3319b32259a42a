/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request from its first line to its answer. libmicrohttpd calls when the header is complete,
 * for each piece of a body, and when all is there; only an answer given in that last call leaves
 * the connection open for the next request. */
#include "http/internal.h"

#include "base/map.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { MOST_ARGUMENTS = 128 }; /* of a query; 56 bytes each, beside a header of max_header */

/* A body that is refused is read to its end nevertheless, up to this: closing a connection with
 * bytes unread resets it, and the answer may be lost. */
static const uint64_t most_discarded = 64 * 1024;

/* A handler that waits for a time that has passed is called again after this, not at once. */
static const int64_t wait_again_ns = 100 * NS_PER_MS;

/* Also called by a worker: the rest of each exchange is left alone. */
static void add_exchange(struct exchange_list *list, struct http_exchange *x)
{
    x->next = NULL;
    if (list->first)
        list->last->next = x;
    else
        list->first = x;
    list->last = x;
}

/* The whole list, by its first; it is empty then. */
static struct http_exchange *take_exchanges(struct exchange_list *list)
{
    struct http_exchange *first = list->first;

    *list = (struct exchange_list){ 0 };
    return first;
}

void exchange_reset(struct http_exchange *x)
{
    if (x->free_state && x->state)
        x->free_state(x->state);
    reply_clear(x);
    buf_free(&x->body);
    webconfig_unref(x->web);
    *x = (struct http_exchange){ .conn = x->conn };
}

static void refuse_place(struct http_exchange *x)
{
    http_add_header(x, MHD_HTTP_HEADER_CONNECTION, "close");
    reply_busy(x);
}

/* Of a request whose header is not here yet, judge_head decides. */
void exchange_refuse(struct http_exchange *x)
{
    if (x->step != STEP_BODY || x->answer.status)
        return;
    if (x->free_state && x->state)
        x->free_state(x->state);
    x->state = NULL;
    http_drop_body(x);
    refuse_place(x);
}

static void suspend(struct http_exchange *x, enum step step)
{
    x->step = step;
    conn_enter(x->conn, STAGE_BUSY);
    MHD_suspend_connection(x->conn->mhd);
}

static void resume(struct http_exchange *x)
{
    x->conn->listener->must_run = true;
    MHD_resume_connection(x->conn->mhd);
}

static bool path_matches(const char *pattern, struct str path)
{
    struct str after = str_of(pattern), before = str_cut(&after, '*');
    struct str rest = str_skip(path, before.n);

    if (!after.p)
        return str_eq(before, path);
    if (!str_starts(path, before))
        return false;
    return !after.n || str_eq(str_skip(rest, str_find(rest, '/')), after);
}

/* How much of a path its pattern says, an exact one the most. */
static size_t path_weight(const char *pattern)
{
    size_t n = strlen(pattern);

    return strcspn(pattern, "*") == n ? 2 * n + 1 : 2 * (n - 1);
}

static bool method_matches(const struct http_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* The most specific one that has the path decides, whatever its method. */
static void find_route(struct http_exchange *x, const char *method)
{
    const struct http_route *routes = exchange_server(x)->config.routes;

    for (const struct http_route *r = routes; r->path; r++)
        if (path_matches(r->path, x->path) &&
            (!x->same_path || path_weight(r->path) > path_weight(x->same_path->path)))
            x->same_path = r;
    for (const struct http_route *r = x->same_path; r && r->path && !x->route; r++)
        if (strcmp(r->path, x->same_path->path) == 0 && method_matches(r, method))
            x->route = r;
}

static void reply_wrong_method(struct http_exchange *x)
{
    struct buf list;

    buf_init(&list, 200);
    for (const struct http_route *r = exchange_server(x)->config.routes; r->path; r++)
        if (strcmp(r->path, x->same_path->path) == 0)
            buf_printf(&list, "%s%s%s", list.n ? ", " : "", r->method,
                       strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
    http_add_header(x, MHD_HTTP_HEADER_ALLOW, list.p);
    buf_free(&list);
    reply_text(x, MHD_HTTP_METHOD_NOT_ALLOWED, "this path does not take that method\n");
}

void http_reply_unauthorized(struct http_exchange *x, const char *sentence)
{
    struct http_server *server = exchange_server(x);

    atomic_fetch_add(&server->refused_auth, 1);
    if (server->web->n_users)
        http_add_header(x, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                        "Basic realm=\"sonde\", charset=\"UTF-8\"");
    reply_text(x, MHD_HTTP_UNAUTHORIZED, sentence);
}

/* The token bucket of the toolkit's rate_limit. */
static bool within_rate(struct http_server *server)
{
    const struct webconfig *web = server->web;
    int64_t now;

    if (!web->rate_interval_ns)
        return true;
    now = server_now(server);
    server->rate_tokens += (double)(now - server->rate_at_ns) / (double)web->rate_interval_ns;
    server->rate_at_ns = now;
    if (server->rate_tokens > (double)web->rate_burst)
        server->rate_tokens = (double)web->rate_burst;
    if (server->rate_tokens < 1)
        return false;
    server->rate_tokens--;
    return true;
}

/* Puts the refusal into the answer; the request is read to its end all the same. */
static void accept_verdict(struct http_exchange *x, enum auth_verdict verdict)
{
    if (verdict == AUTH_RIGHT)
        x->user = x->waiter.user;
    else if (verdict == AUTH_WRONG)
        http_reply_unauthorized(x, "name and password, please\n");
    else
        reply_busy(x);
}

/* True if the verdict must be waited for. */
static bool ask_password(struct http_exchange *x)
{
    struct http_server *server = exchange_server(x);
    enum auth_verdict verdict;

    x->web = webconfig_ref(server->web);
    x->waiter.must_not_wait = !client_may_wait(x);
    verdict = auth_check(server->auth, x->web, http_header(x, MHD_HTTP_HEADER_AUTHORIZATION),
                         http_client(x), &x->waiter);
    if (verdict == AUTH_LATER)
        return true;
    accept_verdict(x, verdict);
    return false;
}

static enum MHD_Result count_lengths(void *arg, enum MHD_ValueKind kind, const char *key,
                                     size_t key_size, const char *value, size_t value_size)
{
    unsigned *lengths = arg;
    struct str name = { key, key_size };

    (void)kind;
    (void)value;
    (void)value_size;
    *lengths += str_eq_nocase(name, STR(MHD_HTTP_HEADER_CONTENT_LENGTH)) ||
                str_eq_nocase(name, STR(MHD_HTTP_HEADER_TRANSFER_ENCODING));
    return MHD_YES;
}

/* A proxy in front of us may see another end of the body than we do, and take what follows for
 * somebody else's request. */
static bool is_ambiguous(const struct http_exchange *x)
{
    unsigned lengths = 0;

    MHD_get_connection_values_n(x->conn->mhd, MHD_HEADER_KIND, count_lengths, &lengths);
    return lengths > 1;
}

static void refuse_header(struct http_exchange *x, const char *sentence)
{
    http_add_header(x, MHD_HTTP_HEADER_CONNECTION, "close");
    reply_text(x, MHD_HTTP_BAD_REQUEST, sentence);
}

static bool needs_password(const struct http_exchange *x)
{
    enum http_access access = x->route ? x->route->access : HTTP_WITH_PASSWORD;

    if (!exchange_server(x)->web->n_users || access == HTTP_OPEN)
        return false;
    return access == HTTP_WITH_PASSWORD || http_header(x, MHD_HTTP_HEADER_AUTHORIZATION).p;
}

/* What can be said of a request before its body has come. True if it must be suspended. */
static bool judge_head(struct http_exchange *x, const char *method, const char *version)
{
    struct http_server *server = exchange_server(x);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    find_route(x, method);
    if (!conn_readmit(x->conn, x->route && x->route->is_urgent))
        refuse_place(x);
    else if (x->is_bad)
        reply_text(x, MHD_HTTP_BAD_REQUEST, "this is no path\n");
    else if (is_ambiguous(x))
        refuse_header(x, "the length of the body is told twice\n");
    else if (header_is_wrong(x, method, version))
        refuse_header(x, "a header line is not valid\n");
    else if (x->is_too_long)
        reply_text(x, MHD_HTTP_URI_TOO_LONG, "the address is too long or has too many arguments\n");
    else if (info && info->header_size > server->config.max_header)
        reply_text(x, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too large\n");
    else if (!within_rate(server))
        reply_text(x, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests\n");
    if (x->answer.status)
        return false;
    if (!x->route && x->same_path && x->same_path->access == HTTP_OPEN)
        reply_wrong_method(x);
    else if (needs_password(x))
        return ask_password(x);
    return false;
}

/* What is refused so far is in the answer. */
static enum MHD_Result begin_body(struct http_exchange *x)
{
    uint64_t declared = 0;

    http_body_length(x, &declared);
    x->step = STEP_BODY;
    x->is_admitted = true;
    if (!x->answer.status && !x->route && x->same_path)
        reply_wrong_method(x);
    else if (!x->answer.status && !x->route)
        reply_text(x, MHD_HTTP_NOT_FOUND, "there is nothing at this path\n");
    if (x->route)
        buf_init(&x->body, x->route->max_body);
    if (x->route && declared > x->route->max_body)
        x->is_too_big = true;
    if (declared <= most_discarded && !http_header(x, MHD_HTTP_HEADER_EXPECT).p)
        return MHD_YES;
    if (x->is_too_big && !x->answer.status)
        reply_text(x, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large\n");
    if (!x->answer.status)
        return MHD_YES;
    x->conn->is_unfinished = true;
    return reply_queue(x);
}

static void take_body(struct http_exchange *x, struct str piece)
{
    if (x->answer.status || x->is_too_big)
        return;
    buf_put(&x->body, piece);
    x->is_too_big = x->body.over;
}

/* Follows what a handler said. True if the exchange now waits, off libmicrohttpd's hands. */
static bool obey(struct http_exchange *x, enum http_verdict verdict)
{
    struct http_server *server = exchange_server(x);
    int64_t now;

    switch (verdict) {
    case HTTP_WAIT:
        x->step = STEP_WAIT;
        now = server_now(server);
        if (x->wait_until_ns <= now)
            x->wait_until_ns = now + wait_again_ns;
        if (x->wait_until_ns < server->next_wait_ns)
            server->next_wait_ns = x->wait_until_ns;
        add_exchange(&server->waiting, x);
        return true;
    case HTTP_WORK:
    case HTTP_WORK_UNCONFINED:
        x->is_unconfined = verdict == HTTP_WORK_UNCONFINED;
        x->step = STEP_WORK;
        add_exchange(&server->to_work, x);
        return true;
    case HTTP_DONE:
        break;
    }
    x->step = x->is_admitted ? STEP_ANSWER : STEP_ADMITTED;
    return false;
}

static void *handler_ctx(const struct http_exchange *x)
{
    return x->route->ctx ? x->route->ctx : exchange_server(x)->config.ctx;
}

static enum http_verdict call_handler(struct http_exchange *x)
{
    return (x->is_admitted ? x->route->handle : x->route->admit)(handler_ctx(x), x);
}

/* After judge_head and, where a password was asked for, with it known. */
static enum MHD_Result admit(struct http_exchange *x)
{
    x->started_ns = server_now(exchange_server(x));
    x->wait_until_ns = INT64_MAX;
    if (x->answer.status || !x->route || !x->route->admit || !obey(x, call_handler(x)))
        return begin_body(x);
    suspend(x, x->step);
    return MHD_YES;
}

static void refuse_to_wait(struct http_exchange *x)
{
    if (!x->refuse) {
        reply_busy(x);
        return;
    }
    atomic_fetch_add(&exchange_server(x)->refused_busy, 1);
    x->refuse(handler_ctx(x), x);
}

/* The first call for a request: only now can it be refused for lack of room. */
static enum http_verdict call_first(struct http_exchange *x)
{
    enum http_verdict verdict = call_handler(x);

    if (verdict == HTTP_DONE || client_may_wait(x))
        return verdict;
    refuse_to_wait(x);
    return HTTP_DONE;
}

/* The request is complete. */
static enum MHD_Result handle(struct http_exchange *x)
{
    struct http_server *server = exchange_server(x);

    x->started_ns = server_now(server);
    x->wait_until_ns = INT64_MAX;
    atomic_fetch_add_explicit(&server->requests, 1, memory_order_relaxed);
    if (x->is_too_big && !x->answer.status)
        reply_text(x, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large\n");
    if (x->answer.status || !obey(x, call_first(x)))
        return reply_queue(x);
    suspend(x, x->step);
    return MHD_YES;
}

/* libmicrohttpd takes memory of the connection for each argument. If that does not suffice, it
 * waits for the rest of a header that it has dropped. So too many are overwritten before it reads
 * them: the text is in its buffer. True if the request must be refused. */
static bool drop_arguments(const char *uri, size_t most_bytes)
{
    char *arguments = strchr(uri, '?');
    unsigned n = 1;

    for (const char *p = arguments; p && *p; p++)
        n += *p == '&';
    if (n <= MOST_ARGUMENTS && strlen(uri) <= most_bytes)
        return false;
    if (arguments)
        memset(arguments, 'x', strlen(arguments));
    return true;
}

void *exchange_on_uri(void *arg, const char *uri, struct MHD_Connection *mhd)
{
    struct listener *listener = arg;
    struct http_exchange *x = &conn_of(mhd)->exchange;

    listener->server->progress++;
    reload_adopt(listener->server);
    exchange_reset(x);
    /* Decoded it would end the path early, and a route might take it for its own. */
    x->is_bad = strstr(uri, "%00") != NULL;
    x->is_too_long = drop_arguments(uri, listener->server->config.max_header);
    conn_heard(x->conn);
    return x;
}

enum MHD_Result exchange_on_request(void *arg, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *data_size, void **request_context)
{
    struct listener *listener = arg;
    struct http_exchange *x = *request_context;

    (void)mhd;
    listener->server->progress++;
    if (x->conn->stage == STAGE_CUT) /* what it had sent before may still be read */
        return MHD_NO;
    switch (x->step) {
    case STEP_HEAD:
        if (listener->server->is_draining)
            return MHD_NO;
        x->path = str_of(url);
        if (judge_head(x, method, version)) {
            suspend(x, STEP_VERDICT);
            return MHD_YES;
        }
        return admit(x);
    case STEP_VERDICT:
        conn_enter(x->conn, STAGE_READING);
        accept_verdict(x, x->waiter.verdict);
        return admit(x);
    case STEP_ADMITTED:
        conn_enter(x->conn, STAGE_READING);
        return begin_body(x);
    case STEP_BODY:
        if (*data_size == 0)
            return handle(x);
        take_body(x, (struct str){ data, *data_size });
        *data_size = 0;
        return MHD_YES;
    case STEP_ANSWER:
        return reply_queue(x);
    default:
        return MHD_NO;
    }
}

void exchange_on_completed(void *arg, struct MHD_Connection *mhd, void **request_context,
                           enum MHD_RequestTerminationCode why)
{
    struct listener *listener = arg;
    struct http_exchange *x = *request_context;

    (void)mhd;
    (void)why;
    listener->server->progress++;
    if (!x)
        return;
    exchange_reset(x);
    conn_enter(x->conn, STAGE_RESTING);
    *request_context = NULL;
}

/* On the pool. */
static void work(struct pool_job *job)
{
    struct http_exchange *x =
        (struct http_exchange *)((char *)job - offsetof(struct http_exchange, job));
    struct http_server *server = exchange_server(x);

    x->route->work(handler_ctx(x), x);
    pthread_mutex_lock(&server->lock);
    add_exchange(&server->done, x);
    pthread_mutex_unlock(&server->lock);
    server_signal(server);
}

void exchange_start_work(struct http_server *server)
{
    struct http_exchange *to_work = take_exchanges(&server->to_work);

    while (to_work) {
        struct http_exchange *x = to_work;
        struct pool *pool = x->is_unconfined ? server->reload_worker : server->workers;

        to_work = x->next;
        x->job.run = work;
        if (x->route->work && pool_push(pool, &x->job))
            continue;
        if (x->route->work)
            refuse_to_wait(x);
        obey(x, HTTP_DONE);
        resume(x);
    }
}

void exchange_call_waiting(struct http_server *server, bool all)
{
    struct http_exchange *waiting = take_exchanges(&server->waiting);
    int64_t now = server_now(server);

    server->next_wait_ns = INT64_MAX;
    while (waiting) {
        struct http_exchange *x = waiting;
        enum http_verdict verdict = HTTP_WAIT;

        waiting = x->next;
        if (all || x->wait_until_ns <= now)
            verdict = call_handler(x);
        if (!obey(x, verdict))
            resume(x);
    }
}

static void settle_passwords(struct http_server *server)
{
    struct auth_waiter *waiter;

    while (server->auth && auth_settle(server->auth, &waiter)) {
        while (waiter) {
            struct http_exchange *x =
                (struct http_exchange *)((char *)waiter - offsetof(struct http_exchange, waiter));

            waiter = waiter->next;
            resume(x);
        }
    }
}

void exchange_finish_work(struct http_server *server)
{
    struct http_exchange *done;

    pthread_mutex_lock(&server->lock);
    done = take_exchanges(&server->done);
    pthread_mutex_unlock(&server->lock);
    while (done) {
        struct http_exchange *x = done;

        done = x->next;
        if (!obey(x, x->answer.status ? HTTP_DONE : call_handler(x)))
            resume(x);
    }
    settle_passwords(server);
}

void exchange_give_up(struct http_server *server)
{
    for (struct conn *conn = server->stages[STAGE_BUSY].first; conn; conn = conn->next) {
        struct http_exchange *x = &conn->exchange;

        if (x->step == STEP_VERDICT) {
            x->waiter.verdict = AUTH_BUSY;
        } else {
            reply_busy(x);
            x->step = STEP_ANSWER;
        }
        resume(x);
    }
}
