/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the embedded series, in one transaction: a sample that is sealed meanwhile is found once.
 */
#include "store/ticks_writer.h"

#include "base/clock.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    STEPS_BETWEEN_LOOKS = 2000, /* of SQLite's machine, from one look at the clock to the next */
    NEAR = 8, /* rows that are passed over rather than looked for where the next stands */
};

struct ticks_reader {
    char *path;
    sqlite3 *db; /* NULL: to be opened anew */
    struct db_files files;
    int64_t deadline_ns;
};

static int look_at_clock(void *ctx)
{
    const struct ticks_reader *reader = ctx;

    return reader->deadline_ns && clock_mono(&clock_real) >= reader->deadline_ns;
}

static int check_time(struct ticks_reader *reader, struct err *err)
{
    if (!look_at_clock(reader))
        return 0;
    return err_set(err, ETIMEDOUT,
                   "the series in %s were not read in time: ask for a shorter time, or for less",
                   reader->path);
}

static int open_file(struct ticks_reader *reader, struct err *err)
{
    bool is_new;
    int r;

    reader->db = db_close(reader->db);
    if (access(reader->path, F_OK) != 0 && errno == ENOENT)
        return err_set(err, ENOENT, "there are no series: %s is not there", reader->path);
    r = db_open(reader->path, false, &reader->db, err);
    if (r < 0)
        return r;
    sqlite3_progress_handler(reader->db, STEPS_BETWEEN_LOOKS, look_at_clock, reader);
    r = ticks_check_file(reader->db, reader->path, &is_new, err);
    if (r == 0 && is_new)
        r = err_set(err, ENOENT, "there are no series in %s yet", reader->path);
    if (r < 0)
        reader->db = db_close(reader->db);
    else
        reader->files = db_files(reader->path);
    return r;
}

int ticks_reader_open(const char *path, struct ticks_reader **ret, struct err *err)
{
    struct ticks_reader *reader = heap_alloc(sizeof(*reader));
    int r;

    reader->path = heap_str(str_of(path));
    r = open_file(reader, err);
    if (r < 0) {
        ticks_reader_close(reader);
        return r;
    }
    *ret = reader;
    return 0;
}

struct ticks_reader *ticks_reader_close(struct ticks_reader *reader)
{
    if (!reader)
        return NULL;
    db_close(reader->db);
    free(reader->path);
    free(reader);
    return NULL;
}

void ticks_reader_deadline(struct ticks_reader *reader, int64_t mono_ns)
{
    reader->deadline_ns = mono_ns;
}

/* A series as it is read. */
struct line {
    struct str name;
    uint32_t series;
    size_t n, room;
    int64_t *time;
    double *value;
    bool is_mixed; /* times are not ascending */
};

struct reading {
    struct ticks_reader *reader;
    int64_t from, to;
    size_t most;
    struct line *line; /* in the order of their names */
    size_t n, room;
    struct line **by_series; /* in that of their numbers */
    size_t n_found;          /* that have samples */

    /* Of one batch. */
    int64_t *time;
    size_t n_ticks;
    uint32_t *tick;
    double *value;
};

static void add_line(struct reading *reading, int64_t series, struct str name, struct arena *arena)
{
    reading->line = heap_grow(reading->line, reading->n, &reading->room, sizeof(*reading->line));
    reading->line[reading->n++] = (struct line){
        .name = arena_str(arena, name),
        .series = (uint32_t)series,
    };
}

static int by_series(const void *a, const void *b)
{
    const struct line *const *left = a, *const *right = b;

    return ((*left)->series > (*right)->series) - ((*left)->series < (*right)->series);
}

static void order_by_series(struct reading *reading)
{
    reading->by_series = heap_array(reading->n, sizeof(struct line *));
    for (size_t i = 0; i < reading->n; i++)
        reading->by_series[i] = &reading->line[i];
    if (reading->n)
        qsort((void *)reading->by_series, reading->n, sizeof(struct line *), by_series);
}

static int find_names(struct reading *reading, struct str prefix, struct arena *arena,
                      struct err *err)
{
    sqlite3_stmt *statement;
    int r = db_prepare(reading->reader->db,
                       "SELECT id, text FROM name WHERE text >= ?1 ORDER BY text", &statement, err);

    if (r < 0)
        return r;
    sqlite3_bind_text64(statement, 1, prefix.n ? prefix.p : "", prefix.n, SQLITE_STATIC,
                        SQLITE_UTF8);
    while ((r = db_step(statement, err)) > 0 && str_starts(db_text(statement, 1), prefix))
        add_line(reading, db_i64(statement, 0, 0), db_text(statement, 1), arena);
    sqlite3_finalize(statement);
    order_by_series(reading);
    return r < 0 ? r : 0;
}

static int add_sample(struct reading *reading, struct line *line, int64_t time, double value,
                      struct err *err)
{
    if (!line->n && reading->n_found++ == reading->most)
        return err_set(err, E2BIG, "more than %zu series begin so: ask for fewer", reading->most);
    if (line->n == line->room) {
        line->room = line->room ? 2 * line->room : reading->n_ticks + 1;
        line->time = heap_resize(line->time, line->room, sizeof(*line->time));
        line->value = heap_resize(line->value, line->room, sizeof(*line->value));
    }
    line->is_mixed |= line->n && time < line->time[line->n - 1];
    line->time[line->n] = time;
    line->value[line->n++] = value;
    return 0;
}

/* ---- where the clock was set ---- */

/* What was written later holds from its first tick to its last: what was taken of that time goes.
 */
static void make_way(struct reading *reading, int64_t first, int64_t last)
{
    for (size_t k = 0; k < reading->n; k++) {
        struct line *line = &reading->line[k];
        size_t n = 0;

        if (!line->n || (!line->is_mixed && line->time[line->n - 1] < first))
            continue;
        for (size_t i = 0; i < line->n; i++) {
            if (line->time[i] >= first && line->time[i] <= last)
                continue;
            line->time[n] = line->time[i];
            line->value[n++] = line->value[i];
        }
        line->n = n;
        reading->n_found -= !n;
    }
}

struct moment {
    int64_t time;
    double value;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *left = a, *right = b;

    return (left->time > right->time) - (left->time < right->time);
}

static void put_in_order(struct line *line)
{
    struct moment *moment = heap_array(line->n, sizeof(*moment));

    for (size_t i = 0; i < line->n; i++)
        moment[i] = (struct moment){ line->time[i], line->value[i] };
    qsort(moment, line->n, sizeof(*moment), by_time);
    for (size_t i = 0; i < line->n; i++) {
        line->time[i] = moment[i].time;
        line->value[i] = moment[i].value;
    }
    free(moment);
}

/* ---- what is sealed ---- */

static int take_sealed(struct reading *reading, struct line *line, struct str blob, struct err *err)
{
    size_t n;
    int r = check_time(reading->reader, err);

    if (r == 0 && !sealed_get(blob, reading->n_ticks, reading->tick, reading->value, &n))
        r = ticks_damaged(reading->reader->path, err);
    for (size_t i = 0; r == 0 && i < n; i++) {
        int64_t time = reading->time[reading->tick[i]];

        if (time >= reading->from && time < reading->to)
            r = add_sample(reading, line, time, reading->value[i], err);
    }
    return r;
}

/* Of some that lie near one another: those of the wanted ones are taken. */
static int take_near(struct reading *reading, sqlite3_stmt *statement, int64_t batch,
                     struct line **line, size_t n, struct err *err)
{
    size_t at = 0;
    int r;

    db_bind_i64(statement, 1, ticks_place(batch, line[0]->series));
    db_bind_i64(statement, 2, ticks_place(batch, line[n - 1]->series));
    while ((r = db_step(statement, err)) > 0) {
        uint32_t series = (uint32_t)db_i64(statement, 0, 0);

        while (at < n && line[at]->series < series)
            at++;
        if (at == n || line[at]->series != series)
            continue;
        r = take_sealed(reading, line[at], db_blob(statement, 1), err);
        if (r < 0)
            break;
    }
    sqlite3_reset(statement);
    return r;
}

static int take_batch(struct reading *reading, sqlite3_stmt *statement, int64_t batch,
                      struct err *err)
{
    struct line **line = reading->by_series;
    int r = 0;

    for (size_t begin = 0, end; begin < reading->n && r == 0; begin = end) {
        for (end = begin + 1; end < reading->n; end++)
            if (line[end]->series - line[end - 1]->series > NEAR)
                break;
        r = take_near(reading, statement, batch, line + begin, end - begin, err);
    }
    return r;
}

static int take_batches(struct reading *reading, sqlite3_stmt *batches, sqlite3_stmt *sealed,
                        struct err *err)
{
    int r;

    db_bind_i64(batches, 1, reading->from);
    db_bind_i64(batches, 2, reading->to);
    while ((r = db_step(batches, err)) > 0) {
        if (!sealed_get_times(db_blob(batches, 1), reading->time, &reading->n_ticks))
            r = ticks_damaged(reading->reader->path, err);
        if (r < 0)
            break;
        make_way(reading, db_i64(batches, 2, 0), db_i64(batches, 3, 0));
        r = take_batch(reading, sealed, db_i64(batches, 0, 0), err);
        if (r < 0)
            break;
    }
    return r;
}

static int read_sealed(struct reading *reading, struct err *err)
{
    sqlite3 *db = reading->reader->db;
    sqlite3_stmt *batches, *sealed = NULL;
    int r = db_prepare(db,
                       "SELECT id, times, begin_time, end_time FROM batch"
                       " WHERE end_time >= ?1 AND begin_time < ?2 ORDER BY id",
                       &batches, err);

    if (r < 0)
        return r;
    r = db_prepare(db,
                   "SELECT place, samples FROM sealed WHERE place BETWEEN ?1 AND ?2 ORDER BY place",
                   &sealed, err);
    if (r == 0)
        r = take_batches(reading, batches, sealed, err);
    sqlite3_finalize(batches);
    sqlite3_finalize(sealed);
    return r;
}

/* ---- what is not ---- */

static int take_tick(struct reading *reading, int64_t time, struct str blob, struct err *err)
{
    struct line **line = reading->by_series;
    struct tick_cursor cursor;
    struct tick_value value;
    size_t at = 0;
    int r = check_time(reading->reader, err);

    if (r < 0)
        return r;
    if (!tick_open(blob, &cursor))
        return ticks_damaged(reading->reader->path, err);
    while (at < reading->n && (r = tick_next(&cursor, &value)) > 0) {
        while (at < reading->n && line[at]->series < value.series)
            at++;
        if (at == reading->n || line[at]->series != value.series)
            continue;
        r = add_sample(reading, line[at], time, value.value, err);
        if (r < 0)
            return r;
    }
    return r < 0 ? ticks_damaged(reading->reader->path, err) : 0;
}

/* It was written last. */
static int make_way_for_head(struct reading *reading, struct err *err)
{
    sqlite3 *db = reading->reader->db;
    int64_t first = 0, last = 0;
    int r = db_get_i64(db, "SELECT min(time) FROM head", &first, err);

    if (r == 0)
        r = db_get_i64(db, "SELECT max(time) FROM head", &last, err);
    if (r == 0 && last)
        make_way(reading, first, last);
    return r;
}

static int read_head(struct reading *reading, struct err *err)
{
    sqlite3_stmt *statement;
    int r = make_way_for_head(reading, err);

    if (r == 0)
        r = db_prepare(
            reading->reader->db,
            "SELECT time, samples FROM head WHERE time >= ?1 AND time < ?2 ORDER BY time",
            &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, reading->from);
    db_bind_i64(statement, 2, reading->to);
    while ((r = db_step(statement, err)) > 0) {
        r = take_tick(reading, db_i64(statement, 0, 0), db_blob(statement, 1), err);
        if (r < 0)
            break;
    }
    sqlite3_finalize(statement);
    return r;
}

/* ---- all of it ---- */

static int read_all(struct reading *reading, struct str prefix, struct arena *arena,
                    struct err *err)
{
    int r = find_names(reading, prefix, arena, err);

    if (r < 0 || !reading->n)
        return r;
    reading->time = heap_array(TICKS_BATCH_MAX, sizeof(*reading->time));
    reading->tick = heap_array(TICKS_BATCH_MAX, sizeof(*reading->tick));
    reading->value = heap_array(TICKS_BATCH_MAX, sizeof(*reading->value));
    r = read_sealed(reading, err);
    return r < 0 ? r : read_head(reading, err);
}

/* The samples go on living in the arena. */
static void hand_over(struct reading *reading, struct arena *arena, struct ticks_line **ret,
                      size_t *ret_n)
{
    struct ticks_line *lines = ARENA_ARRAY(arena, struct ticks_line, reading->n_found);
    size_t n = 0;

    for (size_t i = 0; i < reading->n; i++) {
        struct line *line = &reading->line[i];

        if (!line->n)
            continue;
        if (line->is_mixed)
            put_in_order(line);
        arena_adopt(arena, line->time);
        arena_adopt(arena, line->value);
        lines[n++] = (struct ticks_line){ line->name, line->n, line->time, line->value };
        line->time = NULL;
        line->value = NULL;
    }
    *ret = lines;
    *ret_n = n;
}

static void reading_free(struct reading *reading)
{
    for (size_t i = 0; i < reading->n; i++) {
        free(reading->line[i].time);
        free(reading->line[i].value);
    }
    free(reading->line);
    free((void *)reading->by_series);
    free(reading->time);
    free(reading->tick);
    free(reading->value);
}

static int begin(struct ticks_reader *reader, struct err *err)
{
    int r = check_time(reader, err);

    if (r == 0 && (!reader->db || !db_files_are(reader->path, &reader->files)))
        r = open_file(reader, err);
    return r < 0 ? r : db_exec(reader->db, "BEGIN", err);
}

int ticks_read(struct ticks_reader *reader, struct str prefix, int64_t from, int64_t to,
               size_t most, struct arena *arena, struct ticks_line **ret, size_t *ret_n,
               struct err *err)
{
    struct reading reading = { .reader = reader, .from = from, .to = to, .most = most };
    int r = begin(reader, err);

    if (r < 0)
        return r;
    r = read_all(&reading, prefix, arena, err);
    db_exec(reader->db, "ROLLBACK", NULL);
    if (r == 0)
        hand_over(&reading, arena, ret, ret_n);
    reading_free(&reading);
    return r;
}
