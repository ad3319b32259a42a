/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde exporter`, `sonde lustre` and `sonde up` can be told, and what follows from it. */
#ifndef SONDE_CMD_EXPORTER_SETTINGS_H
#define SONDE_CMD_EXPORTER_SETTINGS_H

#include "cmd/cluster_options.h"
#include "cmd/prometheus_options.h"
#include "cmd/serve.h"
#include "http/metrics.h"
#include "source/lustre.h"
#include "source/trace.h"

struct settings;
struct exporter_options;
struct recorder;
struct stop_guard;

/* What `sonde up` adds to the exporter. */
struct exporter_hooks {
    size_t settings_size; /* of its settings, which begin with struct settings */

    /* Adds rows, whose places are in these, and changes others' initial values. */
    void (*make_options)(struct exporter_options *made);

    /* As option_command's. */
    void (*complete)(const struct option_command *command, void *settings, struct arena *arena);

    /* What follows from what was given; before the exporter looks at its own. */
    int (*read)(struct settings *settings, struct err *err);

    /* The name of something of its own that differs and cannot be changed under way; or NULL. */
    const char *(*changed)(const struct settings *old, const struct settings *new);

    /* Changes how HTTP is served. */
    void (*configure)(const struct settings *settings, struct http_config *config);

    /* In this order: before there is any thread, with settings that last until it serves; with an
     * engine, to add routes; with a server; when the process stops, returning at once; and when
     * there is no server any more. The last two are called also if one before them failed. */
    int (*prepare)(void *ctx, const struct settings *settings, struct log *log, struct err *err);
    int (*start)(void *ctx, struct engine *engine, struct recorder *recorder,
                 struct metrics *metrics, struct err *err);
    int (*serve)(void *ctx, struct http_server *server, struct err *err);
    void (*end)(void *ctx);
    void (*stop)(void *ctx, struct stop_guard *guard);

    /* In the place of the rest of a stop, when a part did not stop in time. */
    void (*clean)(void *ctx);

    /* Another engine takes the place of the one that it was given, which goes when this returns. */
    void (*use_engine)(void *ctx, struct engine *engine);

    /* As metrics_config's. */
    bool (*may_scrape)(void *ctx, const struct http_exchange *x);
    void (*tell_up)(void *ctx, struct up_self *up_self);
    void *ctx;
};

/* Which of the three it is. */
struct exporter_shape {
    const char *name;        /* "sonde exporter" */
    const char *summary;     /* as option_command */
    const char *description; /* likewise */
    const char *what;        /* headline of the landing page */
    const char *address;     /* ":9092" */
    const char *connections; /* at once: "512" for a few Prometheus servers, more for people */
    bool is_lustre;          /* it gives nothing but Lustre's collectors, and needs a Prometheus */
    const struct exporter_hooks *hooks; /* or NULL */
};

/* Whose munge credentials /ingest accepts; the second is the user of the agent's unit. */
#define INGEST_USERS "root,sonde-agent"

struct settings {
    struct serve_options serve;
    struct cluster_options own; /* of the one cluster, unless there are files */
    struct option_list cluster_files;
    struct prometheus_options prometheus;
    struct option_list matchers;
    struct {
        struct str time_range, matchers;
        struct option_list formats;
    } lustre;
    int64_t poll_limit_ns[KINDS]; /* that of KIND_JOBS holds for all that have none of their own */
    int64_t stale_limit_ns;
    bool collectors[COLLECTORS_MAX];
    struct str profile, prefix;
    struct {
        struct str url;
        int64_t interval_ns;
        struct str token_file, ingest_users, munge_socket, allocations_file;
        uint64_t summaries_per_second;
        struct {
            bool is_on;
            int64_t interval_ns, timeout_ns;
            struct str from;
        } history;
    } store;
    struct str report_config;
    struct str port; /* in place of serve.listen, if given */
    struct {
        bool is_enabled, is_open;
        struct str path, munge_socket;
        int64_t rate_ns;
    } trace;

    /* made from the above */
    bool keeps_facts; /* somebody looks into sections after they have been rendered */
    struct cluster_options *clusters;
    size_t n_clusters;
    struct series_matcher *matcher;      /* as many as matchers has */
    int64_t history_from;                /* UTC seconds */
    family_set excluded[COLLECTORS_MAX]; /* by collector: families that are not wanted */
    family_set excluded_self, excluded_up;
};

/* Of the settings of that shape. */
size_t settings_size(const struct exporter_shape *shape);

/* Reads flags, environment and file; an option_outcome, or -EINVAL with a sentence. */
int settings_parse(const struct exporter_shape *shape, int argc, char **argv, struct arena *arena,
                   struct settings *settings, struct err *err);

/* -EINVAL with a sentence if something differs that cannot be changed under way. */
int settings_check_reload(const struct exporter_shape *shape, const struct settings *old,
                          const struct settings *new, struct err *err);

/* Whether both ask the same sources. */
bool settings_same_sources(const struct settings *a, const struct settings *b);

/* Those that are on, of what the sources of any cluster can tell. */
collector_set settings_collectors(const struct settings *settings, const struct engine *engine);

struct trace_config settings_trace(const struct settings *settings, struct users *users);

/* Of a cluster's feeds. */
void settings_tunings(const struct settings *settings, size_t cluster,
                      const struct engine_cluster *of, struct refresh_tuning ret[FEEDS]);

bool settings_want_store(const struct settings *settings);

/* Whether what jobs used is kept, and whether both keep it in the same way. */
bool settings_want_summaries(const struct settings *settings);
bool settings_same_summaries(const struct settings *a, const struct settings *b);

/* How long a scrape that says nothing of it waits for new data: as the slowest cluster may take. */
int64_t settings_patience(const struct settings *settings);

/* Whose users and jobs are for the caller to fill in. */
struct lustre_settings settings_lustre(const struct settings *settings);
bool settings_want_lustre(const struct settings *settings);

#endif
