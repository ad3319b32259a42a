/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binary heap whose members can change their rank or leave. */
#include "base/ranking.h"

#include "base/arena.h"

void ranking_free(struct ranking *ranking)
{
    free(ranking->at);
    *ranking = (struct ranking){ 0 };
}

static void set_place(struct ranking *ranking, struct ranked *ranked, size_t place)
{
    ranking->at[place - 1] = ranked;
    ranked->place = place;
}

static int64_t rank_at(const struct ranking *ranking, size_t place)
{
    return ranking->at[place - 1]->rank;
}

/* The lower of the two below a place, or 0. */
static size_t lower_child(const struct ranking *ranking, size_t place)
{
    size_t child = 2 * place;

    if (child > ranking->n)
        return 0;
    return child < ranking->n && rank_at(ranking, child + 1) < rank_at(ranking, child) ? child + 1
                                                                                       : child;
}

/* Moves it from its place to where its rank belongs. */
static void settle(struct ranking *ranking, struct ranked *ranked)
{
    size_t place = ranked->place, child;

    while (place > 1 && ranked->rank < rank_at(ranking, place / 2)) {
        set_place(ranking, ranking->at[place / 2 - 1], place);
        place /= 2;
    }
    while ((child = lower_child(ranking, place)) && rank_at(ranking, child) < ranked->rank) {
        set_place(ranking, ranking->at[child - 1], place);
        place = child;
    }
    set_place(ranking, ranked, place);
}

void ranking_put(struct ranking *ranking, struct ranked *ranked, int64_t rank)
{
    if (!ranked->place) {
        ranking->at = heap_grow(ranking->at, ranking->n, &ranking->n_room, sizeof(*ranking->at));
        set_place(ranking, ranked, ++ranking->n);
    }
    ranked->rank = rank;
    settle(ranking, ranked);
}

void ranking_remove(struct ranking *ranking, struct ranked *ranked)
{
    struct ranked *last;

    if (!ranked->place)
        return;
    last = ranking->at[--ranking->n];
    if (last != ranked) {
        set_place(ranking, last, ranked->place);
        settle(ranking, last);
    }
    ranked->place = 0;
}
