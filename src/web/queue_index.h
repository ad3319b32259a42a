/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is found out of the jobs of a board once, so that a page of them costs little. */
#ifndef SONDE_WEB_QUEUE_INDEX_H
#define SONDE_WEB_QUEUE_INDEX_H

#include "web/board.h"

struct queue_place {
    uint32_t cluster, job;
};

struct queue_index {
    struct queue_place *order; /* all jobs: newest submit time first, then highest id, then as they
                                * stand */
    size_t n;
    uint64_t jobs; /* every task of an array */
    struct queue_cluster {
        const struct section *jobs; /* or NULL */
        uint32_t *position;         /* by job: where it stands in the order */
        uint32_t *rank;             /* by symbol: of those that jobs are sorted by, in the order of
                                     * their bytes; 0 is the empty one. The same text has the same
                                     * in all clusters */
        double *gpus;               /* by symbol of a TRES string; NAN: not told */
    } * cluster;
};

/* All of it lives in the arena. */
struct queue_index *queue_index_make(const struct board *board, struct arena *arena);

#endif
