/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is done to ticks when they are no longer new: they are sealed, later deleted, and the file
 * shrinks. Each step is one transaction: whenever the machine stops, a sample is either in the head
 * or sealed. */
#include "store/ticks_writer.h"

#include <stdlib.h>

enum {
    SEALED_SAMPLES = 1 << 20, /* at once, and the rest of a tick: what is in memory then */
    VACUUM_PAGES = 2000,      /* given back at once; */
    FREE_PART = 4,            /* which part of the file must be free: what ticks leave when they are
                               * sealed, the next ones need */
};

static const int64_t no_time = INT64_MIN;

/* Ticks that are sealed together, and the series that have samples in them. */
struct batch {
    int64_t *time;
    size_t n_ticks, n_samples;
    uint32_t *series; /* ascending */
    size_t *end;      /* of each: where its samples end, those of the next begin there */
    size_t n_series;
    uint32_t *tick; /* of each sample, by series */
    double *value;
};

static void batch_free(struct batch *batch)
{
    free(batch->time);
    free(batch->series);
    free(batch->end);
    free(batch->tick);
    free(batch->value);
}

/* The oldest ticks before a time, as many as are sealed at once. */
static int find_ticks(struct ticks_writer *writer, int64_t before, size_t most, struct batch *batch,
                      struct err *err)
{
    sqlite3_stmt *statement;
    size_t room = 0;
    int r = ticks_use(writer, TICKS_OLDEST_TICKS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, before);
    db_bind_i64(statement, 2, (int64_t)most);
    while (batch->n_samples < SEALED_SAMPLES && (r = db_step(statement, err)) > 0) {
        batch->time = heap_grow(batch->time, batch->n_ticks, &room, sizeof(*batch->time));
        batch->time[batch->n_ticks++] = db_i64(statement, 0, 0);
        batch->n_samples += db_u32(statement, 1);
    }
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

/* Goes through all samples up to a time, tick by tick. */
struct walk {
    int (*see)(void *ctx, size_t tick, struct str blob);
    void *ctx;
    int64_t *damaged; /* the time of the tick that `see` refused; or NULL */
};

static int walk_ticks(struct ticks_writer *writer, int64_t until, const struct walk *walk,
                      struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_READ_TICKS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, until);
    for (size_t tick = 0; (r = db_step(statement, err)) > 0; tick++) {
        if (walk->see(walk->ctx, tick, db_blob(statement, 1)) < 0) {
            if (walk->damaged)
                *walk->damaged = db_i64(statement, 0, 0);
            r = ticks_damaged(writer->path, err);
            break;
        }
    }
    sqlite3_reset(statement);
    return r;
}

static int check_tick(void *ctx, size_t tick, struct str blob)
{
    struct tick_cursor cursor;
    struct tick_value value;
    int r;

    (void)ctx;
    (void)tick;
    if (!tick_open(blob, &cursor))
        return -EBADMSG;
    while ((r = tick_next(&cursor, &value)) > 0)
        ;
    return r;
}

static int drop_tick(struct ticks_writer *writer, int64_t time, struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_DROP_TICK, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, time);
    r = db_run(statement, err);
    if (r == 0 && sqlite3_changes(writer->db) != 1)
        r = ticks_damaged(writer->path, err);
    writer->skipped += r == 0;
    return r;
}

/* One tick that cannot be read must not keep all the others from being sealed, and the file from
 * staying small: what it had is lost already. What SQLite cannot read is another matter. */
static int drop_damaged(struct ticks_writer *writer, int64_t until, struct err *err)
{
    int64_t damaged;
    int r;

    do {
        damaged = no_time;
        r = walk_ticks(writer, until, &(struct walk){ check_tick, NULL, &damaged }, err);
        if (damaged != no_time)
            r = drop_tick(writer, damaged, err);
    } while (r == 0 && damaged != no_time);
    return r;
}

/* Series that are in any tick, ascending. */
struct known {
    uint32_t *series, *merged;
    size_t n;
};

static void merge_one(struct known *known, size_t *n, size_t *at, uint32_t series)
{
    while (*at < known->n && known->series[*at] < series)
        known->merged[(*n)++] = known->series[(*at)++];
    if (*at < known->n && known->series[*at] == series)
        (*at)++;
    known->merged[(*n)++] = series;
}

static int see_series(void *ctx, size_t tick, struct str blob)
{
    struct known *known = ctx;
    struct tick_cursor cursor;
    struct tick_value value;
    size_t n = 0, at = 0;
    uint32_t *before;
    int r;

    (void)tick;
    if (!tick_open(blob, &cursor))
        return -EBADMSG;
    known->merged = heap_resize(known->merged, known->n + cursor.left, sizeof(*known->merged));
    while ((r = tick_next(&cursor, &value)) > 0)
        merge_one(known, &n, &at, value.series);
    while (at < known->n)
        known->merged[n++] = known->series[at++];
    before = known->series;
    known->series = known->merged;
    known->merged = before;
    known->n = n;
    return r;
}

static int find_series(struct ticks_writer *writer, int64_t until, struct known *known,
                       struct err *err)
{
    int r = walk_ticks(writer, until, &(struct walk){ see_series, known, NULL }, err);

    free(known->merged);
    known->merged = NULL;
    return r;
}

/* The place of a series, at or after `from`. Ticks have them in the same order. */
static size_t place_of(const struct batch *batch, size_t from, uint32_t series)
{
    while (batch->series[from] != series)
        from++;
    return from;
}

static int count_samples(void *ctx, size_t tick, struct str blob)
{
    struct batch *batch = ctx;
    struct tick_cursor cursor;
    struct tick_value value;
    size_t at = 0;

    (void)tick;
    tick_open(blob, &cursor);
    while (tick_next(&cursor, &value) > 0) {
        at = place_of(batch, at, value.series);
        batch->end[at]++;
    }
    return 0;
}

/* `end` is where the next sample goes. */
static int take_samples(void *ctx, size_t tick, struct str blob)
{
    struct batch *batch = ctx;
    struct tick_cursor cursor;
    struct tick_value value;
    size_t at = 0;

    tick_open(blob, &cursor);
    while (tick_next(&cursor, &value) > 0) {
        size_t to;

        at = place_of(batch, at, value.series);
        to = batch->end[at]++;
        batch->tick[to] = (uint32_t)tick;
        batch->value[to] = value.value;
    }
    return 0;
}

/* From ticks with their samples to series with theirs. */
static int turn(struct ticks_writer *writer, struct batch *batch, struct err *err)
{
    int64_t until = batch->time[batch->n_ticks - 1];
    struct known known = { 0 };
    size_t begin = 0;
    int r = find_series(writer, until, &known, err);

    batch->series = known.series;
    batch->n_series = known.n;
    if (r < 0)
        return r;
    batch->end = heap_alloc((known.n + 1) * sizeof(*batch->end));
    r = walk_ticks(writer, until, &(struct walk){ count_samples, batch, NULL }, err);
    for (size_t i = 0; i < batch->n_series; i++) {
        size_t n = batch->end[i];

        batch->end[i] = begin;
        begin += n;
    }
    batch->tick = heap_array(begin, sizeof(*batch->tick));
    batch->value = heap_array(begin, sizeof(*batch->value));
    return r < 0 ? r : walk_ticks(writer, until, &(struct walk){ take_samples, batch, NULL }, err);
}

static int add_batch(struct ticks_writer *writer, const struct batch *batch, int64_t *ret,
                     struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_ADD_BATCH, &statement, err);

    if (r < 0)
        return r;
    buf_reset(&writer->blob);
    sealed_put_times(&writer->blob, batch->time, batch->n_ticks);
    db_bind_i64(statement, 1, batch->time[0]);
    db_bind_i64(statement, 2, batch->time[batch->n_ticks - 1]);
    db_bind_blob(statement, 3, buf_str(&writer->blob));
    r = db_run(statement, err);
    *ret = sqlite3_last_insert_rowid(writer->db);
    return r;
}

static int add_sealed(struct ticks_writer *writer, int64_t place, struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_ADD_SEALED, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, place);
    db_bind_blob(statement, 2, buf_str(&writer->blob));
    return db_run(statement, err);
}

static int set_batch_of_name(struct ticks_writer *writer, uint32_t series, int64_t id,
                             struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_SET_BATCH_OF_NAME, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, series);
    db_bind_i64(statement, 2, id);
    return db_run(statement, err);
}

static int add_series(struct ticks_writer *writer, const struct batch *batch, int64_t id,
                      struct err *err)
{
    size_t begin = 0;
    int r = 0;

    for (size_t i = 0; i < batch->n_series && r == 0; i++) {
        buf_reset(&writer->blob);
        sealed_put(&writer->blob, batch->tick + begin, batch->value + begin, batch->end[i] - begin);
        begin = batch->end[i];
        r = add_sealed(writer, ticks_place(id, batch->series[i]), err);
        if (r == 0)
            r = set_batch_of_name(writer, batch->series[i], id, err);
    }
    return r;
}

static int drop_ticks(struct ticks_writer *writer, int64_t until, struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_DROP_TICKS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, until);
    return db_run(statement, err);
}

static int seal_batch(struct ticks_writer *writer, struct batch *batch, struct err *err)
{
    int64_t id = 0;
    int r = turn(writer, batch, err);

    if (r == 0)
        r = add_batch(writer, batch, &id, err);
    if (r == 0)
        r = add_series(writer, batch, id, err);
    return r < 0 ? r : drop_ticks(writer, batch->time[batch->n_ticks - 1], err);
}

/* 1: something was sealed. */
static int seal(struct ticks_writer *writer, int64_t before, size_t most, struct err *err)
{
    struct batch batch = { 0 };
    int r = drop_damaged(writer, before - 1, err);

    if (r == 0)
        r = find_ticks(writer, before, most < TICKS_BATCH_MAX ? most : TICKS_BATCH_MAX, &batch,
                       err);
    if (r == 0 && batch.n_ticks)
        r = seal_batch(writer, &batch, err);
    if (r == 0)
        r = batch.n_ticks > 0;
    batch_free(&batch);
    ticks_forget_names(writer); /* those of jobs that have ended are not needed any more */
    return r;
}

int ticks_seal_all(struct ticks_writer *writer, struct err *err)
{
    int r;

    while ((r = seal(writer, INT64_MAX, TICKS_BATCH_MAX, err)) > 0)
        ;
    return r;
}

/* The head's first time, and whether it has more samples than are sealed at once. */
static int look_at_head(struct ticks_writer *writer, int64_t *ret_first, int64_t *ret_ticks,
                        bool *ret_is_full, struct err *err)
{
    int64_t samples = 0;
    int r = db_get_i64(writer->db, "SELECT min(time) FROM head", ret_first, err);

    if (r == 0)
        r = db_get_i64(writer->db, "SELECT count(*) FROM head", ret_ticks, err);
    if (r == 0)
        r = db_get_i64(writer->db, "SELECT total(n) FROM head", &samples, err);
    *ret_is_full = samples > SEALED_SAMPLES;
    return r;
}

struct tidying {
    int64_t now;
    bool may_expire;
    struct ticks_tidied done;
};

/* Ticks of one window are sealed together, when it is over. */
static int seal_due(struct ticks_writer *writer, struct tidying *tidying, struct err *err)
{
    int64_t first = 0, ticks = 0, end;
    bool is_full = false;
    int r = look_at_head(writer, &first, &ticks, &is_full, err);

    if (r < 0 || !ticks)
        return r;
    end = (first / TICKS_SEAL_SECONDS + 1) * TICKS_SEAL_SECONDS;
    return end <= tidying->now || is_full ? seal(writer, end, TICKS_BATCH_MAX, err) : 0;
}

/* ---- deleting ---- */

static bool is_among(const struct known *known, uint32_t series)
{
    size_t low = 0, high = known->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (known->series[middle] < series)
            low = middle + 1;
        else
            high = middle;
    }
    return low < known->n && known->series[low] == series;
}

static int drop_name(struct ticks_writer *writer, uint32_t series, int64_t batch, struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_DROP_NAME, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, series);
    db_bind_i64(statement, 2, batch);
    return db_run(statement, err);
}

/* Of the series of a batch, the names of those that are in no later one, nor in the head. */
static int drop_names(struct ticks_writer *writer, int64_t batch, struct err *err)
{
    struct known known = { 0 };
    sqlite3_stmt *statement;
    int r = drop_damaged(writer, INT64_MAX, err);

    if (r == 0)
        r = find_series(writer, INT64_MAX, &known, err);
    if (r == 0)
        r = ticks_use(writer, TICKS_SEALED_IN, &statement, err);
    if (r == 0) {
        db_bind_i64(statement, 1, ticks_place(batch, 0));
        db_bind_i64(statement, 2, ticks_place(batch, UINT32_MAX));
        while ((r = db_step(statement, err)) > 0) {
            uint32_t series = (uint32_t)db_i64(statement, 0, 0);

            r = is_among(&known, series) ? 0 : drop_name(writer, series, batch, err);
            if (r < 0)
                break;
        }
        sqlite3_reset(statement);
    }
    free(known.series);
    ticks_forget_names(writer);
    return r;
}

static int drop_batch(struct ticks_writer *writer, int64_t batch, struct err *err)
{
    sqlite3_stmt *statement;
    int r = drop_names(writer, batch, err);

    if (r == 0)
        r = ticks_use(writer, TICKS_DROP_SEALED, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, ticks_place(batch, 0));
    db_bind_i64(statement, 2, ticks_place(batch, UINT32_MAX));
    r = db_run(statement, err);
    if (r == 0)
        r = ticks_use(writer, TICKS_DROP_BATCH, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, batch);
    return db_run(statement, err);
}

/* The one that was written first, of those that ended before a time. 0: there is none. */
static int find_oldest_batch(struct ticks_writer *writer, int64_t before, int64_t *ret,
                             struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_OLDEST_BATCH, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, before);
    r = db_step(statement, err);
    *ret = r > 0 ? db_i64(statement, 0, 0) : 0;
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int drop_old(struct ticks_writer *writer, struct tidying *tidying, struct err *err)
{
    int64_t batch = 0;
    int r;

    if (!writer->retention_seconds || !tidying->may_expire)
        return 0;
    r = find_oldest_batch(writer, tidying->now - writer->retention_seconds, &batch, err);
    if (r == 0 && batch) {
        r = drop_batch(writer, batch, err);
        tidying->done.expired++;
    }
    return r < 0 ? r : batch > 0;
}

/* Without what is free. */
static int used_bytes(struct ticks_writer *writer, uint64_t *ret_bytes, int64_t *ret_free,
                      int64_t *ret_pages, struct err *err)
{
    int64_t page_bytes = 0;
    int r = db_get_i64(writer->db, "PRAGMA page_size", &page_bytes, err);

    if (r == 0)
        r = db_get_i64(writer->db, "PRAGMA page_count", ret_pages, err);
    if (r == 0)
        r = db_get_i64(writer->db, "PRAGMA freelist_count", ret_free, err);
    if (r == 0)
        *ret_bytes = (uint64_t)(*ret_pages - *ret_free) * (uint64_t)page_bytes;
    return r;
}

/* The oldest batch goes; if there is none, half of the head becomes one. */
static int drop_too_much(struct ticks_writer *writer, struct tidying *tidying, struct err *err)
{
    int64_t free_pages, pages, batch = 0, first, ticks = 0;
    uint64_t bytes = 0;
    bool is_full;
    int r = writer->max_bytes ? used_bytes(writer, &bytes, &free_pages, &pages, err) : 0;

    if (r < 0 || bytes <= writer->max_bytes)
        return r;
    r = find_oldest_batch(writer, INT64_MAX, &batch, err);
    if (r == 0 && batch) {
        r = drop_batch(writer, batch, err);
        tidying->done.evicted++;
        return r < 0 ? r : 1;
    }
    if (r == 0)
        r = look_at_head(writer, &first, &ticks, &is_full, err);
    return r < 0 || ticks < 2 ? r : seal(writer, INT64_MAX, (size_t)ticks / 2, err);
}

static int give_back(struct ticks_writer *writer, struct tidying *tidying, struct err *err)
{
    int64_t free_pages = 0, pages = 0;
    uint64_t bytes;
    char sql[60];
    int r = used_bytes(writer, &bytes, &free_pages, &pages, err);

    (void)tidying;
    if (r < 0 || free_pages < VACUUM_PAGES || free_pages < pages / FREE_PART)
        return r;
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
    r = db_exec(writer->db, sql, err);
    return r < 0 ? r : 1;
}

/* Each does what is due, some of it: 1: it did. */
static int (*const steps[])(struct ticks_writer *writer, struct tidying *tidying,
                            struct err *err) = {
    drop_old,
    seal_due,
    drop_too_much,
    give_back,
};

int ticks_tidy(struct ticks_writer *writer, int64_t now, bool may_expire, struct ticks_tidied *ret,
               struct err *err)
{
    struct tidying tidying = { .now = now, .may_expire = may_expire };
    int r = ticks_begin(writer, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < COUNT(steps) && r == 0; i++) {
        r = steps[i](writer, &tidying, err);
        tidying.done.is_more = r > 0;
    }
    if (r < 0) {
        ticks_rollback(writer);
        return r;
    }
    *ret = tidying.done;
    return ticks_commit(writer, err);
}
