/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reading side of the HTTP API: /api/v1/jobs, /clusters, /nodes, /usage, /constants, as JSON,
 * with pages by key. docs/api.md. Answers are made on the server's pool, each with a deadline. */
#ifndef SONDE_WEB_API_H
#define SONDE_WEB_API_H

#include "http/server.h"

struct api;

struct api_config {
    const char *store;            /* URL; must live as long, as the next */
    const char *allocations_file; /* NULL: there is none */
    int64_t timeout_ns;           /* for one answer, from when the request was there */
    const struct clock *clock;    /* its monotonic time is that of the server and of clock_real */
    struct log *log;
};

struct api *api_new(const struct api_config *config);
struct api *api_free(struct api *api); /* returns NULL; not before the server has stopped */

/* Whether those are answered who have proved no name by a password: not until this says so. */
void api_set_anonymous(struct api *api, bool is_allowed);

enum { API_ROUTES = 8 };

/* Fills in the rows of a server's table: the API, and a page at / that lists it. */
void api_routes(struct api *api, struct http_route to[API_ROUTES]);

#endif
