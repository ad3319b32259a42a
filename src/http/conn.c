/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections: how many there may be and how long each may take. libmicrohttpd's own limits are not
 * enough: its timeout starts again with each byte, and at its limit it lets everybody wait. */
#include "http/internal.h"

#include <linux/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    SPARE_SLOTS = 64,        /* for those that are cut but not yet closed */
    SPARE_DESCRIPTORS = 100, /* for everything that is not a client's connection */
    FEWEST_CONNECTIONS = 8,
    LEAST_DELIVERED = 16 * 1024, /* bytes in look_ns; below it a client stalls */
};

/* Prometheus asks every 15 to 60 seconds on one connection. */
static const int64_t rest_ns = NS_PER_SEC, idle_ns = 300 * NS_PER_SEC;

/* How often it is checked whether a client reads its answer. */
static const int64_t look_ns = 2 * NS_PER_SEC;

/* A client that has sent less than a request for longer than this gets no answer when its place is
 * taken. */
static const int64_t refuse_ns = 2 * NS_PER_SEC;

/* A limit that the descriptors do not suffice for would not be one: accept would fail instead. */
static rlim_t count_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return RLIM_INFINITY;
    return limit.rlim_cur > SPARE_DESCRIPTORS + FEWEST_CONNECTIONS
               ? limit.rlim_cur - SPARE_DESCRIPTORS
               : FEWEST_CONNECTIONS;
}

static unsigned at_most(unsigned wanted, rlim_t most)
{
    return wanted < most ? wanted : (unsigned)most;
}

void conn_init(struct http_server *server)
{
    rlim_t descriptors = count_descriptors();

    server->max_connections = at_most(server->config.max_connections, descriptors);
    descriptors -= server->max_connections;
    server->max_refused = at_most(server->max_connections, descriptors);
    descriptors -= server->max_refused;
    server->max_lingering = at_most(server->max_connections / 4, descriptors);
    list_init(&server->lingering);
    server->n_slots = server->max_connections + server->max_refused + SPARE_SLOTS;
    server->slots = heap_alloc(server->n_slots * sizeof(server->slots[0]));
    clients_init(server);
}

static void stage_remove(struct conn_list *list, struct conn *conn)
{
    *(conn->prev ? &conn->prev->next : &list->first) = conn->next;
    *(conn->next ? &conn->next->prev : &list->last) = conn->prev;
    list->n--;
}

static void stage_append(struct conn_list *list, struct conn *conn)
{
    conn->prev = list->last;
    conn->next = NULL;
    *(list->last ? &list->last->next : &list->first) = conn;
    list->last = conn;
    list->n++;
}

static void move(struct conn *conn, enum stage stage)
{
    struct http_server *server = conn->listener->server;

    stage_remove(&server->stages[conn->stage], conn);
    stage_append(&server->stages[stage], conn);
    if (conn->client)
        client_note_stage(conn, conn->stage, stage);
    conn->stage = stage;
}

void conn_enter(struct conn *conn, enum stage stage)
{
    if (conn->stage == STAGE_REFUSED || conn->stage == STAGE_CUT)
        return;
    move(conn, stage);
    conn->since_ns = server_now(conn->listener->server);
    conn->turn = ++conn->listener->server->last_turn;
    if (stage == STAGE_SENDING)
        conn->sending_ns = conn->since_ns;
}

static void take_place(struct conn *conn)
{
    struct http_server *server = conn->listener->server;

    client_join(conn);
    server->n_live++;
    conn->since_ns = server_now(server);
    conn->turn = ++server->last_turn;
}

static void leave_place(struct conn *conn)
{
    if (!conn->client)
        return;
    client_leave(conn);
    conn->listener->server->n_live--;
}

/* libmicrohttpd closes it when it next looks, which the shutdown makes it do. */
static void cut(struct conn *conn)
{
    if (conn->stage == STAGE_CUT)
        return;
    move(conn, STAGE_CUT);
    leave_place(conn);
    conn->listener->must_run = true;
    shutdown(conn->fd, SHUT_RDWR);
}

/* Whether the rest of a request may be on its way. */
static bool is_sending_request(const struct conn *conn)
{
    return conn->stage == STAGE_READING &&
           server_now(conn->listener->server) - conn->since_ns < refuse_ns;
}

/* In a burst of connections, a client whose request is on its way is answered with 503 when the
 * request is here, so that it knows when to try again. Such connections have room of their own, in
 * which the newest take the place of the oldest: clients that send nothing gain nothing. */
static void refuse(struct conn *conn)
{
    struct http_server *server = conn->listener->server;
    const struct conn_list *refused = &server->stages[STAGE_REFUSED];

    move(conn, STAGE_REFUSED);
    leave_place(conn);
    conn->since_ns = server_now(server);
    exchange_refuse(&conn->exchange);
    if (refused->n > server->max_refused)
        cut(refused->first);
}

void conn_cut_quiet(struct http_server *server)
{
    static const enum stage quiet[] = { STAGE_READING, STAGE_RESTING, STAGE_IDLE, STAGE_REFUSED };

    for (size_t i = 0; i < COUNT(quiet); i++)
        while (server->stages[quiet[i]].first)
            cut(server->stages[quiet[i]].first);
}

/* One that stalls, or the one that was active the longest ago. A client that reads its answer is
 * active every look_ns. NULL: requests are being handled on all of them. */
static struct conn *find_inactive(const struct http_server *server)
{
    static const enum stage stages[] = { STAGE_IDLE, STAGE_RESTING, STAGE_READING, STAGE_SENDING };
    struct conn *found = server->stages[STAGE_STALLED].first;

    for (size_t i = 0; i < COUNT(stages) && (!found || found->stage != STAGE_STALLED); i++) {
        struct conn *conn = server->stages[stages[i]].first;

        if (conn && (!found || conn->turn < found->turn))
            found = conn;
    }
    return found;
}

void conn_evict(struct http_server *server, const struct conn *newcomer)
{
    struct conn *conn = newcomer ? NULL : server->stages[STAGE_REFUSED].first;

    if (!conn)
        conn = client_find_crowded(server, newcomer);
    if (!conn)
        conn = find_inactive(server);
    if (!conn)
        return;
    atomic_fetch_add(&server->evicted, conn->stage != STAGE_REFUSED);
    if (newcomer && is_sending_request(conn))
        refuse(conn);
    else
        cut(conn);
}

bool conn_readmit(struct conn *conn, bool is_urgent)
{
    struct http_server *server = conn->listener->server;

    if (conn->stage != STAGE_REFUSED)
        return true;
    if (server->n_live >= server->max_connections && !is_urgent)
        return false;
    take_place(conn);
    move(conn, STAGE_READING);
    if (server->n_live > server->max_connections)
        conn_evict(server, conn);
    return conn->stage == STAGE_READING;
}

/* From now on, epoll tells of the first byte: libmicrohttpd would only tell of a whole line. */
static void watch(struct conn *conn)
{
    struct http_server *server = conn->listener->server;
    struct epoll_event event = { .events = EPOLLIN | EPOLLET | EPOLLONESHOT, .data.ptr = conn };

    epoll_ctl(server->epoll_fd, conn->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, conn->fd, &event);
    conn->is_watched = true;
    move(conn, STAGE_IDLE);
}

void conn_heard(struct conn *conn)
{
    if (conn->stage == STAGE_IDLE || conn->stage == STAGE_RESTING)
        conn_enter(conn, STAGE_READING);
}

static int64_t lasts_ns(const struct http_server *server, enum stage stage)
{
    switch (stage) {
    case STAGE_READING:
        return server->config.request_ns;
    case STAGE_SENDING:
    case STAGE_STALLED:
        return look_ns;
    case STAGE_RESTING:
        return rest_ns;
    case STAGE_REFUSED:
        return refuse_ns;
    case STAGE_IDLE:
        return idle_ns;
    default:
        return INT64_MAX;
    }
}

/* When the first of a stage has been there for too long. */
static int64_t stage_deadline(const struct http_server *server, enum stage stage)
{
    const struct conn *first = server->stages[stage].first;
    int64_t deadline;

    if (!first || __builtin_add_overflow(first->since_ns, lasts_ns(server, stage), &deadline))
        return INT64_MAX;
    return deadline;
}

int64_t conn_next_deadline(const struct http_server *server)
{
    int64_t next = INT64_MAX;

    for (enum stage stage = 0; stage < STAGES; stage++) {
        int64_t deadline = stage_deadline(server, stage);

        next = deadline < next ? deadline : next;
    }
    return next;
}

/* True if the client has read enough since the last time. Unix sockets do not count bytes: there it
 * is always true. */
static bool is_reading(struct conn *conn)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof(info);
    uint64_t before = conn->delivered;

    if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return true;
    conn->delivered = info.tcpi_bytes_acked;
    return conn->delivered - before >= LEAST_DELIVERED;
}

/* After look_ns in a stage of sending. */
static void look_after(struct conn *conn)
{
    if (is_reading(conn)) {
        move(conn, STAGE_SENDING);
        conn->turn = ++conn->listener->server->last_turn;
    } else {
        move(conn, STAGE_STALLED);
    }
    conn->since_ns = server_now(conn->listener->server);
}

static void time_out(struct conn *conn)
{
    atomic_fetch_add(&conn->listener->server->timed_out, 1);
    cut(conn);
}

/* What happens to a connection that has been in its stage for as long as it may. */
static void expire(struct conn *conn, int64_t now)
{
    switch (conn->stage) {
    case STAGE_RESTING:
        watch(conn);
        return;
    case STAGE_IDLE:
    case STAGE_REFUSED:
        cut(conn);
        return;
    case STAGE_SENDING:
    case STAGE_STALLED:
        if (now - conn->sending_ns < conn->listener->server->config.response_ns) {
            look_after(conn);
            return;
        }
        break;
    default:
        break;
    }
    time_out(conn);
}

void conn_expire(struct http_server *server, int64_t now)
{
    for (enum stage stage = 0; stage < STAGES; stage++)
        while (stage_deadline(server, stage) <= now)
            expire(server->stages[stage].first, now);
}

enum MHD_Result conn_on_accept(void *arg, const struct sockaddr *address, socklen_t size)
{
    const struct listener *listener = arg;
    const struct http_server *server = listener->server;

    (void)address;
    (void)size;
    return server->free_slots || server->n_used < server->n_slots ? MHD_YES : MHD_NO;
}

static struct conn *take_slot(struct http_server *server)
{
    struct conn *conn = server->free_slots;

    if (conn)
        server->free_slots = conn->next;
    else
        conn = &server->slots[server->n_used++];
    return conn;
}

static ssize_t push(gnutls_transport_ptr_t arg, const void *data, size_t n)
{
    struct conn *conn = arg;
    ssize_t sent = send(conn->fd, data, n, MSG_NOSIGNAL);

    conn->listener->server->progress += sent > 0;
    return sent;
}

static ssize_t pull(gnutls_transport_ptr_t arg, void *data, size_t room)
{
    struct conn *conn = arg;
    ssize_t got = recv(conn->fd, data, room, 0);

    conn->listener->server->progress += got > 0;
    return got;
}

struct conn *conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static int verify_client(gnutls_session_t session)
{
    struct conn *conn = conn_of(gnutls_session_get_ptr(session));
    struct http_server *server = conn->listener->server;
    struct err err;

    if (tls_verify(conn->web->tls, session, &err) == 0)
        return 0;
    atomic_fetch_add(&server->refused_auth, 1);
    LOG(server->config.log, LOG_WARN, "client certificate refused", LOG_STR("reason", err.text));
    gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* libmicrohttpd has given the session what was known when its daemon started; here it gets what
 * the configuration says now. The transport is ours only to see whether anything moves: see
 * server.c. */
static void prepare_tls(struct conn *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    gnutls_session_t session = info->tls_session;

    conn->web = webconfig_ref(conn->listener->server->web);
    tls_prepare(conn->web->tls, session);
    gnutls_session_set_verify_function(session, verify_client);
    gnutls_transport_set_ptr(session, conn);
    gnutls_transport_set_push_function(session, push);
    gnutls_transport_set_pull_function(session, pull);
}

static struct conn *open_conn(struct listener *listener, struct MHD_Connection *mhd)
{
    struct http_server *server = listener->server;
    struct conn *conn = take_slot(server);

    reload_adopt(server);
    *conn = (struct conn){
        .watch = WATCH_CONN,
        .stage = STAGE_READING,
        .listener = listener,
        .mhd = mhd,
        .fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
    };
    conn->exchange.conn = conn;
    stage_append(&server->stages[STAGE_READING], conn);
    take_place(conn);
    listener->unheard_since_ns = 0;
    atomic_fetch_add(&server->n_open, 1);
    if (server->has_tls)
        prepare_tls(conn);
    if (server->n_live > server->max_connections)
        conn_evict(server, conn);
    return conn;
}

static void close_conn(struct conn *conn)
{
    struct http_server *server = conn->listener->server;

    exchange_reset(&conn->exchange);
    if (conn->is_unfinished && conn->stage != STAGE_CUT)
        linger_begin(server, conn->fd);
    /* A child between fork and exec may hold the socket open, and with it epoll's memory of it. */
    if (conn->is_watched)
        epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    stage_remove(&server->stages[conn->stage], conn);
    leave_place(conn);
    atomic_fetch_sub(&server->n_open, 1);
    /* libmicrohttpd listens again, after it could not accept, only when it is run once more. */
    conn->listener->must_run = true;
    conn->next = server->closed_slots;
    server->closed_slots = conn;
}

void conn_recycle(struct http_server *server)
{
    while (server->closed_slots) {
        struct conn *conn = server->closed_slots;

        server->closed_slots = conn->next;
        conn->web = webconfig_unref(conn->web); /* only now: its session needed it to the last */
        conn->next = server->free_slots;
        server->free_slots = conn;
    }
}

void conn_on_notify(void *arg, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode what)
{
    struct listener *listener = arg;

    listener->server->progress++;
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        *socket_context = open_conn(listener, mhd);
    else if (*socket_context)
        close_conn(*socket_context);
}
