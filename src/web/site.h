/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pages: a row for each, rendered on the server's pool, complete without JavaScript. */
#ifndef SONDE_WEB_SITE_H
#define SONDE_WEB_SITE_H

#include "http/server.h"
#include "report/checks.h"
#include "report/facts_series.h"
#include "web/board.h"
#include "web/trends.h"
#include "web/viewer.h"

struct site;

struct site_config {
    struct board_source boards;
    const char *store;                            /* URL; or NULL: none is kept */
    const char *series_path;                      /* of the embedded series; or NULL */
    const struct prometheus_settings *prometheus; /* or NULL */
    const struct series_matcher *matcher;
    size_t n_matchers;
    const char *allocations_file; /* or NULL */
    const char *checks_file;      /* or NULL */
    const char *report_program;   /* sonde-report, for PNG and PDF; its flags say where data is */
    char *const *report_flags;    /* ended by NULL */
    struct viewer_config viewer;
    const struct str *hosts; /* names by which this host may be called, if that is checked */
    size_t n_hosts;
    const char *motd; /* what stands at the head of each page: HTML of our own; or NULL */
    bool is_up;       /* of `sonde up`: says how to move to Prometheus */
    struct str (*health)(void *ctx, struct arena *arena); /* JSON of what sonde says of itself; or
                                                           * NULL */
    struct str (*notice)(void *ctx, struct arena *arena); /* what is wrong with sonde itself, for
                                                           * every page; empty: nothing. Or NULL */
    void *health_ctx;                                     /* of both */
    int64_t timeout_ns;                                   /* for one page */
    const struct clock *clock;                            /* as api_config */
    struct log *log;
};

int site_new(const struct site_config *config, struct site **ret, struct err *err);
struct site *site_free(struct site *site); /* returns NULL; not before the server has stopped */

/* Whether those are answered of whom nothing is asked (VIEWER_NONE): not until this says so. And
 * whether only who calls this host by one of its own names is. */
void site_set_access(struct site *site, bool is_anonymous_allowed, bool is_host_checked);

enum { SITE_ROUTES = 40 };

/* Fills in rows of a server's table, the last of them for all paths that nobody else has; returns
 * how many. */
size_t site_routes(struct site *site, struct http_route to[SITE_ROUTES]);

/* ---- for the pages ---- */

enum site_need {
    SITE_BOARD = 1 << 0,     /* page without one: 503 with why */
    SITE_STORE = 1 << 1,     /* likewise */
    SITE_MAY_STORE = 1 << 2, /* reader is NULL if it cannot be read: why_no_store says why */
};

/* One request, on a worker. */
struct site_call {
    struct site *site;
    const struct site_config *config;
    struct http_exchange *x;
    struct viewer viewer;
    const struct board *board;   /* or NULL */
    struct store_reader *reader; /* or NULL */
    struct str why_no_store;
    struct str rest;    /* of the path: what the star stands for, decoded */
    struct str cluster; /* ?cluster=, or empty: all */
    struct arena arena;
    struct prometheus *prometheus; /* of site_gather, as the next; or NULL */
    struct ticks_reader *kept;
    int64_t now, deadline_ns;
    struct str title; /* to be set by the page */
    struct buf out;   /* what stands in <main> */
    struct err err;
};

struct site_page {
    const char *path; /* of the route: "/jobs", "/job/" with a star behind it */
    const char *nav;  /* its word in the navigation; or NULL */
    unsigned needs;

    /* Writes to call->out, the headline <h1> first. Positive: the HTTP status of a refusal, whose
     * sentence is in call->err; negative: the store failed. */
    int (*show)(struct site_call *call);

    /* In place of it, for what is no page: writes the whole answer to call->out, and its type.
     * Refusals are then plain text, or JSON under /api/. */
    int (*make)(struct site_call *call, const char **ret_type);
};
extern const struct site_page *const site_pages[]; /* ended by NULL */

struct str site_argument(const struct site_call *call, const char *name); /* empty: none */

/* Sets the sentence, forgets what was written, and returns the status. */
int site_refuse(struct site_call *call, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The address of this page with one argument replaced, or left out if the value is empty; encoded,
 * in the arena: for links that page and sort. */
struct str site_address(struct site_call *call, const char *name, struct str value);

/* Clusters that are meant: call->cluster, or all. */
bool site_shows(const struct site_call *call, const struct board_cluster *cluster);

/* Sends the reader to another address of this site, encoded: 303. */
int site_go(struct site_call *call, struct str address);

/* What gather.h needs, with the deadline of the call. */
struct gather;
int site_gather(struct site_call *call, struct gather *ret);
const struct check_settings *site_checks(const struct site_call *call);

/* NULL: nothing keeps numbers over time; there is no report_program. */
struct report_child;
struct trends *site_trends(const struct site_call *call);
struct report_child *site_report_child(const struct site_call *call);

/* 404 with the nearest that there are: what is "node", "user", "account", "partition",
 * "reservation" or "cluster", or anything else, which has none. */
int site_not_found(struct site_call *call, const char *what, struct str name);

#endif
