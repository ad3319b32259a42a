/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the job ids with the most traffic on a Lustre target. */
#include "source/movers.h"

#include "base/list.h"
#include "base/ranking.h"

enum {
    BLOCK_PLACES = 1 << 10,
    PROBES = 512,         /* places where an id may be, from its own on: many more than it needs */
    NEARBY = 64,          /* of them, those where it may push an idle one out, */
    TURNS = 8,            /* once in so many looks */
    BYTES_OF_MOVE = 4096, /* weigh as much as one operation */
    PICK_BYTES = 256,     /* counted as text of each id: one that shows nothing takes room too */
    FAMILIES_OF_IO = 4,   /* and one more where Lustre counts sizes */
    OPERATIONS_STEP = 8,  /* at a time there is room for so many more */
    UTF8_GROWTH = 3,      /* bytes of what stands for one that is not UTF-8 */
};

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
    struct pick *next; /* in its bucket, or among those that are unused */
    uint64_t key;
    uint32_t turn; /* of its target, in this look */
    symbol target;
    bool is_mdt;
    char *id;
    size_t id_bytes, n_id_room;
    size_t text_bytes; /* once its target has ended */
    struct lustre_io read, write;
    struct job_stats_operation *operations;
    size_t n_operations, n_operations_room;
};

struct movers {
    struct mover **blocks; /* of open addressing; growing moves none of them */
    size_t n_places;       /* a power of two */
    size_t most_places;    /* as well */
    size_t n_taken;
    uint32_t look;

    size_t max_ids, max_text_bytes;
    struct lustre_use *to;
    struct ranking ranking; /* of what is kept of the targets before this one, in this look */
    size_t text_bytes;      /* of that */
    struct pick *unused;
    uint32_t turn;

    /* of the target */
    char *target;
    bool is_mdt;
    bool is_new; /* nobody knows what moved before this look */
    uint64_t target_key;
    uint64_t n_ids, n_merged;
    struct ranking target_ranking;
    struct pick **buckets; /* of target_ranking, by key */
    size_t n_buckets;      /* a power of two */
    char id[UTF8_GROWTH * JOB_STATS_ID];
};

static size_t power_of_two(size_t at_least, size_t n)
{
    while (n < at_least)
        n *= 2;
    return n;
}

static struct mover *slot(const struct movers *movers, size_t i)
{
    return &movers->blocks[i / BLOCK_PLACES][i % BLOCK_PLACES];
}

/* For as many places, from n_places on; those that are there stay where they are. */
static void add_blocks(struct movers *movers, size_t n_places)
{
    movers->blocks = heap_resize(movers->blocks, n_places / BLOCK_PLACES, sizeof(*movers->blocks));
    for (size_t i = movers->n_places; i < n_places; i += BLOCK_PLACES)
        movers->blocks[i / BLOCK_PLACES] = heap_alloc(BLOCK_PLACES * sizeof(struct mover));
}

/* From n_places on. */
static void cut_blocks(struct movers *movers, size_t n_old)
{
    for (size_t i = movers->n_places; i < n_old; i += BLOCK_PLACES)
        free(movers->blocks[i / BLOCK_PLACES]);
}

struct movers *movers_new(size_t max_ids, size_t max_text_bytes, size_t max_remembered)
{
    struct movers *movers = heap_alloc(sizeof(*movers));

    add_blocks(movers, BLOCK_PLACES);
    movers->n_places = BLOCK_PLACES;
    movers->most_places = power_of_two(max_remembered / 3 * 4, BLOCK_PLACES);
    movers->max_ids = max_ids;
    movers->max_text_bytes = max_text_bytes;
    movers->n_buckets = power_of_two(max_ids, 1);
    movers->buckets = heap_alloc(movers->n_buckets * sizeof(struct pick *));
    return movers;
}

static void put_aside(struct movers *movers, struct pick *pick)
{
    pick->next = movers->unused;
    movers->unused = pick;
}

static void forget_target(struct movers *movers)
{
    for (size_t i = 0; i < movers->target_ranking.n; i++)
        put_aside(movers, PART_OF(movers->target_ranking.at[i], struct pick, ranked));
    ranking_free(&movers->target_ranking);
}

/* In the next look there may be none like these. */
static void free_picks(struct movers *movers)
{
    forget_target(movers);
    for (size_t i = 0; i < movers->ranking.n; i++)
        put_aside(movers, PART_OF(movers->ranking.at[i], struct pick, ranked));
    ranking_free(&movers->ranking);
    movers->text_bytes = 0;
    for (struct pick *pick = movers->unused, *next; pick; pick = next) {
        next = pick->next;
        free(pick->operations);
        free(pick->id);
        free(pick);
    }
    movers->unused = NULL;
}

struct movers *movers_free(struct movers *movers)
{
    if (!movers)
        return NULL;
    free_picks(movers);
    for (size_t i = 0; i < movers->n_places; i += BLOCK_PLACES)
        free(movers->blocks[i / BLOCK_PLACES]);
    free(movers->blocks);
    free(movers->buckets);
    free(movers->target);
    free(movers);
    return NULL;
}

/* --- what is remembered --- */

/* It was in neither this look nor the last one. */
static bool is_gone(const struct movers *movers, const struct mover *mover)
{
    return ((movers->look - mover->look) & INT32_MAX) > 1;
}

static bool is_crowded(const struct movers *movers)
{
    return movers->n_taken >= movers->n_places / 4 * 3;
}

/* Where the key is, or else a place that it may take, an empty one only if `may_fill`; NULL: there
 * is none. While none may be filled, a key can be behind an empty place (find_idle). */
static struct mover *find_place(const struct movers *movers, uint64_t key, bool may_fill)
{
    struct mover *vacant = NULL;

    for (size_t i = 0; i < PROBES; i++) {
        struct mover *mover = slot(movers, (key + i) & (movers->n_places - 1));

        if (mover->key == key)
            return mover;
        if (!vacant && mover->key && is_gone(movers, mover))
            vacant = mover;
        if (!mover->key && may_fill)
            return vacant ? vacant : mover;
        if (!mover->key && i >= NEARBY)
            return vacant;
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
        struct mover *mover = slot(movers, (key + i) & (movers->n_places - 1));

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

/* Each as near to its own place as can be; `n` of them may be taken. Who moves can leave a gap
 * before one that was moved earlier, hence again until all stay. */
static void settle(struct movers *movers, size_t n)
{
    bool has_moved;

    do {
        has_moved = false;
        for (size_t i = 0; i < n; i++) {
            struct mover *from = slot(movers, i), *to, mover = *from;

            if (!mover.key)
                continue;
            *from = (struct mover){ 0 };
            to = find_place(movers, mover.key, true);
            if (to)
                *to = mover;
            else
                movers->n_taken--;
            has_moved |= to != from;
        }
        n = movers->n_places;
    } while (has_moved);
}

/* Forgets those that are gone, and makes the table as large as the others need, without a second
 * one beside it. Of too many nobody is forgotten: who is gone leaves its place to whoever comes. */
static void rebuild(struct movers *movers)
{
    size_t n_old = movers->n_places, n_live = 0, n_new;

    for (size_t i = 0; i < n_old; i++)
        n_live += slot(movers, i)->key && !is_gone(movers, slot(movers, i));
    if (n_live >= movers->most_places / 4 * 3)
        return;
    for (size_t i = 0; i < n_old; i++)
        if (is_gone(movers, slot(movers, i)))
            *slot(movers, i) = (struct mover){ 0 };
    movers->n_taken = n_live;
    n_new = power_of_two(2 * n_live, BLOCK_PLACES);
    n_new = n_new < movers->most_places ? n_new : movers->most_places;
    if (n_new > n_old)
        add_blocks(movers, n_new);
    movers->n_places = n_new;
    settle(movers, n_old);
    if (n_new < n_old)
        cut_blocks(movers, n_old);
}

void movers_begin_look(struct movers *movers, struct lustre_use *to)
{
    free_picks(movers);
    movers->to = to;
    movers->turn = 0;
    movers->look = (movers->look + 1) & INT32_MAX;
    if (is_crowded(movers))
        rebuild(movers);
}

static struct mover *place_of(struct movers *movers, uint64_t key)
{
    struct mover *place;

    if (is_crowded(movers) && movers->n_places < movers->most_places)
        rebuild(movers);
    place = find_place(movers, key, !is_crowded(movers));
    return place ? place : find_idle(movers, key);
}

/* However crowded it is: of targets there are few. */
static bool remember_target(struct movers *movers)
{
    struct mover *place = find_place(movers, movers->target_key, true);
    bool is_known = place && place->key == movers->target_key && !is_gone(movers, place);

    if (!place)
        return false;
    if (!is_known)
        take_place(movers, place, movers->target_key);
    place->look = movers->look;
    place->movement = 1; /* so that nobody pushes it out */
    return is_known;
}

void movers_begin_target(struct movers *movers, struct str name, bool is_mdt)
{
    uint64_t hash = map_hash(name);

    free(movers->target);
    movers->target = heap_str(name);
    movers->is_mdt = is_mdt;
    movers->target_key = (hash << 32 | hash >> 32) + is_mdt; /* an id may be called as the target */
    movers->target_key += !movers->target_key;
    movers->n_ids = movers->n_merged = 0;
    forget_target(movers);
    memset(movers->buckets, 0, movers->n_buckets * sizeof(*movers->buckets));
    movers->is_new = !remember_target(movers);
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
    bool is_known = mover->key == key && !movers->is_new;
    bool was_kept = is_known && mover->was_kept;
    /* Who comes later than its target has moved all that it has; unless some had to be forgotten:
     * it may be one of those. */
    bool has_past = is_known || (!movers->is_new && !is_crowded(movers));
    uint64_t moved;

    if (!is_known)
        take_place(movers, mover, key);
    moved = total < mover->total ? total : total - mover->total; /* Lustre may count anew */
    /* Without a past, enough that nobody pushes it out before it has one. */
    mover->movement = has_past ? mover->movement * part_that_stays + (float)moved : 1;
    mover->total = total;
    mover->look = movers->look;
    mover->was_kept = 0;
    if (!has_past)
        return movers->is_new ? (double)total : 0;
    return was_kept ? (double)mover->movement * advantage + 1 : (double)mover->movement;
}

/* --- who is kept of a target --- */

static struct pick **bucket_of(const struct movers *movers, uint64_t key)
{
    return &movers->buckets[key & (movers->n_buckets - 1)];
}

static struct pick *find_pick(const struct movers *movers, uint64_t key)
{
    struct pick *pick = *bucket_of(movers, key);

    while (pick && pick->key != key)
        pick = pick->next;
    return pick;
}

static struct pick *take_lowest(struct movers *movers)
{
    struct pick *pick = PART_OF(ranking_first(&movers->target_ranking), struct pick, ranked);
    struct pick **at = bucket_of(movers, pick->key);

    while (*at != pick)
        at = &(*at)->next;
    *at = pick->next;
    ranking_remove(&movers->target_ranking, &pick->ranked);
    return pick;
}

/* One that is unused, or that of the lowest rank; NULL: all have a higher one. Never are there
 * fewer than before: who was refused once cannot come back with a part of what it did. */
static struct pick *make_room(struct movers *movers, int64_t rank)
{
    struct pick *pick = movers->unused;

    if (movers->target_ranking.n == movers->max_ids)
        return ranking_first(&movers->target_ranking)->rank < rank ? take_lowest(movers) : NULL;
    if (!pick)
        return heap_alloc(sizeof(*pick));
    movers->unused = pick->next;
    pick->ranked.place = 0;
    return pick;
}

static struct job_stats_operation *add_operation(struct pick *pick)
{
    if (pick->n_operations == pick->n_operations_room) {
        pick->n_operations_room += OPERATIONS_STEP;
        pick->operations =
            heap_resize(pick->operations, pick->n_operations_room, sizeof(*pick->operations));
    }
    return &pick->operations[pick->n_operations++];
}

static void set_id(struct pick *pick, struct str id)
{
    if (id.n > pick->n_id_room) {
        pick->n_id_room = id.n;
        pick->id = heap_resize(pick->id, id.n, 1);
    }
    pick->id_bytes = id.n;
    if (id.n)
        memcpy(pick->id, id.p, id.n);
}

static void pick_entry(struct movers *movers, const struct job_stats_entry *entry, struct str id,
                       uint64_t key, double score)
{
    int64_t rank = score < 1e18 ? (int64_t)score : (int64_t)1e18;
    struct pick *pick = make_room(movers, rank), **bucket = bucket_of(movers, key);

    if (!pick)
        return;
    pick->key = key;
    set_id(pick, id);
    pick->read = entry->read;
    pick->write = entry->write;
    pick->n_operations = 0;
    for (size_t i = 0; i < entry->n_operations; i++)
        *add_operation(pick) = entry->operations[i];
    pick->next = *bucket;
    *bucket = pick;
    ranking_put(&movers->target_ranking, &pick->ranked, rank);
}

static void add_io(struct lustre_io *to, const struct lustre_io *io)
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

/* As it is going to be shown, so that ids that look the same are one. */
static struct str make_utf8(struct movers *movers, struct str id)
{
    static const struct str replacement = STR_INIT("\xef\xbf\xbd");
    size_t n = 0;

    while (n < id.n && !((unsigned char)id.p[n] & 0x80))
        n++;
    if (n == id.n)
        return id;
    n = 0;
    while (id.n) {
        size_t length = str_utf8_len(id);
        struct str piece = length ? str_head(id, length) : replacement;

        memcpy(movers->id + n, piece.p, piece.n);
        n += piece.n;
        id = str_skip(id, length ? length : 1);
    }
    return (struct str){ movers->id, n };
}

void movers_see(struct movers *movers, const struct job_stats_entry *entry)
{
    struct str id = make_utf8(movers, entry->id);
    uint64_t key = map_hash(id) ^ movers->target_key;
    struct mover *mover;
    struct pick *pick;

    key += !key;
    mover = place_of(movers, key);
    pick = find_pick(movers, key);
    if (pick || (mover && mover->key == key && mover->look == movers->look)) {
        movers->n_merged++;
        if (pick)
            merge_entry(pick, entry);
        return;
    }
    movers->n_ids++;
    pick_entry(movers, entry, id, key, mover ? note(movers, mover, key, total_of(entry)) : 0);
}

static size_t samples_of(const struct lustre_io *io)
{
    return io->is_there ? FAMILIES_OF_IO + (size_t)io->has_sizes : 0;
}

static size_t text_bytes_of(const struct movers *movers, const struct pick *pick)
{
    size_t n_samples = pick->n_operations, bytes = PICK_BYTES;

    n_samples += samples_of(&pick->read) + samples_of(&pick->write);
    for (size_t i = 0; i < pick->n_operations; i++)
        bytes += strlen(pick->operations[i].name);
    return bytes + n_samples * lustre_sample_bytes(str_of(movers->target),
                                                   (struct str){ pick->id, pick->id_bytes });
}

void movers_end_target(struct movers *movers)
{
    struct ranking *kept = &movers->target_ranking;
    symbol target = symbols_put(&movers->to->symbols, str_of(movers->target));

    movers->to->ids_left_out += movers->n_ids - kept->n;
    movers->to->ids_merged += movers->n_merged;
    for (size_t i = 0; i < kept->n; i++) {
        struct pick *pick = PART_OF(kept->at[i], struct pick, ranked);

        pick->turn = movers->turn;
        pick->target = target;
        pick->is_mdt = movers->is_mdt;
        pick->text_bytes = text_bytes_of(movers, pick);
        pick->ranked.place = 0;
        ranking_put(&movers->ranking, &pick->ranked, pick->ranked.rank);
        movers->text_bytes += pick->text_bytes;
    }
    ranking_free(kept);
    movers->turn++;
    while (movers->text_bytes > movers->max_text_bytes) {
        struct pick *pick = PART_OF(ranking_first(&movers->ranking), struct pick, ranked);

        movers->text_bytes -= pick->text_bytes;
        ranking_remove(&movers->ranking, &pick->ranked);
        put_aside(movers, pick);
        movers->to->ids_left_out++;
    }
}

/* --- the look --- */

static int by_target_and_id(const void *a, const void *b)
{
    const struct pick *one = PART_OF(*(struct ranked *const *)a, struct pick, ranked);
    const struct pick *other = PART_OF(*(struct ranked *const *)b, struct pick, ranked);
    size_t n = one->id_bytes < other->id_bytes ? one->id_bytes : other->id_bytes;
    int order = (one->turn > other->turn) - (one->turn < other->turn);

    if (!order && n)
        order = memcmp(one->id, other->id, n);
    return order ? order : (one->id_bytes > other->id_bytes) - (one->id_bytes < other->id_bytes);
}

static void give(const struct pick *pick, struct lustre_use *to)
{
    to->id[to->n++] = (struct lustre_id_use){
        .target = pick->target,
        .id = symbols_put(&to->symbols, (struct str){ pick->id, pick->id_bytes }),
        .is_mdt = pick->is_mdt,
        .read = pick->read,
        .write = pick->write,
        .first_operation = (uint32_t)to->n_operations,
        .n_operations = (uint32_t)pick->n_operations,
    };
    for (size_t i = 0; i < pick->n_operations; i++)
        to->operation[to->n_operations++] = (struct lustre_operation){
            .name = symbols_put(&to->symbols, str_of(pick->operations[i].name)),
            .samples = pick->operations[i].samples,
        };
}

void movers_end_look(struct movers *movers)
{
    struct ranking *kept = &movers->ranking;
    struct lustre_use *to = movers->to;
    size_t n_operations = 0;

    if (kept->n)
        qsort(kept->at, kept->n, sizeof(*kept->at), by_target_and_id);
    for (size_t i = 0; i < kept->n; i++)
        n_operations += PART_OF(kept->at[i], struct pick, ranked)->n_operations;
    to->id = heap_resize(to->id, kept->n, sizeof(*to->id));
    to->operation = heap_resize(to->operation, n_operations, sizeof(*to->operation));
    for (size_t i = 0; i < kept->n; i++) {
        const struct pick *pick = PART_OF(kept->at[i], struct pick, ranked);
        struct mover *mover = find_place(movers, pick->key, !is_crowded(movers));

        if (mover && mover->key == pick->key)
            mover->was_kept = 1;
        give(pick, to);
    }
    free_picks(movers);
}
