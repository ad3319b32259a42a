/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The route by which agents hand in what jobs used until their end: POST /ingest with a token or a
 * munge credential. An answer of 200 means that it is in the store for good. docs/store.md has the
 * format. */
#ifndef SONDE_HTTP_INGEST_H
#define SONDE_HTTP_INGEST_H

#include "http/ingest_munge.h"
#include "http/server.h"
#include "record/recorder.h"

struct http_ingest;

struct http_ingest_config {
    struct recorder *recorder;
    const char *token_file; /* copied; NULL: tokens are not accepted; read again when it changes */
    struct ingest_munge_config munge; /* without users, munge credentials are not accepted */
    unsigned max_posts; /* at once: of the server's connections, some are left for others */
    const struct clock *clock;
    struct log *log;
};

struct http_ingest *http_ingest_new(const struct http_ingest_config *config);
struct http_ingest *http_ingest_free(struct http_ingest *ingest); /* returns NULL */

enum { HTTP_INGEST_ROUTES = 1 };

/* Fills in the rows of a server's table. */
void http_ingest_routes(struct http_ingest *ingest, struct http_route to[HTTP_INGEST_ROUTES]);

struct http_ingest_stats {
    uint64_t posts, refused, records;
    unsigned waiting; /* posts that have been let in and not been answered */
};
void http_ingest_stats(struct http_ingest *ingest, struct http_ingest_stats *ret);

#endif
