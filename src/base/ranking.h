/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Things by rank: the lowest is at hand, and any of them can change its rank or leave, in
 * logarithmic time (a binary heap). `struct ranked` is part of the thing. */
#ifndef SONDE_BASE_RANKING_H
#define SONDE_BASE_RANKING_H

#include <stddef.h>
#include <stdint.h>

struct ranked {
    int64_t rank;
    size_t place; /* from 1; 0: in no ranking */
};

struct ranking {
    struct ranked **at; /* at[place - 1] */
    size_t n, n_room;
};

/* A zeroed struct ranking is an empty one. */
void ranking_free(struct ranking *ranking);

/* Puts it in, or changes its rank. */
void ranking_put(struct ranking *ranking, struct ranked *ranked, int64_t rank);
void ranking_remove(struct ranking *ranking, struct ranked *ranked); /* if it is in */

static inline struct ranked *ranking_first(const struct ranking *ranking)
{
    return ranking->n ? ranking->at[0] : NULL;
}

#endif
