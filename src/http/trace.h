/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The routes of job tracing: POST takes what a job says of its processes, if its sender proves that
 * the job is his; GET shows a table. docs/trace.md. */
#ifndef SONDE_HTTP_TRACE_H
#define SONDE_HTTP_TRACE_H

#include "base/buf.h"
#include "base/munge.h"
#include "http/server.h"
#include "source/trace.h"

struct http_trace;

struct http_trace_config {
    const char *path; /* "/trace"; must live as long as the routes */
    struct trace *trace;
    bool is_open; /* who gives no proof is taken at his word */

    /* The newest section of jobs with a reference for the caller, or NULL. On a worker. */
    struct section *(*jobs)(void *ctx, bool *ret_is_simulated);
    void *ctx;

    /* Whether who asks may see the page: 403 otherwise. NULL: they may. */
    bool (*may_look)(void *ctx, const struct http_exchange *x);
    void *look_ctx;

    /* munge_unseal, or what a test has instead. On a worker, on one at a time. */
    int (*unseal)(const char *socket, struct str credential, struct buf *to,
                  struct munge_origin *ret, struct err *err);
    const char *munge_socket; /* or NULL */
    const struct clock *clock;
    struct log *log;
};

struct http_trace *http_trace_new(const struct http_trace_config *config);
struct http_trace *http_trace_free(struct http_trace *trace); /* returns NULL */
void http_trace_set_open(struct http_trace *trace, bool is_open);

enum { HTTP_TRACE_ROUTES = 2 };

/* Fills in the rows of a server's table. */
void http_trace_routes(struct http_trace *trace, struct http_route to[HTTP_TRACE_ROUTES]);

#endif
