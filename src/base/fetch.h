/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One HTTP request (libcurl) with a deadline for the whole of it and a ceiling on the answer.
 * libcurl is loaded by the first call; each returns -ENOENT and names the package where it is not
 * installed. */
#ifndef SONDE_BASE_FETCH_H
#define SONDE_BASE_FETCH_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

enum { FETCH_ORIGIN = 200 };

struct fetch_line;
struct fetch_result;

struct fetch {
    const char *url;         /* http or https only; redirects are not followed; http_proxy and
                              * no_proxy hold, but never for this machine itself */
    const char *unix_socket; /* path to connect to instead, or NULL */
    const char *method;      /* NULL: GET, or POST with a body */
    struct str body;
    const char *content_type;
    const char *const *headers;   /* "Name: value", ended by NULL, or NULL */
    const char *user, *password;  /* basic auth, or NULL */
    const char *bearer;           /* token, or NULL */
    const char *ca_file;          /* certificates to trust instead of the system's, or NULL */
    int64_t timeout_ms;           /* for the whole request */
    const struct clock *clock;    /* that they are counted by; NULL: the real one. One that may
                                   * jump unseen is looked at about once a second */
    size_t max_answer;            /* bytes of the body after decompression */
    const atomic_bool *cancelled; /* checked about once a second, or NULL */
    struct fetch_line *line;      /* to be used and kept, or NULL */

    /* Called once before the body, as soon as status and type are known; may be NULL. Negative
     * stops and is passed on. */
    int (*begin)(void *ctx, const struct fetch_result *so_far, struct err *err);

    /* Gets the answer's body in pieces, whatever the status; NULL: nobody wants it. Negative stops
     * and is passed on. */
    int (*sink)(void *ctx, struct str piece, struct err *err);
    void *ctx;
};

struct fetch_result {
    long status;
    size_t bytes;
    uint64_t retry_after; /* seconds that the answer asks to wait; 0: it does not say */
    char content_type[100];
};

/* 0 when an HTTP answer came whole, whatever its status: look at ret->status. Otherwise -EINVAL
 * (the URL, or a line break in a header), -ENOENT (host name or unix socket), -ECONNREFUSED,
 * -ETIMEDOUT, -EFBIG, -EACCES (TLS, or a socket without permission), -ECANCELED, -EREMOTEIO, or
 * what the sink said. The sentence names scheme, host and port, never a credential, and is the same
 * each time that the same thing fails. An answer that was packed more than once is not unpacked.
 * libcurl does not notice a gzip stream that stops early in an otherwise whole answer: whoever
 * reads the body must know its end, as JSON does. */
int fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err);

/* A connection that outlives a request, for requests to one server, one at a time. With TLS each
 * new one costs 20 ms of CPU for reading the system's certificates; without, it saves little. */
struct fetch_line *fetch_line_new(void);
struct fetch_line *fetch_line_free(struct fetch_line *line); /* returns NULL */

/* A URL to add paths to, taken apart. */
struct fetch_base {
    char *url;             /* without user and password, and without a slash at its end */
    char *user, *password; /* decoded; NULL: it has none */
    char origin[FETCH_ORIGIN];
};

/* -EINVAL as fetch_run, and for a URL with a query or a fragment, behind which no path can stand.
 */
int fetch_base_of(const char *url, struct fetch_base *ret, struct err *err);
void fetch_base_clear(struct fetch_base *base);

/* What sentences name: "http://host:port" or "unix:/path". -EINVAL as fetch_run. */
int fetch_origin(const char *url, const char *unix_socket, char ret[FETCH_ORIGIN], struct err *err);

#endif
