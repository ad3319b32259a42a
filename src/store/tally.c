/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What many jobs of a transaction count up together: it is written once, at its end. */
#include "store/writer.h"

enum { TALLY_IDS = 4, ENDED_PARTITION = 2 };

struct tally {
    int64_t which; /* enum store_statement */
    int64_t ids[TALLY_IDS];
};

void store_forget_tallies(struct store *store)
{
    map_free(&store->tallies);
    arena_clear(&store->tally_arena);
    map_init(&store->tallies, &store->tally_arena);
}

static void count(struct store *store, struct tally tally, int64_t more)
{
    void **place = map_put(&store->tallies, (struct str){ (const char *)&tally, sizeof(tally) });

    *place = (void *)((intptr_t)*place + (intptr_t)more); /* NOLINT(performance-no-int-to-ptr) */
}

void store_count_ends(struct store *store, int64_t cluster, int64_t state, int64_t partition,
                      int64_t account, int64_t more)
{
    count(store, (struct tally){ SQL_COUNT_ENDED, { cluster, state, partition, account } }, more);
}

void store_count_wait(struct store *store, int64_t cluster, int64_t partition, int64_t seconds)
{
    size_t bucket = wait_bucket((double)seconds);
    int64_t bound = bucket < WAIT_BOUNDS ? (int64_t)wait_bounds[bucket] : 0;

    count(store, (struct tally){ SQL_COUNT_WAITED, { cluster, partition, bound, seconds } }, 1);
}

void store_count_named(struct store *store, int64_t name, int64_t more)
{
    if (name)
        count(store, (struct tally){ SQL_COUNT_NAMED, { name } }, more);
}

/* A job that could have started in any of several partitions, and never did, names them all: as
 * many labels as there are sets of partitions would follow. */
static int fold_partitions(struct store *store, int64_t *partition, struct err *err)
{
    struct str text;
    int r = store_read_text(store, *partition, &text, err);

    if (r < 0 || str_find(text, ',') == text.n)
        return r;
    return store_text(store, STR("several"), TEXT_WORD, partition, err);
}

static int write_tally(struct store *store, const struct map_entry *entry, struct err *err)
{
    struct tally tally;
    sqlite3_stmt *statement;
    int r;

    memcpy(&tally, entry->key.p, sizeof(tally));
    if (!entry->value)
        return 0;
    r = tally.which == SQL_COUNT_ENDED ? fold_partitions(store, &tally.ids[ENDED_PARTITION], err)
                                       : 0;
    if (r == 0)
        r = store_use(store, (enum store_statement)tally.which, &statement, err);
    if (r < 0)
        return r;
    for (int i = 0; i < TALLY_IDS; i++)
        db_bind_i64(statement, 1 + i, tally.ids[i]);
    db_bind_i64(statement, 1 + TALLY_IDS, (intptr_t)entry->value);
    return db_run(statement, err);
}

int store_write_tallies(struct store *store, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < store->tallies.n && r == 0; i++)
        r = write_tally(store, &store->tallies.entries[i], err);
    if (store->tallies.n)
        store_forget_tallies(store);
    return r;
}
