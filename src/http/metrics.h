/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporter's routes: /metrics in the format and encoding that the asker prefers, the landing
 * page, and /-/healthy, /-/ready, /-/reload. */
#ifndef SONDE_HTTP_METRICS_H
#define SONDE_HTTP_METRICS_H

#include "collector/self.h"
#include "collector/up_self.h"
#include "http/server.h"
#include "snapshot/refresh.h"

/* A source with the refresher that asks it. */
struct feed {
    struct source *source;
    struct refresher *refresher;
};

enum { FEED_SLURM, FEED_LUSTRE, FEED_STORE, FEEDS };

enum { CLUSTERS_MAX = 32 };

struct engine_cluster {
    char *name;               /* NULL: there is but one, and nobody has said */
    bool is_labelled;         /* its name is among its labels */
    char *const_labels;       /* of all that is told of it */
    struct keep *keep;        /* which of its jobs; NULL: all */
    struct feed feeds[FEEDS]; /* no kind is told by two; one without a source tells nothing */
};

/* What is asked and shown, replaced as a whole when the configuration is read again. */
struct engine {
    struct engine_cluster clusters[CLUSTERS_MAX];
    size_t n_clusters;
    collector_set collectors; /* on, and within what the sources can tell */
    struct str profile;       /* which of them are shown to who asks for no other; empty: those of
                               * none */
    int64_t patience_ns;      /* how long a scrape without a stated timeout may wait for new data */
    family_set excluded;      /* of self_families: not wanted */
    family_set excluded_up;   /* likewise of up_self_families */
};

struct engine *engine_free(struct engine *engine); /* stops it; returns NULL */

struct metrics; /* what the handlers share */

struct metrics_config {
    const char *path;    /* "/metrics" */
    const char *program; /* "sonde exporter", and what it shows, for the landing page */
    const char *what;
    bool has_pages; /* somebody else's page is at /, in the place of the landing page */
    const struct clock *clock;
    struct log *log;
    /* Re-reads everything or keeps what was; runs on a worker. */
    int (*reload)(void *ctx, struct err *err);

    /* What is to be said of the store and of the clusters' histories; false: there is none. NULL:
     * likewise. */
    bool (*tell_store)(void *ctx, struct self_store *store, struct self_cluster *clusters,
                       size_t n_clusters);
    enum self_drain (*tell_drain)(void *ctx);            /* or NULL */
    void (*tell_up)(void *ctx, struct up_self *up_self); /* or NULL: it is no `sonde up` */

    /* Whether who asks may see what everybody does, and have a reload: 403 otherwise. NULL: they
     * may. */
    bool (*may_scrape)(void *ctx, const struct http_exchange *x);
    void *ctx;
};

struct metrics *metrics_new(const struct metrics_config *config);
struct metrics *metrics_free(struct metrics *metrics);

/* Adds the routes of job tracing, and what is told of it. Before metrics_routes; all three must
 * outlive the server. */
struct trace;
struct http_trace;
void metrics_add_trace(struct metrics *metrics, struct trace *trace, struct http_trace *routes,
                       const char *path);

/* Adds a route of somebody else's. Before metrics_routes. */
void metrics_add_route(struct metrics *metrics, const struct http_route *route);

/* For http_trace_config.jobs: ctx is the struct metrics. Has Slurm asked for newer ones, as a
 * scrape would, but does not wait for them. */
struct section *metrics_jobs(void *metrics, bool *ret_is_simulated);

/* The table of routes; `metrics` is the context of its handlers. */
const struct http_route *metrics_routes(const struct metrics *metrics);

/* Puts another engine (taken over) in place of the one before, which is stopped. */
void metrics_set_engine(struct metrics *metrics, struct engine *engine);

/* The same engine goes on with other collectors, limits and patience, and what it has learned.
 * `tunings` has a row for each of its clusters. */
struct engine_tuning {
    collector_set collectors;
    struct str profile;
    int64_t patience_ns;
    family_set excluded, excluded_up;
    struct refresh_tuning (*tunings)[FEEDS];
};
void metrics_tune_engine(struct metrics *metrics, const struct engine_tuning *tuning);

/* From now on nobody waits: who asks gets what there is. Before http_stop. */
void metrics_stop(struct metrics *metrics);

/* Whom to wake and whose statistics to show. Until then, requests wait. */
void metrics_set_server(struct metrics *metrics, struct http_server *server);

/* For refresh_config.changed: ctx is the struct metrics. */
void metrics_changed(void *metrics);

#endif
