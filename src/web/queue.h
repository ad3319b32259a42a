/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The jobs of a board, filtered, sorted, a page of them. */
#ifndef SONDE_WEB_QUEUE_H
#define SONDE_WEB_QUEUE_H

#include "store/query.h"
#include "web/board.h"
#include "web/viewer.h"

/* A column by which it can be sorted; the same words in addresses. If nothing else is said: by
 * QUEUE_BY_SUBMIT, descending, which is the newest first. */
enum queue_sort {
    QUEUE_BY_SUBMIT,
    QUEUE_BY_ID,
    QUEUE_BY_NAME,
    QUEUE_BY_USER,
    QUEUE_BY_ACCOUNT,
    QUEUE_BY_PARTITION,
    QUEUE_BY_STATE,
    QUEUE_BY_REASON,
    QUEUE_BY_NODES,
    QUEUE_BY_CPUS,
    QUEUE_BY_GPUS,
    QUEUE_BY_MEMORY,
    QUEUE_BY_START,
    QUEUE_BY_ELAPSED,
    QUEUE_BY_LIMIT,
    QUEUE_BY_PRIORITY,
    QUEUE_SORTS,
};
extern const char *const queue_sort_words[QUEUE_SORTS];

struct queue_question {
    const struct job_filter *filter; /* efficiency and by_end let all pass */
    struct str text;      /* anywhere in id, name, user, account or node list, whatever its case;
                           * or empty */
    struct words reasons; /* of cluster_sums.reason: those that wait for any of them; or none */
    enum queue_sort sort;
    bool is_descending; /* what is not told is last, either way; those that are alike by submit time
                         * and id, the newest first */
    size_t offset, limit; /* 1 … QUEUE_ROWS_MAX */
    const struct viewer *viewer;
    int64_t now;
};
enum { QUEUE_ROWS_MAX = 1000 };

struct queue_row {
    const struct board_cluster *cluster;
    const struct job *job;
    double gpus;             /* NAN: not told */
    int64_t elapsed_seconds; /* -1: it has not started */
};

struct queue_page {
    struct queue_row *row;
    size_t n;
    uint64_t matches, jobs; /* records in all; jobs, every task of an array counted */
};

/* -E2BIG as store_jobs, -EBADMSG for a list of nodes that is none. Lives in the arena. */
int queue_find(const struct board *board, const struct queue_question *question,
               struct arena *arena, struct queue_page *ret, struct err *err);

#endif
