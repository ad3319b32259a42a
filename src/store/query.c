/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening a store for questions. How SQLite reads a file in WAL mode that it may not write:
 * https://www.sqlite.org/wal.html#read_only_databases */
#include "store/query.h"

#include "base/clock.h"
#include "store/reader.h"
#include "store/schema.h"
#include "store/store.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STEPS_BETWEEN_LOOKS = 2000, /* of SQLite's machine, from one look at the clock to the next */
    LONGEST_URI = 3 * STORE_PATH_MAX + 64,
};

static int look_at_clock(void *ctx)
{
    const struct store_reader *reader = ctx;

    return reader->deadline_ns && clock_mono(&clock_real) >= reader->deadline_ns;
}

static void set_up(struct store_reader *reader, sqlite3 *db)
{
    reader->db = db;
    sqlite3_progress_handler(db, STEPS_BETWEEN_LOOKS, look_at_clock, reader);
}

/* For a file that nobody writes, in a directory where no lock can be made. */
static int open_unlocked(struct store_reader *reader, struct err *err)
{
    struct buf uri;
    sqlite3 *db = NULL;
    int code, r = 0;

    buf_init(&uri, LONGEST_URI);
    buf_text(&uri, "file:");
    buf_url(&uri, str_of(reader->path));
    buf_text(&uri, "?immutable=1");
    code = sqlite3_open_v2(uri.p, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                           NULL);
    buf_free(&uri);
    if (code == SQLITE_OK) {
        sqlite3_extended_result_codes(db, 1);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        set_up(reader, db);
        reader->is_unlocked = true;
        return 0;
    }
    r = db_fail_at(reader->path, db, code, err);
    sqlite3_close_v2(db);
    return r;
}

static bool has_log(const char *path)
{
    char log[STORE_PATH_MAX + 8];

    snprintf(log, sizeof(log), "%s-wal", path);
    return access(log, F_OK) == 0;
}

static int read_version(struct store_reader *reader, int *ret, struct err *err)
{
    return schema_read_version(reader->db, schema_version(schema_migrations, n_schema_migrations),
                               ret, err);
}

static int check_version(struct store_reader *reader, int version, struct err *err)
{
    int newest = schema_version(schema_migrations, n_schema_migrations);

    if (version == 0)
        return err_set(err, EBADMSG,
                       "%s is empty, not a store of sonde: name another file in --store",
                       reader->path);
    if (version < newest)
        return err_set(err, EPROTO,
                       "the store %s has version %d of the schema, this sonde reads %d: start the "
                       "exporter that writes it once, which brings it up to date",
                       reader->path, version, newest);
    return 0;
}

static int read_meta(struct store_reader *reader, struct err *err)
{
    int64_t is_simulated = 0;
    int r = db_get_i64(reader->db, "SELECT value FROM meta WHERE name = 'is_simulated'",
                       &is_simulated, err);

    reader->is_simulated = is_simulated != 0;
    return r;
}

static int open_file(struct store_reader *reader, struct err *err)
{
    int version, r;
    sqlite3 *db;

    reader->files = (struct db_files){ 0 };
    reader->n_opened++;
    if (access(reader->path, F_OK) != 0 && errno == ENOENT)
        return err_set(err, ENOENT,
                       "there is no store %s: name the one that the exporter writes in --store",
                       reader->path);
    r = db_open(reader->path, false, &db, err);
    if (r < 0)
        return r;
    set_up(reader, db);
    reader->is_unlocked = false;
    r = read_version(reader, &version, err);
    if ((r == -EACCES || r == -EROFS || r == -ENOENT) && !has_log(reader->path)) {
        reader->db = db_close(db);
        r = open_unlocked(reader, err);
        if (r == 0)
            r = read_version(reader, &version, err);
    }
    if (r == 0)
        r = check_version(reader, version, err);
    if (r == 0)
        r = read_meta(reader, err);
    if (r == 0)
        reader->files = db_files(reader->path);
    return r;
}

int store_reader_open(struct str url, struct store_reader **ret, struct err *err)
{
    struct store_reader *reader;
    char path[STORE_PATH_MAX];
    int r = store_path(url, path, err);

    if (r < 0)
        return r;
    reader = heap_alloc(sizeof(*reader));
    reader->path = heap_str(str_of(path));
    r = open_file(reader, err);
    if (r < 0) {
        store_reader_close(reader);
        return r;
    }
    *ret = reader;
    return 0;
}

struct store_reader *store_reader_close(struct store_reader *reader)
{
    if (!reader)
        return NULL;
    db_close(reader->db);
    free(reader->path);
    free(reader);
    return NULL;
}

void store_reader_deadline(struct store_reader *reader, int64_t deadline_ns)
{
    reader->deadline_ns = deadline_ns;
}

bool store_reader_is_simulated(const struct store_reader *reader)
{
    return reader->is_simulated;
}

/* Without locks, a writer that has begun in the meantime would not be noticed; nor is one that
 * writes into other files. */
static bool must_open_again(const struct store_reader *reader)
{
    return reader->is_unlocked || !reader->db || !db_files_are(reader->path, &reader->files);
}

static int open_again(struct store_reader *reader, struct err *err)
{
    db_close(reader->db);
    reader->db = NULL;
    return open_file(reader, err);
}

static int tell_time(struct store_reader *reader, int r, struct err *err)
{
    if (r == -ETIMEDOUT)
        return err_set(err, ETIMEDOUT,
                       "the store %s did not answer in time: ask for a shorter time, or for less",
                       reader->path);
    return r;
}

int reader_begin(struct store_reader *reader, struct err *err)
{
    int r = 0;

    if (reader->depth == 0) {
        if (look_at_clock(reader))
            return tell_time(reader, -ETIMEDOUT, err);
        if (must_open_again(reader))
            r = open_again(reader, err);
        if (r == 0)
            r = db_exec(reader->db, "BEGIN", err);
        if (r < 0)
            return tell_time(reader, r, err);
    }
    reader->depth++;
    return 0;
}

void reader_end(struct store_reader *reader)
{
    if (--reader->depth == 0)
        db_exec(reader->db, "ROLLBACK", NULL);
}

int reader_prepare(struct store_reader *reader, const char *sql, sqlite3_stmt **ret,
                   struct err *err)
{
    *ret = NULL;
    return tell_time(reader, db_prepare(reader->db, sql, ret, err), err);
}

int reader_step(struct store_reader *reader, sqlite3_stmt *statement, struct err *err)
{
    return tell_time(reader, db_step(statement, err), err);
}

static const struct {
    const char *id, *name;
} name_queries[] = {
    [READER_TEXTS] = { "SELECT id FROM text WHERE value = ?1",
                       "SELECT value FROM text WHERE id = ?1" },
    [READER_CLUSTERS] = { "SELECT id FROM cluster WHERE name = ?1",
                          "SELECT name FROM cluster WHERE id = ?1" },
};

int reader_id(struct store_reader *reader, enum reader_names of, struct str name, int64_t *ret,
              struct err *err)
{
    sqlite3_stmt *statement;
    int r = reader_prepare(reader, name_queries[of].id, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, name);
    r = reader_step(reader, statement, err);
    *ret = r > 0 ? db_i64(statement, 0, 0) : 0;
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

int reader_name(struct store_reader *reader, enum reader_names of, int64_t id, struct arena *arena,
                struct str *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = reader_prepare(reader, name_queries[of].name, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    r = reader_step(reader, statement, err);
    *ret = r > 0 ? arena_str(arena, db_text(statement, 0)) : STR("");
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

uint64_t reader_run_suspended(const struct reader_run *run, int64_t end)
{
    uint64_t suspended = run->suspended_seconds == MODEL_UNKNOWN_U64 ? 0 : run->suspended_seconds;
    int64_t since = run->as_of > run->start_time ? run->as_of : run->start_time;

    if (run->state.base != JOB_SUSPENDED || !run->as_of || end <= since)
        return suspended;
    return suspended + (uint64_t)(end - since);
}

static int64_t latest_end(const struct reader_run *run, int64_t now)
{
    int64_t end = run->last_seen ? earlier(run->last_seen, now) : now, limit;
    uint64_t suspended = reader_run_suspended(run, end);

    if (!run->time_limit_minutes || run->time_limit_minutes == MODEL_UNKNOWN_U32 ||
        __builtin_add_overflow(run->start_time + (int64_t)run->time_limit_minutes * 60, suspended,
                               &limit))
        return end;
    return earlier(limit, end);
}

int64_t reader_run_end(const struct reader_run *run, int64_t now)
{
    bool is_running = (run->state.base == JOB_RUNNING || run->state.base == JOB_SUSPENDED) &&
                      !(run->state.flags & JOB_COMPLETING);

    if (!is_running && run->end_time && run->end_time <= now)
        return run->end_time;
    return job_holds_resources(run->state) ? latest_end(run, now) : run->end_time;
}

void job_filter_clear(struct job_filter *filter)
{
    *filter = (struct job_filter){
        .array_task_id = MODEL_UNKNOWN_U32,
        .het_offset = MODEL_UNKNOWN_U32,
        .efficiency_below = NAN,
        .efficiency_above = NAN,
    };
}
