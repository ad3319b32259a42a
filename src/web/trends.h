/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cluster's or a node's numbers over time, from the embedded series or from a Prometheus. */
#ifndef SONDE_WEB_TRENDS_H
#define SONDE_WEB_TRENDS_H

#include "report/axis.h"
#include "report/facts.h"
#include "source/prometheus.h"
#include "web/sums.h"

enum trend {
    TREND_CPUS,      /* allocated, idle, unusable */
    TREND_GPUS,      /* likewise, over all types */
    TREND_MEMORY,    /* likewise, bytes */
    TREND_NODES,     /* by state */
    TREND_JOBS,      /* running, pending, others by state */
    TREND_NODE_CPUS, /* of one node: allocated, load */
    TRENDS,
};

struct trend_row {
    const char *name;  /* in addresses: "cpus" */
    const char *title; /* "CPUs" */
    enum axis_unit unit;
    bool is_of_node;
};
extern const struct trend_row trend_rows[TRENDS];

struct trends;

struct trends_config {
    const char *series_path;                              /* of the embedded series; or NULL */
    const struct prometheus_settings *prometheus;         /* or NULL; if both, the first */
    struct str (*matcher)(void *ctx, struct str cluster); /* PromQL of that cluster; or NULL */
    void *ctx;
};

int trends_open(const struct trends_config *config, struct trends **ret, struct err *err);
struct trends *trends_close(struct trends *trends); /* returns NULL */

struct trend_question {
    enum trend trend;
    struct str cluster, node;
    int64_t from, to;
    size_t most_points; /* at most PLOT_POINTS_MAX */
    int64_t deadline_ns;
};

/* Any thread. n_points is 0 if there is nothing. Lives in the arena. */
int trends_read(struct trends *trends, const struct trend_question *question, struct arena *arena,
                struct facts_plot *ret, struct err *err);

/* What `sonde up` writes at each tick: the names of a cluster's series and their values, from the
 * same table that trends_read reads by. Nodes only if there are few (TRENDS_NODES_MAX). */
enum { TRENDS_NODES_MAX = 256 };
struct tick_sample;
void trends_samples(const struct cluster_sums *sums, struct str cluster,
                    const struct section *nodes, struct arena *arena, struct tick_sample **ret,
                    size_t *ret_n);

#endif
