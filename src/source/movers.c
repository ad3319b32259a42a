/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/movers.h"

#include "base/list.h"
#include "base/ranking.h"

enum {
    LEAST_PLACES = 1 << 10,
    MOST_PLACES = MOVERS_REMEMBERED / 3 * 4,
    PROBES = 512,         /* places where an id may be, from its own on: many more than it needs */
    NEARBY = 64,          /* of them, those where it may push an idle one out, */
    TURNS = 8,            /* once in so many looks */
    BYTES_OF_MOVE = 4096, /* weigh as much as one operation */
};

_Static_assert((MOST_PLACES & (MOST_PLACES - 1)) == 0, "a power of two");

static const float part_that_stays = 0.8f; /* of older movement, from look to look */
static const double advantage = 1.5;       /* of an id that was kept */

/* What is remembered of an id; or of a target: that it has been seen. */
struct mover {
    uint64_t key;   /* keyed hash of target and id; 0: nobody is here */
    uint64_t total; /* ever */
    float movement; /* lately */
    uint32_t look : 31;
    uint32_t was_kept : 1;
};

_Static_assert(sizeof(struct mover) == 24, "6 MB for all");

/* An id that is kept, so far. */
struct pick {
    struct ranked ranked;
    uint64_t key;
    char id[JOB_STATS_ID];
    size_t id_bytes;
    struct job_stats_io read, write;
    struct job_stats_operation *operations;
    size_t n_operations, n_operations_room;
};

struct movers {
    struct mover *places; /* open addressing */
    size_t n_places;      /* a power of two */
    size_t n_taken;
    uint32_t look;

    struct pick **picks; /* the first `n_picks` are kept; what is behind them can be used again */
    size_t n_picks, n_made, n_picks_room, max_picks;
    struct ranking ranking;

    /* of the target */
    char *target;
    bool is_mdt;
    bool is_new; /* nobody knows what moved before this look */
    uint64_t target_key;
    uint64_t n_ids, n_merged;
};

struct movers *movers_new(size_t max_ids)
{
    struct movers *movers = heap_alloc(sizeof(*movers));

    movers->n_places = LEAST_PLACES;
    movers->places = heap_alloc(movers->n_places * sizeof(*movers->places));
    movers->max_picks = max_ids;
    return movers;
}

struct movers *movers_free(struct movers *movers)
{
    if (!movers)
        return NULL;
    for (size_t i = 0; i < movers->n_made; i++) {
        free(movers->picks[i]->operations);
        free(movers->picks[i]);
    }
    free(movers->picks);
    ranking_free(&movers->ranking);
    free(movers->places);
    free(movers->target);
    free(movers);
    return NULL;
}

/* It was in neither this look nor the last one. */
static bool is_gone(const struct movers *movers, const struct mover *mover)
{
    return ((movers->look - mover->look) & INT32_MAX) > 1;
}

static bool is_crowded(const struct movers *movers)
{
    return movers->n_taken >= movers->n_places / 4 * 3;
}

/* Where the key is, or else a place that it may take; NULL: there is none. */
static struct mover *find_place(const struct movers *movers, uint64_t key)
{
    struct mover *vacant = NULL;

    for (size_t i = 0; i < PROBES; i++) {
        struct mover *mover = &movers->places[(key + i) & (movers->n_places - 1)];

        if (mover->key == key)
            return mover;
        if (!vacant && mover->key && is_gone(movers, mover))
            vacant = mover;
        if (!mover->key)
            return vacant || is_crowded(movers) ? vacant : mover;
    }
    return vacant;
}

/* For when everything is taken: the place of the idlest nearby, if it is idle. Not in every look:
 * all would push each other out before anybody has a past. */
static struct mover *find_idle(const struct movers *movers, uint64_t key)
{
    struct mover *idlest = NULL;

    if (((key >> 32) + movers->look) % TURNS != 0)
        return NULL;
    for (size_t i = 0; i < NEARBY; i++) {
        struct mover *mover = &movers->places[(key + i) & (movers->n_places - 1)];

        if (mover->key && (!idlest || mover->movement < idlest->movement))
            idlest = mover;
    }
    return idlest && idlest->movement < 1 ? idlest : NULL;
}

static void take_place(struct movers *movers, struct mover *place, uint64_t key)
{
    movers->n_taken += place->key == 0;
    *place = (struct mover){ .key = key };
}

/* Forgets those that are gone, and makes the table as large as the others need. */
static void rebuild(struct movers *movers)
{
    struct mover *old = movers->places;
    size_t n_old = movers->n_places, n_live = 0;

    for (size_t i = 0; i < n_old; i++)
        n_live += old[i].key && !is_gone(movers, &old[i]);
    movers->n_places = LEAST_PLACES;
    while (movers->n_places < 2 * n_live && movers->n_places < MOST_PLACES)
        movers->n_places *= 2;
    movers->places = heap_alloc(movers->n_places * sizeof(*movers->places));
    movers->n_taken = 0;
    for (size_t i = 0; i < n_old; i++) {
        struct mover *place;

        if (!old[i].key || is_gone(movers, &old[i]))
            continue;
        place = find_place(movers, old[i].key);
        if (place) {
            take_place(movers, place, old[i].key);
            *place = old[i];
        }
    }
    free(old);
}

void movers_begin_look(struct movers *movers)
{
    movers->look = (movers->look + 1) & INT32_MAX;
    if (is_crowded(movers))
        rebuild(movers);
}

static struct mover *place_of(struct movers *movers, uint64_t key)
{
    struct mover *place;

    if (is_crowded(movers) && movers->n_places < MOST_PLACES)
        rebuild(movers);
    place = find_place(movers, key);
    return place ? place : find_idle(movers, key);
}

void movers_begin_target(struct movers *movers, struct str name, bool is_mdt)
{
    uint64_t hash = map_hash(name);
    struct mover *place;

    free(movers->target);
    movers->target = heap_str(name);
    movers->is_mdt = is_mdt;
    movers->target_key = (hash << 32 | hash >> 32) + is_mdt; /* an id may be called as the target */
    movers->target_key += !movers->target_key;
    movers->n_ids = movers->n_merged = 0;
    movers->n_picks = 0;
    ranking_free(&movers->ranking);

    place = place_of(movers, movers->target_key);
    movers->is_new = !place || place->key != movers->target_key;
    if (place && movers->is_new)
        take_place(movers, place, movers->target_key);
    if (place) {
        place->look = movers->look;
        place->movement = 1; /* so that nobody pushes it out */
    }
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t total_of(const struct job_stats_entry *entry)
{
    uint64_t total = plus(entry->read.samples, entry->write.samples);

    total = plus(total, entry->read.bytes / BYTES_OF_MOVE);
    total = plus(total, entry->write.bytes / BYTES_OF_MOVE);
    for (size_t i = 0; i < entry->n_operations; i++)
        total = plus(total, entry->operations[i].samples);
    return total;
}

/* Takes down what the id has done by now, and tells how it ranks: by what it has moved lately. */
static double note(struct movers *movers, struct mover *mover, uint64_t key, uint64_t total)
{
    bool is_known = mover->key == key;
    bool was_kept = is_known && mover->was_kept;
    /* Who comes later than its target has moved all that it has; unless some had to be forgotten:
     * it may be one of those. */
    bool has_past = is_known || (!movers->is_new && !is_crowded(movers));
    uint64_t moved;

    if (!is_known)
        take_place(movers, mover, key);
    moved = total < mover->total ? total : total - mover->total; /* Lustre may count anew */
    mover->movement = has_past ? mover->movement * part_that_stays + (float)moved : 0;
    mover->total = total;
    mover->look = movers->look;
    mover->was_kept = 0;
    if (!is_known && movers->is_new)
        return (double)total;
    return was_kept ? (double)mover->movement * advantage + 1 : (double)mover->movement;
}

static struct pick *find_pick(const struct movers *movers, uint64_t key)
{
    for (size_t i = 0; i < movers->n_picks; i++)
        if (movers->picks[i]->key == key)
            return movers->picks[i];
    return NULL;
}

/* One that is free, or that of the lowest rank; NULL: all have a higher one. */
static struct pick *make_room(struct movers *movers, int64_t rank)
{
    struct ranked *lowest = ranking_first(&movers->ranking);

    if (movers->n_picks == movers->max_picks)
        return lowest && lowest->rank < rank ? PART_OF(lowest, struct pick, ranked) : NULL;
    if (movers->n_picks == movers->n_made) {
        movers->picks =
            heap_grow(movers->picks, movers->n_made, &movers->n_picks_room, sizeof(*movers->picks));
        movers->picks[movers->n_made++] = heap_alloc(sizeof(struct pick));
    }
    movers->picks[movers->n_picks]->ranked.place = 0;
    return movers->picks[movers->n_picks++];
}

static struct job_stats_operation *add_operation(struct pick *pick)
{
    pick->operations = heap_grow(pick->operations, pick->n_operations, &pick->n_operations_room,
                                 sizeof(*pick->operations));
    return &pick->operations[pick->n_operations++];
}

static void pick_entry(struct movers *movers, const struct job_stats_entry *entry, uint64_t key,
                       double score)
{
    int64_t rank = score < 1e18 ? (int64_t)score : (int64_t)1e18;
    struct pick *pick = make_room(movers, rank);

    if (!pick)
        return;
    pick->key = key;
    pick->id_bytes = entry->id.n;
    if (entry->id.n)
        memcpy(pick->id, entry->id.p, entry->id.n);
    pick->read = entry->read;
    pick->write = entry->write;
    pick->n_operations = 0;
    for (size_t i = 0; i < entry->n_operations; i++)
        *add_operation(pick) = entry->operations[i];
    ranking_put(&movers->ranking, &pick->ranked, rank);
}

static void add_io(struct job_stats_io *to, const struct job_stats_io *io)
{
    if (!io->is_there)
        return;
    if (!to->is_there) {
        *to = *io;
        return;
    }
    /* What was never done has sizes of 0, which are none. */
    if (!to->samples || (io->samples && io->least_bytes < to->least_bytes))
        to->least_bytes = io->least_bytes;
    if (io->most_bytes > to->most_bytes)
        to->most_bytes = io->most_bytes;
    to->samples = plus(to->samples, io->samples);
    to->bytes = plus(to->bytes, io->bytes);
    to->has_sizes = to->has_sizes && io->has_sizes;
    to->small_samples = plus(to->small_samples, io->small_samples);
}

static struct job_stats_operation *find_operation(struct pick *pick, const char *name)
{
    for (size_t i = 0; i < pick->n_operations; i++)
        if (strcmp(pick->operations[i].name, name) == 0)
            return &pick->operations[i];
    return NULL;
}

/* The rank is that of the first: what the others have moved is not remembered. */
static void merge_entry(struct pick *pick, const struct job_stats_entry *entry)
{
    add_io(&pick->read, &entry->read);
    add_io(&pick->write, &entry->write);
    for (size_t i = 0; i < entry->n_operations; i++) {
        struct job_stats_operation *known = find_operation(pick, entry->operations[i].name);

        if (known)
            known->samples = plus(known->samples, entry->operations[i].samples);
        else if (pick->n_operations < JOB_STATS_OPERATIONS)
            *add_operation(pick) = entry->operations[i];
    }
}

/* Whether the target has told of that id before, in this look. */
static bool is_told(const struct movers *movers, const struct mover *mover, uint64_t key)
{
    if (mover)
        return mover->key == key && mover->look == movers->look;
    return movers->n_picks < movers->max_picks && find_pick(movers, key);
}

void movers_see(struct movers *movers, const struct job_stats_entry *entry)
{
    uint64_t key = map_hash(entry->id) ^ movers->target_key;
    struct mover *mover;

    key += !key;
    mover = place_of(movers, key);
    if (is_told(movers, mover, key)) {
        struct pick *pick = find_pick(movers, key);

        movers->n_merged++;
        if (pick)
            merge_entry(pick, entry);
        return;
    }
    movers->n_ids++;
    pick_entry(movers, entry, key, mover ? note(movers, mover, key, total_of(entry)) : 0);
}

static int by_id(const void *a, const void *b)
{
    const struct pick *one = *(struct pick *const *)a, *other = *(struct pick *const *)b;
    size_t n = one->id_bytes < other->id_bytes ? one->id_bytes : other->id_bytes;
    int order = memcmp(one->id, other->id, n);

    return order ? order : (one->id_bytes > other->id_bytes) - (one->id_bytes < other->id_bytes);
}

static struct lustre_io io_of(const struct job_stats_io *io)
{
    return (struct lustre_io){
        .is_there = io->is_there,
        .has_sizes = io->has_sizes,
        .samples = io->samples,
        .bytes = io->bytes,
        .least_bytes = io->least_bytes,
        .most_bytes = io->most_bytes,
        .small_samples = io->small_samples,
    };
}

static void give(const struct movers *movers, const struct pick *pick, struct lustre_use *to)
{
    to->id[to->n++] = (struct lustre_id_use){
        .target = symbols_put(&to->symbols, str_of(movers->target)),
        .id = symbols_put(&to->symbols, (struct str){ pick->id, pick->id_bytes }),
        .is_mdt = movers->is_mdt,
        .read = io_of(&pick->read),
        .write = io_of(&pick->write),
        .first_operation = (uint32_t)to->n_operations,
        .n_operations = (uint32_t)pick->n_operations,
    };
    for (size_t i = 0; i < pick->n_operations; i++)
        to->operation[to->n_operations++] = (struct lustre_operation){
            .name = symbols_put(&to->symbols, str_of(pick->operations[i].name)),
            .samples = pick->operations[i].samples,
        };
}

void movers_end_target(struct movers *movers, struct lustre_use *to)
{
    size_t n_operations = 0;

    if (movers->n_picks)
        qsort(movers->picks, movers->n_picks, sizeof(*movers->picks), by_id);
    for (size_t i = 0; i < movers->n_picks; i++)
        n_operations += movers->picks[i]->n_operations;
    to->id = heap_resize(to->id, to->n + movers->n_picks, sizeof(*to->id));
    to->operation =
        heap_resize(to->operation, to->n_operations + n_operations, sizeof(*to->operation));
    for (size_t i = 0; i < movers->n_picks; i++) {
        struct mover *mover = find_place(movers, movers->picks[i]->key);

        if (mover && mover->key == movers->picks[i]->key)
            mover->was_kept = 1;
        give(movers, movers->picks[i], to);
    }
    to->ids_left_out += movers->n_ids - movers->n_picks;
    to->ids_merged += movers->n_merged;
    movers->n_picks = 0;
}
