/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP server: one thread that never blocks (libmicrohttpd), a fixed pool of workers for what
 * takes longer, limits on everything a stranger can send.
 * exporter-toolkit's docs/web-configuration.md defines --web.config.file. */
#ifndef SONDE_HTTP_SERVER_H
#define SONDE_HTTP_SERVER_H

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#include <sys/uio.h>

struct http_server;
struct http_exchange; /* one request and its answer */
struct http_body;     /* an answer that many exchanges share */

enum http_verdict {
    HTTP_DONE, /* an answer was given; `admit` may also let the body come */
    HTTP_WAIT, /* call me again: after http_wake, or at the time given to http_wait_until */
    HTTP_WORK, /* go on in `work`, on the pool; 503 with Retry-After when its queue is full */
    HTTP_WORK_UNCONFINED, /* likewise, but on a thread that is not confined (http/confine.h): `work`
                           * starts threads or commands */
};

/* Where web.config.file has users: */
enum http_access {
    HTTP_WITH_PASSWORD,
    HTTP_OPEN,        /* answered without a password (health checks) */
    HTTP_OTHER_PROOF, /* a password is checked if one is given; if not, it is up to the handler */
};

struct http_route {
    const char *method; /* "GET" serves HEAD too; another method on a known path is 405 */
    const char *path;   /* exact; one star stands at its end for any rest, before a slash for one
                         * part. Of several that match, the most specific */
    size_t max_body;    /* 413 past it; 0: a body is not accepted */
    enum http_access access;
    enum http_verdict (*handle)(void *ctx, struct http_exchange *x); /* < 1 ms, never blocks */
    /* Answers, or leaves it to the one that returned HTTP_WORK, which is then called again. NULL
     * if none does. */
    void (*work)(void *ctx, struct http_exchange *x);
    void *ctx; /* handed to these; NULL: that of the server */
    /* As `handle`, when the header is complete and before any of the body is kept: refuses by
     * answering. NULL: every body up to max_body is read. */
    enum http_verdict (*admit)(void *ctx, struct http_exchange *x);
    bool is_urgent; /* scrapes and health checks: may wait where others are refused (client.c) */
};

struct http_config {
    const struct http_route *routes; /* ended by path = NULL */
    void *ctx;                       /* handed to the handlers of routes without their own */
    const struct str *listen;        /* ":9092", "127.0.0.1:0", "[::1]:9092", "unix:/run/x.sock" */
    size_t n_listen;                 /* sockets passed by systemd are used instead of all these */
    const struct str *proxies;       /* trusted ones have no share: "10.0.0.0/8", "::1", "unix" */
    size_t n_proxies;
    const char *web_config;   /* path of --web.config.file, or NULL */
    unsigned max_connections; /* at the limit, one that makes no progress is closed (client.c) */
    unsigned workers, queue;  /* of the pool */
    int64_t request_ns;       /* for a whole request, from its first byte or the connection */
    int64_t response_ns;      /* for sending a whole answer */
    size_t max_header;        /* 431 past it */
    const struct clock *clock;
    struct log *log;
};

int http_start(const struct http_config *config, struct http_server **ret, struct err *err);

/* Answers what is under way, for 2 s at most, then with 503; a `work` that runs and a password that
 * is being checked are waited for. */
struct http_server *http_stop(struct http_server *server);

/* Reads web.config.file again; on any mistake everything stays as it was and err says why.
 * Connections and requests that begin after it has returned have what it read. */
int http_reload(struct http_server *server, struct err *err);

/* From any thread: handlers that returned HTTP_WAIT are called again. */
void http_wake(struct http_server *server);

/* "http://127.0.0.1:9092" for the i-th listener, for the line that tells people what to open. NULL
 * past the last. Unix sockets as "unix:/path". Port 0 is shown as the one that was given. */
const char *http_address(const struct http_server *server, size_t i);

/* How many descriptors its clients can make it hold. */
size_t http_max_descriptors(const struct http_server *server);

/* Only this machine can reach it: loopback addresses and unix sockets. */
bool http_is_local(const struct http_server *server);

struct http_stats {
    uint64_t requests, refused_busy, refused_auth, timed_out, evicted;
    unsigned connections;
};
void http_stats(const struct http_server *server, struct http_stats *ret);

/* --- in a handler --- */

struct str http_path(const struct http_exchange *x);
struct str http_header(const struct http_exchange *x, const char *name); /* empty if absent */
size_t http_header_count(const struct http_exchange *x, const char *name);
bool http_is_token(struct str text); /* RFC 9110, 5.6.2: may be the name of a header */
struct str http_request_body(const struct http_exchange *x);
void http_drop_body(struct http_exchange *x); /* once it is not needed any more */
bool http_body_length(const struct http_exchange *x, uint64_t *ret); /* false: not declared */
struct http_server *http_server_of(const struct http_exchange *x);   /* for http_wake */
struct str http_user(const struct http_exchange *x); /* who basic auth proved; empty: nobody */
uint64_t http_client(const struct http_exchange *x); /* the same for all requests of an address */
struct str http_peer(const struct http_exchange *x); /* that address: "127.0.0.1", "::1", "unix" */
bool http_is_proxied(const struct http_exchange *x); /* by a trusted proxy, whose address it has */
/* It comes from this machine or a trusted proxy, or with a password or a certificate that was
 * verified. */
bool http_is_trusted(const struct http_exchange *x);
int64_t http_started(const struct http_exchange *x); /* monotonic, when the request was complete */

/* The nth value of an argument in the address, decoded; p NULL when there are fewer. */
struct str http_query(const struct http_exchange *x, const char *name, size_t nth);

/* All of them, decoded, in their order. A negative answer of `see` ends it and is passed on. */
int http_queries(const struct http_exchange *x,
                 int (*see)(void *ctx, struct str name, struct str value), void *ctx);

/* A place for the handler's own state between calls; freed with the exchange by `free_state`. */
void **http_state(struct http_exchange *x, void (*free_state)(void *));

/* Once it has passed, a handler that waits on is called every 100 ms until it sets another. Without
 * one, only http_wake ends a wait. */
void http_wait_until(struct http_exchange *x, int64_t mono_ns);

/* Before HTTP_WORK: `name` wants it, or if that is empty the client's address, and gets it within a
 * share of the workers and of their queue. Without this it is nobody's, and is never held back for
 * others of its kind: what few send, and what must not wait. Where there is no room, `refuse`
 * answers, on the HTTP thread. */
void http_share(struct http_exchange *x, struct str name,
                void (*refuse)(void *ctx, struct http_exchange *x));

/* The answer. The text is copied. Security headers are added to every answer. */
void http_reply(struct http_exchange *x, unsigned status, const char *content_type,
                struct str body);
void http_add_header(struct http_exchange *x, const char *name, const char *value); /* before it */

/* 401, with a challenge where web.config.file has users. Only in `handle`. */
void http_reply_unauthorized(struct http_exchange *x, const char *sentence);

/* An answer made once and given to any number of exchanges without copying. The pieces must live
 * until `release(ctx)` is called, once, on any thread, when the last user is done; release may be
 * NULL. Giving it allocates nothing in our code, and takes a reference of its own: the caller keeps
 * his. encoding: "gzip" or NULL. */
struct http_body *http_body_new(const struct iovec *pieces, size_t n, const char *content_type,
                                const char *encoding, void (*release)(void *ctx), void *ctx);
struct http_body *http_body_unref(struct http_body *body);
void http_reply_body(struct http_exchange *x, struct http_body *body);

#endif
