/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the k lowest or highest of many. */
#include "report/choose.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
    double rank;
    size_t place;
};

static int by_rank(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static size_t choose(struct arena *arena, const double *value, size_t n, size_t most, double sign,
                     size_t **ret_places)
{
    struct candidate *candidate = heap_array(n, sizeof(*candidate));
    size_t n_known = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(value[i]))
            candidate[n_known++] = (struct candidate){ sign * value[i], i };
    if (n_known)
        qsort(candidate, n_known, sizeof(*candidate), by_rank);
    if (n_known > most)
        n_known = most;
    *ret_places = ARENA_ARRAY(arena, size_t, n_known + 1);
    for (size_t i = 0; i < n_known; i++)
        (*ret_places)[i] = candidate[i].place;
    free(candidate);
    return n_known;
}

size_t choose_lowest(struct arena *arena, const double *value, size_t n, size_t most,
                     size_t **ret_places)
{
    return choose(arena, value, n, most, 1, ret_places);
}

size_t choose_highest(struct arena *arena, const double *value, size_t n, size_t most,
                      size_t **ret_places)
{
    return choose(arena, value, n, most, -1, ret_places);
}
