/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The routes /-/healthy, /-/ready and /-/reload, as Prometheus's own servers have them ("Management
 * API" of its documentation). */
#ifndef SONDE_HTTP_LIFECYCLE_H
#define SONDE_HTTP_LIFECYCLE_H

#include "http/server.h"

struct lifecycle {
    bool (*is_ready)(void *ctx); /* on the HTTP thread; NULL: from the start */
    /* In its place, on a worker. The sentence is for anybody who asks. */
    int (*check_ready)(void *ctx, struct err *err);
    /* On the HTTP thread, so it must not block; NULL: a program that answers is healthy. */
    int (*check_healthy)(void *ctx, struct err *err);
    /* Re-reads everything or keeps what was; runs on a worker. */
    int (*reload)(void *ctx, struct err *err);
    /* On the HTTP thread, in addition to http_is_trusted; NULL: no other condition. The reply says
     * what is wrong with a file. */
    bool (*may_reload)(void *ctx, const struct http_exchange *x);
    void *ctx; /* of all */
};

enum { LIFECYCLE_ROUTES = 3 };

/* Writes them into a table; `lifecycle` must outlive the server. */
void lifecycle_routes(struct lifecycle *lifecycle, struct http_route routes[LIFECYCLE_ROUTES]);

#endif
