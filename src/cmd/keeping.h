/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What keeps jobs in a store, beside an exporter: the recorder, the histories that complete it from
 * slurmdbd, summaries of finished jobs, and the posts of agents. */
#ifndef SONDE_CMD_KEEPING_H
#define SONDE_CMD_KEEPING_H

#include "cmd/exporter_settings.h"
#include "http/metrics.h"
#include "record/summaries.h"

struct keeping;

/* Hands what is seen of a cluster to the recorder. */
struct keeping_watched {
    struct keeping *keeping;
    size_t cluster;
};

struct keeping {
    const struct clock *clock;
    struct log *log;
    struct recorder *recorder; /* NULL: nothing is kept; as the next ones */
    struct keeping_watched watched[CLUSTERS_MAX];
    struct history *histories[CLUSTERS_MAX];
    struct keep *keeps[CLUSTERS_MAX]; /* of the histories */
    struct summaries *summaries;
    struct http_ingest *ingest;
    pthread_mutex_t telling; /* of summaries, which a reload may replace */
};

void keeping_init(struct keeping *keeping, const struct clock *clock, struct log *log);

/* Before the clusters' refreshers, of which each is then to be watched. */
int keeping_start_recorder(struct keeping *keeping, const struct settings *settings,
                           const struct engine *engine, struct err *err);
void keeping_watch(struct keeping *keeping, size_t cluster, struct refresh_config *config);

/* What the store tells of a cluster. */
int keeping_open_source(struct keeping *keeping, const struct settings *settings, size_t i,
                        struct engine_cluster *cluster, struct err *err);

/* After them: all the rest. Adds routes to the metrics' own. */
int keeping_start(struct keeping *keeping, const struct settings *settings,
                  const struct engine *engine, struct metrics *metrics, struct err *err);

/* For a reload: *ret stays as it is if there are to be none. */
int keeping_make_summaries(struct keeping *keeping, const struct settings *settings,
                           const struct engine *engine, struct summaries **ret, struct err *err);
void keeping_use_summaries(struct keeping *keeping, struct summaries *summaries);

/* False: nothing is kept. */
bool keeping_tell(struct keeping *keeping, struct self_store *store, struct self_cluster *clusters,
                  size_t n);

/* Whoever waits for the recorder; and, when no refresher is left, the recorder itself. The first
 * begins with that and returns at once. */
void keeping_cancel_askers(struct keeping *keeping);
void keeping_stop_askers(struct keeping *keeping);
void keeping_end(struct keeping *keeping);

#endif
