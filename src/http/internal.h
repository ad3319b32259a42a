/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the HTTP server share; nobody else includes it. Unless it says otherwise,
 * everything belongs to the HTTP thread. */
#ifndef SONDE_HTTP_INTERNAL_H
#define SONDE_HTTP_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/network.h"
#include "http/auth.h"
#include "http/listen.h"
#include "http/pool.h"
#include "http/server.h"
#include "http/webconfig.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>

/* What an event of our epoll is about: the first member of what it points to. */
enum watch { WATCH_WAKE, WATCH_LISTENER, WATCH_CONN, WATCH_LINGER };

/* Where a connection stands. Each stage is a list in the order of arrival, and each but BUSY and
 * CUT is left after a while (conn.c). */
enum stage {
    STAGE_READING, /* a request is coming in, or the first one is awaited */
    STAGE_BUSY,    /* a whole request is here, the answer is being made */
    STAGE_SENDING,
    STAGE_STALLED, /* sending, but the client does not read */
    STAGE_RESTING, /* between requests, a moment ago still at work */
    STAGE_IDLE,    /* between requests; its socket is watched for a first byte */
    STAGE_REFUSED, /* has lost its place to another; its request is read to be answered with 503 */
    STAGE_CUT,     /* shut down by us; libmicrohttpd has not noticed yet */
    STAGES,
};

/* libmicrohttpd copies the list of an answer's pieces into the connection's memory: what server.c
 * makes room for, and body.c keeps to. */
enum { MOST_PIECES = 256 };

/* How far an exchange has come. */
enum step {
    STEP_HEAD,     /* the header is complete: who asks for what? */
    STEP_VERDICT,  /* suspended: the password is being checked */
    STEP_ADMITTED, /* the route's `admit` is done, and has answered if it refused */
    STEP_BODY,     /* the rest of the request is taken in */
    STEP_WAIT,     /* suspended: the handler wants to be called again */
    STEP_WORK,     /* suspended: on the pool, or about to be */
    STEP_ANSWER,   /* the answer is there */
};

struct answer_header {
    struct answer_header *next;
    char *name, *value;
};

struct answer {
    unsigned status; /* 0: none yet */
    char *content_type;
    char *text; /* given to libmicrohttpd, which frees it */
    size_t n;
    struct http_body *body; /* instead of the above */
    struct answer_header *headers;
};

struct http_exchange {
    struct conn *conn;
    enum step step;
    bool is_bad;                        /* its URI is not acceptable */
    bool is_too_long;                   /* its URI, or there are too many arguments */
    bool is_too_big;                    /* its body */
    bool is_unconfined;                 /* its work, once its handler has asked for that */
    bool is_admitted;                   /* `admit` is done, `handle` is next */
    const struct http_route *route;     /* or NULL … */
    const struct http_route *same_path; /* … and then one of another method, if there is */
    struct str path; /* in libmicrohttpd's memory, as headers and arguments are */
    struct buf body;
    int64_t started_ns, wait_until_ns;
    struct http_exchange *next; /* of the list that it is on: to work on, waiting, done */
    struct pool_job job;
    void (*refuse)(void *ctx, struct http_exchange *x); /* when there is no room for it; or NULL */
    struct auth_waiter waiter;
    struct webconfig *web; /* that the password was checked against */
    struct str user;
    void *state;
    void (*free_state)(void *);
    struct answer answer;
};

/* In the order of arrival: first come, first served. */
struct exchange_list {
    struct http_exchange *first, *last;
};

/* An address with open connections: a row of a table that is made once (client.c). Each connection
 * of a trusted proxy has a row of its own. */
struct client {
    struct client *next; /* of its chain in the table, or of the free rows */
    uint64_t key;        /* http_client; 0 for a connection of a trusted proxy */
    unsigned n, n_busy;
    struct list evictable; /* its connections but those in STAGE_BUSY, the next to evict first */
    struct link crowded;   /* in http_server.crowded while it has more than its share */
};

struct clients {
    struct client *rows, *free;
    struct client **chains;
    size_t n_chains;     /* a power of two */
    struct list crowded; /* clients with more connections than their share */
    unsigned n_busy;     /* connections in STAGE_BUSY */
};

/* A client's connection: a slot of a table that is made once, so that neither a connection nor a
 * request costs an allocation of ours. One exchange at a time happens on it. */
struct conn {
    enum watch watch;
    enum stage stage;
    struct conn *prev, *next; /* of its stage; next alone when the slot is free */
    int64_t since_ns;         /* it came to its stage */
    uint64_t turn;            /* of all connections, the lowest was active the longest ago */
    struct client *client;    /* NULL once it is refused or cut */
    struct link of_client;    /* in client->evictable */
    int64_t sending_ns;       /* when the answer that is being sent was complete */
    uint64_t delivered;       /* bytes that had reached the client when this was last checked */
    struct listener *listener;
    struct MHD_Connection *mhd;
    struct webconfig *web; /* whose TLS settings its session uses */
    int fd;
    bool is_watched;    /* epoll knows the socket */
    bool is_unfinished; /* it was answered before its request was read to the end */
    char peer[INET6_ADDRSTRLEN];
    struct http_exchange exchange;
};

struct conn_list {
    struct conn *first, *last;
    unsigned n;
};

struct listener {
    enum watch watch;
    struct http_server *server;
    struct listen_socket socket;
    struct MHD_Daemon *daemon;
    char *address;
    bool must_run;            /* libmicrohttpd has something to do */
    bool made_progress;       /* when it last ran */
    int64_t unheard_since_ns; /* somebody waits to be accepted since then; 0: nobody */
};

struct http_server {
    struct http_config config;
    char *web_config;
    bool has_tls;
    struct network *proxies;
    size_t n_proxies;
    unsigned max_connections; /* what config asks for, as far as descriptors go */
    unsigned max_refused;     /* besides: connections in STAGE_REFUSED … */
    unsigned max_lingering;   /* … and those of linger.c */
    int epoll_fd, wake_fd;
    pthread_t thread;
    struct listener *listeners;
    size_t n_listeners;

    int64_t next_listen_check_ns;
    struct conn *slots;
    size_t n_slots, n_used; /* those never used lie behind n_used */
    struct conn *free_slots, *closed_slots;
    struct conn_list stages[STAGES];
    unsigned n_live; /* connections that are neither refused nor cut */
    uint64_t last_turn;
    struct clients clients;
    struct list lingering; /* those of linger.c, the oldest first */
    unsigned n_lingering;

    struct pool *workers;
    struct pool *reload_worker; /* one thread that is not confined: http/confine.h */
    struct auth *auth;
    struct webconfig *web;
    double rate_tokens;
    int64_t rate_at_ns, checked_files_ns;
    struct exchange_list to_work, waiting;
    int64_t next_wait_ns; /* the earliest that any of `waiting` asked for */
    uint64_t progress;    /* grows with everything that happens to any connection */
    bool is_draining;

    /* Other threads too: */
    atomic_bool is_woken, is_stopping, has_new_web;
    pthread_mutex_t lock; /* of the next two */
    struct exchange_list done;
    struct webconfig *new_web;
    pthread_mutex_t reload_lock;
    struct webconfig_files files; /* under reload_lock */
    struct pool_job check_files;
    atomic_bool is_checking_files;
    atomic_uint n_open;
    _Atomic uint64_t requests, refused_busy, refused_auth, timed_out, evicted;
};

static inline struct http_server *exchange_server(const struct http_exchange *x)
{
    return x->conn->listener->server;
}

static inline int64_t server_now(const struct http_server *server)
{
    return clock_mono(server->config.clock);
}

/* server.c */
void server_signal(struct http_server *server); /* from any thread: the loop goes round */

/* reload.c */
void reload_check(struct http_server *server); /* looks after the files, once a second at most */
/* Takes what another thread has read. Called where a connection or a request begins, so that one
 * that begins after http_reload has returned never has the configuration before it. */
void reload_adopt(struct http_server *server);
int64_t reload_next_check(const struct http_server *server);

/* client.c */
void clients_init(struct http_server *server);
void clients_free(struct http_server *server);
void client_join(struct conn *conn); /* a new one */
void client_leave(struct conn *conn);
/* Connections that move between stages. */
void client_note_stage(struct conn *conn, enum stage from, enum stage to);
/* Whether a request may be suspended. If not, 503 is the answer. */
bool client_may_wait(const struct http_exchange *x);
/* The connection of an address with too many that should be closed for `newcomer` (or NULL), or
 * NULL: no address has more than its share. */
struct conn *client_find_crowded(const struct http_server *server, const struct conn *newcomer);

/* conn.c */
void conn_init(struct http_server *server);
struct conn *conn_of(struct MHD_Connection *mhd);
void conn_enter(struct conn *conn, enum stage stage);
void conn_heard(struct conn *conn);            /* bytes have come on an idle one */
void conn_recycle(struct http_server *server); /* outside of libmicrohttpd */
void conn_expire(struct http_server *server, int64_t now);
/* Takes a connection's place for `newcomer`: one of an address with more than its share, else one
 * that stalls, else the one that was active the longest ago. With NULL, a connection is closed to
 * free its descriptor. */
void conn_evict(struct http_server *server, const struct conn *newcomer);
/* The header of a request is complete. False if its connection was refused a place and there is
 * still none: then the answer is 503. An urgent one takes the place of another. */
bool conn_readmit(struct conn *conn, bool is_urgent);
void conn_cut_quiet(struct http_server *server); /* those without a request */
int64_t conn_next_deadline(const struct http_server *server);
enum MHD_Result conn_on_accept(void *listener, const struct sockaddr *address, socklen_t size);
void conn_on_notify(void *listener, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode what);

/* linger.c */
struct lingering_conn;
void linger_begin(struct http_server *server, int fd); /* which the caller closes */
void linger_read(struct lingering_conn *conn);         /* there are bytes, or its end */
int64_t linger_next_deadline(const struct http_server *server);
void linger_expire(struct http_server *server, int64_t now);
void linger_end_all(struct http_server *server);

/* exchange.c */
void *exchange_on_uri(void *listener, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result exchange_on_request(void *listener, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *data_size, void **request_context);
void exchange_on_completed(void *listener, struct MHD_Connection *mhd, void **request_context,
                           enum MHD_RequestTerminationCode why);
void exchange_reset(struct http_exchange *x);
void exchange_refuse(struct http_exchange *x);        /* its connection has lost its place */
void exchange_start_work(struct http_server *server); /* hands `to_work` to the pool */
void exchange_call_waiting(struct http_server *server, bool all); /* or only those that are due */
void exchange_finish_work(struct http_server *server); /* takes back what other threads did */
void exchange_give_up(struct http_server *server);     /* 503 for all that wait */

/* header.c */
/* Whether the header of a request may mean something else to another reader. Both texts as
 * libmicrohttpd gives them. */
bool header_is_wrong(const struct http_exchange *x, const char *method, const char *version);

/* reply.c */
void reply_text(struct http_exchange *x, unsigned status, const char *sentence);
void reply_busy(struct http_exchange *x);
void reply_clear(struct http_exchange *x);
enum MHD_Result reply_queue(struct http_exchange *x);

/* body.c */
struct http_body *body_ref(struct http_body *body);
enum MHD_Result body_queue(struct http_body *body, struct MHD_Connection *mhd,
                           const struct webconfig *web, const struct answer_header *extra);
void add_headers(struct MHD_Response *response, const struct webconfig *web,
                 const struct answer_header *extra);

#endif
