/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP thread: one epoll loop around libmicrohttpd's daemons, of which there is one for each
 * address, and the deadlines that they do not keep. */
#include "http/confine.h"
#include "http/internal.h"

#include "base/quote.h"

#include <gnutls/abstract.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum {
    MOST_EVENTS = 64,
    ANSWER_BYTES = 4096, /* for the answer's header in the connection's memory */
    FUTILE_WAIT_MS = 10,
    DRAIN_WAIT_MS = 50,
    LAST_RUNS = 3, /* of libmicrohttpd, for the last answers to get out */
    MOST_RELOADS = 4,
};

/* Less than STOP_NS of base/stop_guard.h: other parts end after this one. */
static const int64_t drain_ns = 1500 * NS_PER_MS;

void server_signal(struct http_server *server)
{
    uint64_t one = 1;

    (void)!write(server->wake_fd, &one, sizeof(one));
}

void http_wake(struct http_server *server)
{
    atomic_store(&server->is_woken, true);
    server_signal(server);
}

/* Whether it wants to be run although epoll may not tell of anything. */
static bool is_pending(const struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG ms;

    return listener->must_run || MHD_get_timeout(listener->daemon, &ms) == MHD_YES;
}

/* libmicrohttpd 0.9.75 takes a TLS handshake that waits for the client for one that can go on, and
 * asks to be run again at once, without end. So if a run moved nothing, it is left alone a while;
 * what the client sends wakes it through epoll. */
static int pending_wait_ms(const struct listener *listener)
{
    bool is_futile = listener->server->has_tls && !listener->must_run && !listener->made_progress;

    return is_futile ? FUTILE_WAIT_MS : 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Milliseconds for epoll_wait, rounded up; -1: as long as nothing happens. */
static int timeout_ms(const struct http_server *server)
{
    int64_t now = server_now(server);
    int64_t next = earlier(conn_next_deadline(server), server->next_wait_ns);
    int64_t ms = INT64_MAX;

    next = earlier(next, linger_next_deadline(server));
    next = earlier(next, reload_next_check(server));
    if (atomic_load(&server->n_open))
        next = earlier(next, server->next_listen_check_ns);
    if (next != INT64_MAX)
        ms = next <= now ? 0 : (clock_nap(server->config.clock, next - now) - 1) / NS_PER_MS + 1;
    for (size_t i = 0; i < server->n_listeners; i++)
        if (is_pending(&server->listeners[i]))
            ms = earlier(ms, pending_wait_ms(&server->listeners[i]));
    if (server->is_draining)
        ms = earlier(ms, DRAIN_WAIT_MS);
    return ms == INT64_MAX ? -1 : (int)earlier(ms, INT32_MAX);
}

/* True if somebody called http_wake. */
static bool take_signals(struct http_server *server)
{
    uint64_t count;

    (void)!read(server->wake_fd, &count, sizeof(count));
    exchange_finish_work(server);
    return atomic_exchange(&server->is_woken, false);
}

/* Connections before daemons: what a daemon does may put another client into a slot. */
static void note_events(struct http_server *server, const struct epoll_event *events, int n)
{
    bool is_woken = false;

    for (int i = 0; i < n; i++) {
        enum watch *watch = events[i].data.ptr;

        switch (*watch) {
        case WATCH_CONN:
            conn_heard((struct conn *)watch);
            break;
        case WATCH_LISTENER:
            ((struct listener *)watch)->must_run = true;
            break;
        case WATCH_WAKE:
            is_woken = take_signals(server);
            break;
        case WATCH_LINGER:
            linger_read((struct lingering_conn *)watch);
            break;
        }
    }
    if (is_woken || server_now(server) >= server->next_wait_ns)
        exchange_call_waiting(server, is_woken);
}

static void run_daemons(struct http_server *server)
{
    for (size_t i = 0; i < server->n_listeners; i++) {
        struct listener *listener = &server->listeners[i];
        uint64_t before = server->progress;

        if (!is_pending(listener))
            continue;
        listener->must_run = false;
        MHD_run(listener->daemon);
        listener->made_progress = server->progress != before;
    }
    conn_recycle(server);
}

static bool is_waited_for(const struct listener *listener)
{
    struct pollfd fd = { .fd = listener->socket.fd, .events = POLLIN };

    return poll(&fd, 1, 0) == 1;
}

/* When the process or the system has no descriptor left for a moment, libmicrohttpd stops listening
 * until one of its connections ends, which a scraper's kept connection never does. So if somebody
 * has waited for a second to be accepted, the quietest connection is closed. */
static void check_listeners(struct http_server *server, int64_t now)
{
    if (now < server->next_listen_check_ns)
        return;
    server->next_listen_check_ns = now + NS_PER_SEC;
    for (size_t i = 0; i < server->n_listeners; i++) {
        struct listener *listener = &server->listeners[i];

        if (!is_waited_for(listener)) {
            listener->unheard_since_ns = 0;
        } else if (!listener->unheard_since_ns) {
            listener->unheard_since_ns = now;
            listener->must_run = true;
        } else if (now - listener->unheard_since_ns >= NS_PER_SEC) {
            LOG(server->config.log, LOG_WARN,
                "no connection can be accepted, another is closed; is the limit on descriptors too "
                "low?",
                LOG_STR("address", listener->address));
            conn_evict(server, NULL);
            listener->must_run = true;
        }
    }
}

static void go_round(struct http_server *server)
{
    struct epoll_event events[MOST_EVENTS];
    int n = epoll_wait(server->epoll_fd, events, MOST_EVENTS, timeout_ms(server));

    reload_adopt(server);
    note_events(server, events, n);
    run_daemons(server);
    exchange_start_work(server);
    conn_expire(server, server_now(server));
    linger_expire(server, server_now(server));
    check_listeners(server, server_now(server));
    reload_check(server);
}

static bool is_anything_under_way(const struct http_server *server)
{
    return server->stages[STAGE_BUSY].first || server->stages[STAGE_SENDING].first;
}

static void run_to_the_end(struct http_server *server)
{
    for (int run = 0; run < LAST_RUNS; run++) {
        for (size_t i = 0; i < server->n_listeners; i++)
            server->listeners[i].must_run = true;
        run_daemons(server);
    }
}

/* No new connections and no new requests; what is under way may come to its end. */
static void drain(struct http_server *server)
{
    /* Not by the configured clock: whoever moves that one on may be waiting in http_stop. */
    int64_t deadline = clock_mono(&clock_real) + drain_ns;

    server->is_draining = true;
    for (size_t i = 0; i < server->n_listeners; i++)
        MHD_quiesce_daemon(server->listeners[i].daemon);
    conn_cut_quiet(server);
    while (is_anything_under_way(server) && clock_mono(&clock_real) < deadline) {
        go_round(server);
        conn_cut_quiet(server);
    }
    server->workers = pool_free(server->workers);
    server->reload_worker = pool_free(server->reload_worker);
    exchange_finish_work(server);
    run_to_the_end(server);
    exchange_give_up(server);
    run_to_the_end(server);
}

static void *run(void *arg)
{
    struct http_server *server = arg;

    confine_thread(NULL);
    while (!atomic_load(&server->is_stopping))
        go_round(server);
    drain(server);
    return NULL;
}

static void close_listener(struct listener *listener)
{
    if (listener->daemon) {
        MHD_quiesce_daemon(listener->daemon); /* or it would close the socket itself */
        MHD_stop_daemon(listener->daemon);
    }
    listen_close(&listener->socket);
    free(listener->address);
}

static struct http_server *server_free(struct http_server *server)
{
    pool_free(server->workers);
    pool_free(server->reload_worker);
    for (size_t i = 0; i < server->n_listeners; i++)
        close_listener(&server->listeners[i]);
    linger_end_all(server);
    conn_recycle(server);
    auth_free(server->auth);
    webconfig_unref(server->web);
    webconfig_unref(server->new_web);
    webconfig_files_clear(&server->files);
    if (server->epoll_fd >= 0)
        close(server->epoll_fd);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    pthread_mutex_destroy(&server->lock);
    pthread_mutex_destroy(&server->reload_lock);
    free(server->listeners);
    free(server->slots);
    free(server->proxies);
    clients_free(server);
    free(server->web_config);
    free(server);
    return NULL;
}

struct http_server *http_stop(struct http_server *server)
{
    if (!server)
        return NULL;
    atomic_store(&server->is_stopping, true);
    server_signal(server);
    pthread_join(server->thread, NULL);
    return server_free(server);
}

/* The sockets: from systemd, if it passed any, since a socket unit is there on purpose and an
 * address may be no more than a default; else from the configuration. */
static int open_sockets(struct http_server *server, struct err *err)
{
    const struct http_config *config = &server->config;
    struct listen_socket *inherited = NULL;
    size_t n;
    int r = listen_inherited(&inherited, &n, err);

    if (r < 0)
        return r;
    if (n == 0)
        n = config->n_listen;
    if (n == 0)
        return err_set(err, EINVAL, "no address to listen on: give one with --web.listen-address");
    server->listeners = heap_alloc(n * sizeof(server->listeners[0]));
    for (size_t i = 0; i < n && r == 0; i++) {
        struct listener *listener = &server->listeners[i];

        listener->watch = WATCH_LISTENER;
        listener->server = server;
        if (inherited)
            listener->socket = inherited[i];
        else
            r = listen_open(config->listen[i], &listener->socket, err);
        if (r == 0)
            server->n_listeners++;
    }
    free(inherited);
    return r;
}

static int watch_fd(struct http_server *server, int fd, enum watch *watch, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };

    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_set(err, errno, "epoll: %s", err_words(errno));
    return 0;
}

/* Every session gets its certificate in conn.c; one that does not gets none. */
static int no_certificate(gnutls_session_t session, const gnutls_datum_t *authorities, int n,
                          const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                          gnutls_pcert_st **certificates, unsigned *n_certificates,
                          gnutls_privkey_t *key)
{
    (void)session, (void)authorities, (void)n, (void)algorithms, (void)n_algorithms;
    (void)certificates, (void)n_certificates, (void)key;
    return -1;
}

static int start_daemon(struct listener *listener, struct err *err)
{
    struct http_server *server = listener->server;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (server->has_tls ? MHD_USE_TLS : 0);
    size_t header = server->config.max_header;
    size_t memory = header + header / 2 + ANSWER_BYTES + MOST_PIECES * sizeof(struct MHD_IoVec);
    const struct MHD_OptionItem options[] = {
        { MHD_OPTION_LISTEN_SOCKET, listener->socket.fd, NULL },
        { MHD_OPTION_CONNECTION_LIMIT, (intptr_t)server->n_slots, NULL },
        { MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)memory, NULL },
        { MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
        { MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL },
        { MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)exchange_on_uri, listener },
        { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)exchange_on_completed, listener },
        { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)conn_on_notify, listener },
        { server->has_tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, 0,
          (void *)no_certificate },
        { MHD_OPTION_END, 0, NULL },
    };

    listener->daemon = MHD_start_daemon(flags, 0, conn_on_accept, listener, exchange_on_request,
                                        listener, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (!listener->daemon)
        return err_set(err, EIO, "can't serve %s: libmicrohttpd %s does not start%s",
                       listener->socket.place, MHD_get_version(),
                       server->has_tls ? "; was it built with TLS?" : "");
    return watch_fd(server,
                    MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                    &listener->watch, err);
}

static char *address_of(const struct listener *listener)
{
    struct str place = str_of(listener->socket.place);
    struct buf address;

    buf_init(&address, place.n + sizeof("https://"));
    if (!str_starts(place, STR("unix:")))
        buf_text(&address, listener->server->has_tls ? "https://" : "http://");
    buf_put(&address, place);
    return address.p;
}

static int start_daemons(struct http_server *server, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < server->n_listeners && r == 0; i++) {
        server->listeners[i].address = address_of(&server->listeners[i]);
        r = start_daemon(&server->listeners[i], err);
    }
    return r;
}

static void tell_settled(void *server)
{
    server_signal(server);
}

static int start_helpers(struct http_server *server, struct err *err)
{
    const struct http_config *config = &server->config;
    const struct pool_config workers = {
        .name = "http-work",
        .threads = config->workers ? config->workers : 1,
        .most_queued = config->queue,
    };
    const struct pool_config reload_worker = {
        .name = "http-reload",
        .threads = 1,
        .most_queued = MOST_RELOADS,
        .is_unconfined = true,
    };
    int r = pool_new(&workers, &server->workers, err);

    if (r == 0)
        r = pool_new(&reload_worker, &server->reload_worker, err);
    if (r == 0 && server->web_config)
        r = auth_new(config->clock, tell_settled, server, &server->auth, err);
    return r;
}

static int open_events(struct http_server *server, struct err *err)
{
    static enum watch wake = WATCH_WAKE;

    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll_fd < 0 || server->wake_fd < 0)
        return err_set(err, errno, "can't make an epoll: %s", err_words(errno));
    return watch_fd(server, server->wake_fd, &wake, err);
}

static void check_confinement(const struct http_server *server)
{
    struct err err;

    if (confine_try(&err) < 0)
        LOG(server->config.log, LOG_WARN,
            "HTTP threads are not confined: allow them to install seccomp filters and to give up "
            "capabilities",
            LOG_STR("error", err.text));
}

static int read_proxies(struct http_server *server, struct err *err)
{
    const struct http_config *config = &server->config;

    server->proxies = heap_alloc(config->n_proxies * sizeof(server->proxies[0]));
    for (; server->n_proxies < config->n_proxies; server->n_proxies++) {
        struct str text = config->proxies[server->n_proxies];

        if (!network_read(text, &server->proxies[server->n_proxies]))
            return err_set(err, EINVAL,
                           "\"%s\" is not the address of a proxy (try 10.0.0.5, 10.0.0.0/8, ::1 "
                           "or unix)",
                           quote(text).text);
    }
    return 0;
}

static int start(struct http_server *server, struct err *err)
{
    int r = read_proxies(server, err);

    if (r == 0)
        r = webconfig_load(server->web_config, &server->files, &server->web, err);
    if (r < 0)
        return r;
    server->has_tls = server->web->tls != NULL;
    server->rate_tokens = (double)server->web->rate_burst;
    server->rate_at_ns = server->checked_files_ns = server_now(server);
    conn_init(server);
    check_confinement(server);
    r = open_events(server, err);
    if (r == 0)
        r = open_sockets(server, err);
    if (r == 0)
        r = start_helpers(server, err);
    if (r == 0)
        r = start_daemons(server, err);
    if (r == 0)
        r = thread_start(&server->thread, "http", run, server, err);
    return r;
}

int http_start(const struct http_config *config, struct http_server **ret, struct err *err)
{
    struct http_server *server = heap_alloc(sizeof(*server));
    int r;

    server->config = *config;
    if (config->web_config && config->web_config[0])
        server->web_config = heap_str(str_of(config->web_config));
    server->epoll_fd = server->wake_fd = -1;
    server->next_wait_ns = INT64_MAX;
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->reload_lock, NULL);
    r = start(server, err);
    if (r < 0) {
        server_free(server);
        return r;
    }
    *ret = server;
    return 0;
}

const char *http_address(const struct http_server *server, size_t i)
{
    return i < server->n_listeners ? server->listeners[i].address : NULL;
}

size_t http_max_descriptors(const struct http_server *server)
{
    return server->n_slots + server->max_lingering;
}

bool http_is_local(const struct http_server *server)
{
    for (size_t i = 0; i < server->n_listeners; i++)
        if (!listen_is_local(&server->listeners[i].socket))
            return false;
    return true;
}

void http_stats(const struct http_server *server, struct http_stats *ret)
{
    *ret = (struct http_stats){
        .requests = atomic_load(&server->requests),
        .refused_busy = atomic_load(&server->refused_busy),
        .refused_auth = atomic_load(&server->refused_auth),
        .timed_out = atomic_load(&server->timed_out),
        .evicted = atomic_load(&server->evicted),
        .connections = atomic_load(&server->n_open),
    };
}
