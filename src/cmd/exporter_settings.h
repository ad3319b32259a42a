/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde exporter` and `sonde lustre` can be told, and what follows from it. */
#ifndef SONDE_CMD_EXPORTER_SETTINGS_H
#define SONDE_CMD_EXPORTER_SETTINGS_H

#include "cmd/cluster_options.h"
#include "cmd/prometheus_options.h"
#include "cmd/serve.h"
#include "http/metrics.h"
#include "source/lustre.h"
#include "source/trace.h"

/* Which of the two it is. */
struct exporter_shape {
    const char *name;        /* "sonde exporter" */
    const char *summary;     /* as option_command */
    const char *description; /* likewise */
    const char *what;        /* headline of the landing page */
    const char *address;     /* ":9092" */
    bool is_lustre;          /* it gives nothing but Lustre's collectors, and needs a Prometheus */
};

struct settings {
    struct serve_options serve;
    struct cluster_options own; /* of the one cluster, unless there are files */
    struct option_list cluster_files;
    struct prometheus_options prometheus;
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
        struct str token_file, allocations_file;
        struct {
            bool is_on;
            int64_t interval_ns, timeout_ns;
            struct str from;
        } history;
    } store;
    struct str port; /* in place of serve.listen, if given */
    struct {
        bool is_enabled, is_open;
        struct str path, munge_socket;
        int64_t rate_ns;
    } trace;

    /* made from the above */
    struct cluster_options *clusters;
    size_t n_clusters;
    int64_t history_from;              /* UTC seconds */
    uint64_t excluded[COLLECTORS_MAX]; /* bit i: family i of the collector is not wanted */
    uint64_t excluded_self;
};

/* Reads flags, environment and file; an option_outcome, or -EINVAL with a sentence. */
int settings_parse(const struct exporter_shape *shape, int argc, char **argv, struct arena *arena,
                   struct settings *settings, struct err *err);

/* -EINVAL with a sentence if something differs that cannot be changed under way. */
int settings_check_reload(const struct settings *old, const struct settings *new, struct err *err);

/* Whether both ask the same sources. */
bool settings_same_sources(const struct settings *a, const struct settings *b);

/* Those that are on, of what the sources of any cluster can tell. */
collector_set settings_collectors(const struct settings *settings, const struct engine *engine);

struct trace_config settings_trace(const struct settings *settings, struct users *users);

/* Of a cluster's feeds. */
void settings_tunings(const struct settings *settings, size_t cluster,
                      const struct engine_cluster *of, struct refresh_tuning ret[FEEDS]);

bool settings_want_store(const struct settings *settings);

/* How long a scrape that says nothing of it waits for new data: as the slowest cluster may take. */
int64_t settings_patience(const struct settings *settings);

/* Whose users and jobs are for the caller to fill in. */
struct lustre_settings settings_lustre(const struct settings *settings);
bool settings_want_lustre(const struct settings *settings);

#endif
