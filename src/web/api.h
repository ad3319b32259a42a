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
    int64_t timeout_ns;           /* for one answer */
    const struct clock *clock;
    struct log *log;
};

struct api *api_new(const struct api_config *config);
struct api *api_free(struct api *api); /* returns NULL */

enum { API_ROUTES = 6 };

/* Fills in the rows of a server's table. */
void api_routes(struct api *api, struct http_route to[API_ROUTES]);

#endif
