/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libmicrohttpd with a thread for each connection, so that one that is held delays no other. */
#include "http_peer.h"

#include "certificates.h"
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { BODY_MAX = 64 << 20, HEADER_MAX = 1 << 20, PIECE = 1 << 16 };

struct exchange {
    struct peer_request request;
    struct buf body;
    bool has_begun, is_kept;
};

struct http_peer {
    const struct certificate *certificate; /* NULL: no TLS */
    const char *unix_path;                 /* NULL: on a port */
    struct MHD_Daemon *daemon;             /* NULL: it is away */
    unsigned short port;
    char url[64];

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct exchange **kept; /* that have come whole */
    size_t n_kept, n_forgotten;
    size_t n_connections, n_held;
    const char *held; /* part of the targets; NULL: none */
    bool is_closing;
    struct peer_reply reply;
    void (*reply_by)(const struct peer_request *request, struct peer_reply *ret);
};

/* A body that is given piece by piece. */
struct giving {
    struct http_peer *peer;
    struct peer_reply reply;
};

/* Names and values follow one another, each with a NUL behind it; an empty name is the end. */
static const char *value_of(const char *pairs, const char *name)
{
    while (pairs[0]) {
        const char *value = pairs + strlen(pairs) + 1;

        if (strcasecmp(pairs, name) == 0)
            return value;
        pairs = value + strlen(value) + 1;
    }
    return "";
}

const char *peer_header(const struct peer_request *request, const char *name)
{
    return value_of(request->headers, name);
}

const char *peer_argument(const struct peer_request *request, const char *name)
{
    return value_of(request->arguments, name);
}

static enum MHD_Result put_pair(void *ctx, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    (void)kind;
    buf_put(ctx, (struct str){ name, strlen(name) + 1 });
    buf_put(ctx, (struct str){ value ? value : "", value ? strlen(value) + 1 : 1 });
    return MHD_YES;
}

static char *pairs_of(struct MHD_Connection *connection, enum MHD_ValueKind kind)
{
    struct buf pairs;
    char *copy;

    buf_init(&pairs, HEADER_MAX);
    MHD_get_connection_values(connection, kind, put_pair, &pairs);
    copy = heap_str(buf_str(&pairs));
    buf_free(&pairs);
    return copy;
}

static struct exchange *exchange_free(struct exchange *exchange)
{
    free(exchange->request.method);
    free(exchange->request.target);
    free(exchange->request.path);
    free(exchange->request.arguments);
    free(exchange->request.headers);
    buf_free(&exchange->body);
    free(exchange);
    return NULL;
}

/* The first of a request. */
static void *on_target(void *ctx, const char *target, struct MHD_Connection *connection)
{
    struct exchange *exchange = heap_alloc(sizeof(*exchange));

    (void)ctx;
    (void)connection;
    buf_init(&exchange->body, BODY_MAX);
    exchange->request.target = heap_str(str_of(target));
    return exchange;
}

static void keep(struct http_peer *peer, struct exchange *exchange)
{
    exchange->is_kept = true;
    peer->kept = heap_resize(peer->kept, peer->n_kept + 1, sizeof(struct exchange *));
    peer->kept[peer->n_kept++] = exchange;
    pthread_cond_broadcast(&peer->changed);
}

static bool is_held(const struct http_peer *peer, const struct exchange *exchange)
{
    return peer->held && !peer->is_closing && strstr(exchange->request.target, peer->held);
}

/* Waits until the peer closes, or for the next byte. */
static void wait_in(struct http_peer *peer, enum peer_manner manner)
{
    int64_t next = clock_mono(&clock_real) + 2 * NS_PER_MS;
    bool in_time = true;

    while (!peer->is_closing && in_time)
        in_time = clock_wait(&clock_real, &peer->changed, &peer->lock,
                             manner == PEER_NEVER ? INT64_MAX : next);
}

static ssize_t give(void *ctx, uint64_t at, char *to, size_t size)
{
    const struct giving *giving = ctx;
    const struct peer_reply *reply = &giving->reply;
    struct http_peer *peer = giving->peer;
    struct str rest;
    bool is_closing;

    pthread_mutex_lock(&peer->lock);
    if (reply->manner == PEER_NEVER || reply->manner == PEER_TRICKLE)
        wait_in(peer, reply->manner);
    is_closing = peer->is_closing;
    pthread_mutex_unlock(&peer->lock);
    if (is_closing || (reply->manner == PEER_HALF && at >= reply->body.n / 2))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (reply->manner == PEER_TRICKLE && at >= reply->body.n) {
        *to = ' ';
        return 1;
    }
    if (reply->manner == PEER_ENDLESS)
        at %= reply->body.n;
    if (at >= reply->body.n)
        return MHD_CONTENT_READER_END_OF_STREAM;
    rest = str_skip(reply->body, (size_t)at);
    if (reply->manner == PEER_HALF)
        rest = str_head(rest, reply->body.n / 2 - (size_t)at);
    else if (reply->manner != PEER_ENDLESS)
        rest = str_head(rest, 1);
    rest = str_head(rest, size);
    memcpy(to, rest.p, rest.n);
    return (ssize_t)rest.n;
}

static struct MHD_Response *make_response(struct http_peer *peer, const struct peer_reply *reply)
{
    bool is_sized = reply->manner == PEER_HALF && !reply->is_chunked;
    struct MHD_Response *response;
    struct giving *giving;

    if (reply->manner == PEER_AT_ONCE && !reply->is_chunked)
        return MHD_create_response_from_buffer(reply->body.n, (void *)(uintptr_t)reply->body.p,
                                               MHD_RESPMEM_MUST_COPY);
    giving = heap_alloc(sizeof(*giving));
    *giving = (struct giving){ peer, *reply };
    response = MHD_create_response_from_callback(is_sized ? reply->body.n : MHD_SIZE_UNKNOWN, PIECE,
                                                 give, giving, free);
    assert_non_null(response);
    return response;
}

/* When it is let go. The body is copied under the lock: a function that replies may use its buffer
 * again for the next request. */
static struct MHD_Response *reply_to(struct http_peer *peer, struct exchange *exchange,
                                     struct peer_reply *ret)
{
    struct MHD_Response *response;

    pthread_mutex_lock(&peer->lock);
    keep(peer, exchange);
    peer->n_held++;
    while (is_held(peer, exchange))
        pthread_cond_wait(&peer->changed, &peer->lock);
    peer->n_held--;
    pthread_cond_broadcast(&peer->changed);
    *ret = peer->reply;
    if (peer->reply_by)
        peer->reply_by(&exchange->request, ret);
    response = make_response(peer, ret);
    pthread_mutex_unlock(&peer->lock);
    return response;
}

static void add_headers(struct MHD_Response *response, const struct peer_reply *reply)
{
    struct str rest = str_of(reply->headers ? reply->headers : "");

    if (reply->type)
        MHD_add_response_header(response, "Content-Type", reply->type);
    while (rest.p && rest.n) {
        struct str value = str_cut(&rest, '\n'), name = str_cut(&value, ':');
        char *parts[] = { heap_str(name), heap_str(str_trim(value)) };

        MHD_add_response_header(response, parts[0], parts[1]);
        free(parts[0]);
        free(parts[1]);
    }
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n_bytes, void **state)
{
    struct exchange *exchange = *state;
    struct http_peer *peer = ctx;
    struct MHD_Response *response;
    struct peer_reply reply;
    enum MHD_Result result;

    (void)version;
    if (!exchange->has_begun) {
        exchange->has_begun = true;
        return MHD_YES;
    }
    if (*n_bytes) {
        buf_put(&exchange->body, (struct str){ bytes, *n_bytes });
        *n_bytes = 0;
        return MHD_YES;
    }
    exchange->request.method = heap_str(str_of(method));
    exchange->request.path = heap_str(str_of(path));
    exchange->request.arguments = pairs_of(connection, MHD_GET_ARGUMENT_KIND);
    exchange->request.headers = pairs_of(connection, MHD_HEADER_KIND);
    exchange->request.body = buf_str(&exchange->body);
    response = reply_to(peer, exchange, &reply);
    add_headers(response, &reply);
    result = MHD_queue_response(connection, reply.status ? reply.status : 200, response);
    MHD_destroy_response(response);
    return result;
}

static void on_end(void *ctx, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    struct exchange *exchange = *state;

    (void)ctx;
    (void)connection;
    if (!exchange->is_kept) {
        exchange_free(exchange);
        return;
    }
    atomic_store(&exchange->request.was_replied_to, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_peer *peer = ctx;

    (void)connection;
    (void)state;
    pthread_mutex_lock(&peer->lock);
    peer->n_connections += what == MHD_CONNECTION_NOTIFY_STARTED;
    pthread_mutex_unlock(&peer->lock);
}

static int listen_on_port(struct http_peer *peer)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(peer->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    getsockname(fd, (struct sockaddr *)&address, &size);
    peer->port = ntohs(address.sin_port);
    return fd;
}

static int listen_on_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    unlink(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

void peer_reopen(struct http_peer *peer)
{
    const struct certificate *own = peer->certificate;
    const struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_KEY, 0, own ? (void *)(uintptr_t)own->key_pem : NULL },
        { MHD_OPTION_HTTPS_MEM_CERT, 0, own ? (void *)(uintptr_t)own->cert_pem : NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    int fd = peer->unix_path ? listen_on_path(peer->unix_path) : listen_on_port(peer);

    assert_null(peer->daemon);
    peer->is_closing = false;
    peer->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | (own ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, peer, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, peer, MHD_OPTION_NOTIFY_COMPLETED, on_end, peer, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, peer, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MAX,
        MHD_OPTION_ARRAY, own ? tls : &tls[2], MHD_OPTION_END);
    assert_non_null(peer->daemon);
}

static struct http_peer *peer_new(void)
{
    struct http_peer *peer = heap_alloc(sizeof(*peer));

    pthread_mutex_init(&peer->lock, NULL);
    clock_cond_init(&peer->changed);
    return peer;
}

struct http_peer *peer_open(const struct certificate *certificate)
{
    struct http_peer *peer = peer_new();

    peer->certificate = certificate;
    peer_reopen(peer);
    snprintf(peer->url, sizeof(peer->url), "http%s://127.0.0.1:%d", certificate ? "s" : "",
             peer->port);
    return peer;
}

struct http_peer *peer_open_unix(const char *path)
{
    struct http_peer *peer = peer_new();

    peer->unix_path = path;
    peer_reopen(peer);
    return peer;
}

void peer_close(struct http_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    peer->is_closing = true;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    if (peer->daemon)
        MHD_stop_daemon(peer->daemon);
    peer->daemon = NULL;
}

struct http_peer *peer_free(struct http_peer *peer)
{
    if (!peer)
        return NULL;
    peer_close(peer);
    for (size_t i = 0; i < peer->n_kept; i++)
        exchange_free(peer->kept[i]);
    free(peer->kept);
    pthread_cond_destroy(&peer->changed);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
    return NULL;
}

const char *peer_url(const struct http_peer *peer)
{
    return peer->url;
}

unsigned short peer_port(const struct http_peer *peer)
{
    return peer->port;
}

void peer_lock(struct http_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
}

void peer_unlock(struct http_peer *peer)
{
    pthread_mutex_unlock(&peer->lock);
}

void peer_reply_with(struct http_peer *peer, struct peer_reply reply)
{
    peer_lock(peer);
    peer->reply = reply;
    peer_unlock(peer);
}

void peer_reply_by(struct http_peer *peer,
                   void (*reply)(const struct peer_request *request, struct peer_reply *ret))
{
    peer_lock(peer);
    peer->reply_by = reply;
    peer_unlock(peer);
}

void peer_hold(struct http_peer *peer, const char *part)
{
    peer_lock(peer);
    peer->held = part;
    peer_unlock(peer);
}

void peer_release(struct http_peer *peer)
{
    peer_hold(peer, NULL);
    pthread_cond_broadcast(&peer->changed);
}

size_t peer_held(struct http_peer *peer)
{
    size_t n;

    peer_lock(peer);
    n = peer->n_held;
    peer_unlock(peer);
    return n;
}

size_t peer_requests(struct http_peer *peer)
{
    size_t n;

    peer_lock(peer);
    n = peer->n_kept - peer->n_forgotten;
    peer_unlock(peer);
    return n;
}

const struct peer_request *peer_request(struct http_peer *peer, size_t n)
{
    int64_t deadline = clock_mono(&clock_real) + TEST_DEADLINE;
    const struct peer_request *request = NULL;
    bool in_time = true;

    peer_lock(peer);
    while (peer->n_kept < peer->n_forgotten + n && in_time)
        in_time = clock_wait(&clock_real, &peer->changed, &peer->lock, deadline);
    if (peer->n_kept >= peer->n_forgotten + n)
        request = &peer->kept[peer->n_forgotten + n - 1]->request;
    peer_unlock(peer);
    if (!request)
        fail_msg("request %zu has not come", n);
    return request;
}

void peer_forget(struct http_peer *peer)
{
    peer_lock(peer);
    peer->n_forgotten = peer->n_kept;
    peer->n_connections = 0;
    peer_unlock(peer);
}

size_t peer_connections(struct http_peer *peer)
{
    size_t n;

    peer_lock(peer);
    n = peer->n_connections;
    peer_unlock(peer);
    return n;
}
