/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread of `sonde up` that writes the embedded series: at each tick what clusters have and do,
 * and what the local agent says of jobs. */
#ifndef SONDE_WEB_TICKER_H
#define SONDE_WEB_TICKER_H

#include "base/log.h"
#include "store/ticks.h"
#include "web/board.h"

struct ticker;

struct ticker_config {
    struct ticks_config series;
    struct board_source boards;
    const char *agent_url; /* "unix:/run/sonde/agent.sock", "http://127.0.0.1:9798"; NULL: none */
    /* Further samples of a moment, for what is simulated; may be NULL. */
    void (*more)(void *ctx, int64_t now, struct arena *arena, struct tick_sample **ret,
                 size_t *ret_n);
    void *ctx;
    int64_t interval_ns; /* 15 s */
    const struct clock *clock;
    struct log *log;
};

int ticker_start(const struct ticker_config *config, struct ticker **ret, struct err *err);
struct ticker *ticker_stop(struct ticker *ticker); /* returns NULL */
void ticker_end(struct ticker *ticker); /* begins with that, returns at once; NULL is allowed */

struct ticker_stats {
    uint64_t ticks, failures, samples;
    uint64_t left_out;   /* samples that are too many for one tick */
    double last_seconds; /* what the last one took */
    bool is_up, is_agent_up;
    bool is_retention_paused; /* base/clock_watch.h */
    uint64_t agent_failures;  /* since it has last answered */
    struct ticks_stats series;
};
void ticker_stats(struct ticker *ticker, struct ticker_stats *ret);

/* The samples of an agent's answer that are kept, by the rows of report/kept_words.h, as of jobs of
 * that cluster; and how many are left out, as they are too many. */
void ticker_take_agent(struct str text, struct str cluster, struct arena *arena,
                       struct tick_sample **ret, size_t *ret_n, size_t *ret_left_out);

/* Which cluster an agent's jobs are of: the only one there is, or, of several, the one that has a
 * node of the name that the agent tells. Empty: more than one has. False: nobody has said yet. */
bool ticker_cluster(const struct board *board, struct str text, struct str *ret);

#endif
