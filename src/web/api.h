/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP API: what pages show, as JSON under /api/v1. docs/api.md, docs/openapi.json. It only
 * reads. Answers are made on the server's pool, each with a deadline. */
#ifndef SONDE_WEB_API_H
#define SONDE_WEB_API_H

#include "web/board.h"
#include "web/viewer.h"

struct api;

struct api_config {
    const char *store;            /* URL; must live as long, as the next */
    struct board_source boards;   /* take may be NULL: what is asked of the present is then 404 */
    const char *allocations_file; /* NULL: there is none */
    const struct str *hosts;      /* names by which this host may be called, if that is checked */
    size_t n_hosts;
    struct viewer_config viewer;
    struct str (*health)(void *ctx, struct arena *arena); /* as site_config's; may be NULL */
    void *health_ctx;
    int64_t timeout_ns;        /* for one answer, from when the request was there */
    const struct clock *clock; /* its monotonic time is that of the server and of clock_real */
    struct log *log;
};

struct api *api_new(const struct api_config *config);
struct api *api_free(struct api *api); /* returns NULL; not before the server has stopped */

/* Whether those are answered who have proved no name, where the viewer's auth is VIEWER_NONE: not
 * until this says so. And whether only who calls this host by one of its own names is. */
void api_set_access(struct api *api, bool is_anonymous_allowed, bool is_host_checked);

/* Whether it can be read, with a sentence for anybody; why is in the log, once until it can. May
 * block. */
int api_check_store(struct api *api, struct err *err);

enum { API_ROUTES = 18 };

/* Fills in the rows of a server's table: the API, its description, and a page at /api that lists
 * it. */
void api_routes(struct api *api, struct http_route to[API_ROUTES]);

#endif
