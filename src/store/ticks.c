/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of the embedded series: opening it, and writing a tick. What is lost when the power
 * fails are the last ticks, never more (https://www.sqlite.org/wal.html, synchronous NORMAL). */
#include "store/ticks_writer.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOB_MAX = 16 * TICKS_SAMPLES_MAX,
    SMALL_STEP = 60,      /* back: less than that is not worth a batch, and its ticks go */
    LONG_PAUSE = 30 * 60, /* after it, and */
    PAUSE_STEPS = 4,      /* times as long as the one before: perhaps the clock was set */
};

/* head has the newest ticks, each as it came. Older ones are sealed, a batch of ticks at a time: a
 * row for each series that has a sample in one of them, at its place (ticks_place). A name goes
 * when its last batch does. */
static const char schema[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE,"
    " last_batch INTEGER NOT NULL);"
    "CREATE TABLE head(time INTEGER PRIMARY KEY, n INTEGER NOT NULL, samples BLOB NOT NULL);"
    "CREATE TABLE batch(id INTEGER PRIMARY KEY, begin_time INTEGER NOT NULL,"
    " end_time INTEGER NOT NULL, times BLOB NOT NULL);"
    "CREATE TABLE sealed(place INTEGER PRIMARY KEY, samples BLOB NOT NULL);";

static const char *const statements[TICKS_STATEMENTS] = {
    [TICKS_FIND_NAME] = "SELECT id FROM name WHERE text = ?1",
    [TICKS_ADD_NAME] = "INSERT INTO name(text, last_batch) VALUES(?1, 0)",
    [TICKS_ADD_TICK] = "INSERT INTO head(time, n, samples) VALUES(?1, ?2, ?3)",
    [TICKS_OLDEST_TICKS] = "SELECT time, n FROM head WHERE time < ?1 ORDER BY time LIMIT ?2",
    [TICKS_READ_TICKS] = "SELECT time, samples FROM head WHERE time <= ?1 ORDER BY time",
    [TICKS_DROP_TICKS] = "DELETE FROM head WHERE time <= ?1",
    [TICKS_DROP_TICK] = "DELETE FROM head WHERE time = ?1",
    [TICKS_DROP_LAST_TICKS] = "DELETE FROM head WHERE time >= ?1",
    [TICKS_ADD_BATCH] = "INSERT INTO batch(begin_time, end_time, times) VALUES(?1, ?2, ?3)",
    [TICKS_OLDEST_BATCH] = "SELECT id FROM batch WHERE end_time < ?1 ORDER BY id LIMIT 1",
    [TICKS_DROP_BATCH] = "DELETE FROM batch WHERE id = ?1",
    [TICKS_ADD_SEALED] = "INSERT INTO sealed(place, samples) VALUES(?1, ?2)",
    [TICKS_SET_BATCH_OF_NAME] = "UPDATE name SET last_batch = ?2 WHERE id = ?1",
    [TICKS_SEALED_IN] = "SELECT place FROM sealed WHERE place BETWEEN ?1 AND ?2 ORDER BY place",
    [TICKS_DROP_SEALED] = "DELETE FROM sealed WHERE place BETWEEN ?1 AND ?2",
    /* A batch before this one is still there if it is of a time that has not come yet. */
    [TICKS_DROP_NAME] = "DELETE FROM name WHERE id = ?1 AND last_batch <= ?2 AND NOT EXISTS"
                        " (SELECT 1 FROM batch JOIN sealed ON place = (batch.id << 32 | ?1)"
                        " WHERE batch.id < ?2)",
};

int ticks_damaged(const char *path, struct err *err)
{
    return err_set(err, EBADMSG,
                   "the series in %s are damaged: move the file away, and a new one is begun",
                   path);
}

static int not_series(const char *path, struct err *err)
{
    return err_set(err, EBADMSG,
                   "%s is not a file of series of sonde: name another, or move it away", path);
}

int ticks_check_file(sqlite3 *db, const char *path, bool *ret_is_new, struct err *err)
{
    int64_t application_id = 0, version = 0, tables = 0;
    int r = db_get_i64(db, "PRAGMA application_id", &application_id, err);

    if (r == 0)
        r = db_get_i64(db, "PRAGMA user_version", &version, err);
    if (r == 0)
        r = db_get_i64(db, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (r < 0)
        return r == -EBADMSG ? not_series(path, err) : r;
    *ret_is_new = !application_id && !version && !tables;
    if (*ret_is_new)
        return 0;
    if (application_id != TICKS_APPLICATION_ID)
        return not_series(path, err);
    if (version > TICKS_VERSION)
        return err_set(err, EPROTO,
                       "the series in %s have version %lld, made by a newer sonde; this one knows "
                       "%d: use the newer sonde, or another file",
                       path, (long long)version, TICKS_VERSION);
    return 0;
}

/* Never opened by ourselves when it is there: closing it would drop the locks that other
 * connections of this process hold (https://www.sqlite.org/howtocorrupt.html, 2.2). */
static int make_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

    if (fd < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make the file of series %s: %s; check its directory",
                       path, err_words(errno));
    if (fd >= 0)
        close(fd);
    return 0;
}

static int make_tables(sqlite3 *db, bool is_simulated, struct err *err)
{
    char sql[200];
    int r = db_exec(db, "BEGIN IMMEDIATE", err);

    if (r < 0)
        return r;
    snprintf(sql, sizeof(sql),
             "INSERT INTO meta VALUES('is_simulated', %d);"
             "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             is_simulated, TICKS_APPLICATION_ID, TICKS_VERSION);
    r = db_exec(db, schema, err);
    if (r == 0)
        r = db_exec(db, sql, err);
    if (r < 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

static int set_log(sqlite3 *db, struct err *err)
{
    int r = db_use_log(db, "the series in", err);

    if (r < 0)
        return r;
    return db_exec(db,
                   "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096;"
                   "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608",
                   err);
}

static int check_simulated(sqlite3 *db, const struct ticks_config *config, struct err *err)
{
    int64_t was_simulated;
    int r =
        db_get_i64(db, "SELECT value FROM meta WHERE name = 'is_simulated'", &was_simulated, err);

    if (r < 0 || !was_simulated == !config->is_simulated)
        return r;
    return err_set(err, EINVAL, "the series in %s are of %s jobs, these are %s: name another file",
                   config->path, was_simulated ? "simulated" : "real",
                   config->is_simulated ? "simulated" : "real");
}

/* When anything was last written, by us or by others: not the latest time that was ever told. */
static int read_state(struct ticks_writer *writer, struct err *err)
{
    int r = db_get_i64(writer->db,
                       "SELECT coalesce((SELECT max(time) FROM head),"
                       " (SELECT end_time FROM batch ORDER BY id DESC LIMIT 1), 0)",
                       &writer->last_time, err);

    if (r < 0)
        return r;
    return r < 0 ? r : db_get_i64(writer->db, "PRAGMA user_version", &writer->version, err);
}

static int open_db(struct ticks_writer *writer, const struct ticks_config *config, struct err *err)
{
    bool is_new = false;
    int r = db_open(config->path, true, &writer->db, err);

    if (r == 0)
        r = ticks_check_file(writer->db, config->path, &is_new, err);
    if (r == 0 && is_new) /* must come before the first table */
        r = db_exec(writer->db, "PRAGMA auto_vacuum = INCREMENTAL", err);
    if (r == 0)
        r = set_log(writer->db, err);
    if (r == 0 && is_new)
        r = make_tables(writer->db, config->is_simulated, err);
    if (r == 0)
        r = check_simulated(writer->db, config, err);
    return r < 0 ? r : read_state(writer, err);
}

int ticks_open(const struct ticks_config *config, struct ticks_writer **ret, struct err *err)
{
    struct ticks_writer *writer = heap_alloc(sizeof(*writer));
    int r;

    writer->path = heap_str(str_of(config->path));
    writer->retention_seconds = config->retention_seconds;
    writer->max_bytes = config->max_bytes;
    map_init(&writer->names, &writer->name_arena);
    buf_init(&writer->blob, BLOB_MAX);
    r = make_file(config->path, err);
    if (r == 0)
        r = open_db(writer, config, err);
    if (r < 0) {
        ticks_close(writer);
        return r;
    }
    writer->files = db_files(config->path);
    *ret = writer;
    return 0;
}

struct ticks_writer *ticks_close(struct ticks_writer *writer)
{
    if (!writer)
        return NULL;
    for (size_t i = 0; i < TICKS_STATEMENTS; i++)
        sqlite3_finalize(writer->statements[i]);
    /* Empties the log, so that readers find little to look through; no harm if one is reading. */
    if (writer->db)
        sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    db_close(writer->db);
    map_free(&writer->names);
    arena_clear(&writer->name_arena);
    buf_free(&writer->blob);
    free(writer->path);
    free(writer);
    return NULL;
}

int ticks_use(struct ticks_writer *writer, enum ticks_statement which, sqlite3_stmt **ret,
              struct err *err)
{
    sqlite3_stmt **statement = &writer->statements[which];
    int r = *statement ? 0 : db_prepare(writer->db, statements[which], statement, err);

    if (r == 0)
        *ret = *statement;
    return r;
}

void ticks_forget_names(struct ticks_writer *writer)
{
    map_free(&writer->names);
    arena_clear(&writer->name_arena);
    map_init(&writer->names, &writer->name_arena);
}

/* Somebody may have changed the file by hand, or with a second writer. */
static int check_changes(struct ticks_writer *writer, struct err *err)
{
    int64_t version;
    int r = db_get_i64(writer->db, "PRAGMA data_version", &version, err);

    if (r < 0 || version == writer->data_version)
        return r;
    writer->data_version = version;
    ticks_forget_names(writer);
    return read_state(writer, err);
}

int ticks_begin(struct ticks_writer *writer, struct err *err)
{
    int r;

    if (!db_files_are(writer->path, &writer->files))
        return err_set(err, ENOENT,
                       "the series in %s or their log have been removed or replaced: the file must "
                       "be opened anew",
                       writer->path);
    r = db_exec(writer->db, "BEGIN IMMEDIATE", err);
    if (r < 0)
        return r;
    r = check_changes(writer, err);
    if (r < 0)
        ticks_rollback(writer);
    return r;
}

int ticks_commit(struct ticks_writer *writer, struct err *err)
{
    int r = db_exec(writer->db, "COMMIT", err);

    if (r < 0)
        ticks_rollback(writer);
    return r;
}

void ticks_rollback(struct ticks_writer *writer)
{
    if (!sqlite3_get_autocommit(writer->db)) /* else SQLite has done so by itself */
        sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
    ticks_forget_names(writer);
}

/* ---- a tick ---- */

/* Those that are to be written; what is unknown is absent. Returns how many there are. */
static size_t choose(struct ticks_writer *writer, const struct tick_sample *sample, size_t n,
                     struct tick_sample *to)
{
    size_t chosen = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_name = sample[i].name.n && sample[i].name.n <= TICKS_NAME_MAX;

        if (!is_name || chosen == TICKS_SAMPLES_MAX)
            writer->skipped++;
        else if (!isnan(sample[i].value))
            to[chosen++] = sample[i];
    }
    return chosen;
}

/* 0: there is none. */
static int find_name(struct ticks_writer *writer, struct str name, int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_FIND_NAME, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, name);
    r = db_step(statement, err);
    *ret = r > 0 ? db_i64(statement, 0, 0) : 0;
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int add_name(struct ticks_writer *writer, struct str name, struct err *err)
{
    sqlite3_stmt *statement;
    int64_t id;
    int r = ticks_use(writer, TICKS_ADD_NAME, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, name);
    r = db_run(statement, err);
    if (r < 0)
        return r;
    id = sqlite3_last_insert_rowid(writer->db);
    if (id > UINT32_MAX)
        return err_set(err, EOVERFLOW,
                       "the series in %s have had too many names: move the file away, and a new "
                       "one is begun",
                       writer->path);
    *map_put(&writer->names, name) = (void *)(uintptr_t)id;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    const struct str *left = a, *right = b;
    size_t n = left->n < right->n ? left->n : right->n;
    int order = memcmp(left->p, right->p, n);

    return order ? order : (left->n > right->n) - (left->n < right->n);
}

/* Those that begin alike are mostly read together: in the order of their names, they lie together.
 */
static int add_names(struct ticks_writer *writer, struct str *name, size_t n, struct err *err)
{
    int r = 0;

    if (n)
        qsort(name, n, sizeof(*name), by_text);
    for (size_t i = 0; i < n && r == 0; i++)
        if (!i || !str_eq(name[i], name[i - 1]))
            r = add_name(writer, name[i], err);
    return r;
}

/* All names have a number then. */
static int learn_names(struct ticks_writer *writer, const struct tick_sample *sample, size_t n,
                       struct err *err)
{
    struct str *fresh = heap_array(n, sizeof(*fresh));
    size_t n_fresh = 0;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        int64_t id = 0;
        void **known = map_put(&writer->names, sample[i].name);

        if (*known)
            continue;
        r = find_name(writer, sample[i].name, &id, err);
        *known = (void *)(uintptr_t)id;
        if (!id)
            fresh[n_fresh++] = sample[i].name;
    }
    if (r == 0)
        r = add_names(writer, fresh, n_fresh, err);
    free(fresh);
    return r;
}

struct picked {
    struct tick_value value;
    uint32_t order; /* of those that have the same name, the first counts */
};

static int by_series(const void *a, const void *b)
{
    const struct picked *left = a, *right = b;

    if (left->value.series != right->value.series)
        return left->value.series < right->value.series ? -1 : 1;
    return left->order < right->order ? -1 : 1;
}

/* Makes the blob of them; returns how many there are. */
static size_t put_samples(struct ticks_writer *writer, const struct tick_sample *sample, size_t n)
{
    struct picked *picked = heap_array(n, sizeof(*picked));
    struct tick_value *value = heap_array(n, sizeof(*value));
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        picked[i] = (struct picked){
            { (uint32_t)(uintptr_t)*map_get(&writer->names, sample[i].name), sample[i].value },
            (uint32_t)i,
        };
    if (n)
        qsort(picked, n, sizeof(*picked), by_series);
    for (size_t i = 0; i < n; i++) {
        if (kept && value[kept - 1].series == picked[i].value.series)
            writer->skipped++;
        else
            value[kept++] = picked[i].value;
    }
    buf_reset(&writer->blob);
    tick_put(&writer->blob, value, kept);
    free(picked);
    free(value);
    return kept;
}

static int add_tick(struct ticks_writer *writer, int64_t time, const struct tick_sample *sample,
                    size_t n, struct err *err)
{
    struct tick_sample *chosen = heap_array(n, sizeof(*chosen));
    size_t n_chosen = choose(writer, sample, n, chosen), kept = 0;
    sqlite3_stmt *statement;
    int r = learn_names(writer, chosen, n_chosen, err);

    if (r == 0)
        kept = put_samples(writer, chosen, n_chosen);
    free(chosen);
    if (r == 0)
        r = ticks_use(writer, TICKS_ADD_TICK, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, time);
    db_bind_i64(statement, 2, (int64_t)kept);
    db_bind_blob(statement, 3, buf_str(&writer->blob));
    return db_run(statement, err);
}

static int drop_last_ticks(struct ticks_writer *writer, int64_t from, struct err *err)
{
    sqlite3_stmt *statement;
    int r = ticks_use(writer, TICKS_DROP_LAST_TICKS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, from);
    return db_run(statement, err);
}

/* The ticks of a head follow one another. What came before the clock was set is a batch of its own:
 * which of two clocks was right nobody knows, so neither is thrown away. */
static int follow_clock(struct ticks_writer *writer, int64_t time, struct err *err)
{
    int64_t step = time - writer->last_time;

    if (step > 0 && (step <= LONG_PAUSE || step <= PAUSE_STEPS * writer->last_step))
        return 0;
    if (step <= 0 && step > -SMALL_STEP)
        return drop_last_ticks(writer, time, err);
    return ticks_seal_all(writer, err);
}

int ticks_put(struct ticks_writer *writer, int64_t time, const struct tick_sample *sample, size_t n,
              struct err *err)
{
    int r = ticks_begin(writer, err);

    if (r < 0)
        return r;
    r = follow_clock(writer, time, err);
    if (r == 0)
        r = add_tick(writer, time, sample, n, err);
    if (r < 0) {
        ticks_rollback(writer);
        return r;
    }
    r = ticks_commit(writer, err);
    if (r == 0) {
        writer->last_step = time > writer->last_time ? time - writer->last_time : 0;
        writer->last_time = time;
    }
    return r;
}

/* ---- the version before ---- */

static int give_cluster(struct ticks_writer *writer, struct str cluster, struct err *err)
{
    sqlite3_stmt *statement;
    char sql[60];
    int r = db_prepare(writer->db,
                       "UPDATE name SET text = 'job/' || ?1 || substr(text, 4)"
                       " WHERE text >= 'job/' AND text < 'job0'",
                       &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, cluster);
    r = db_run(statement, err);
    sqlite3_finalize(statement);
    snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", TICKS_VERSION);
    return r < 0 ? r : db_exec(writer->db, sql, err);
}

int ticks_name_cluster(struct ticks_writer *writer, struct str cluster, struct err *err)
{
    int r;

    if (writer->version == TICKS_VERSION)
        return 0;
    r = ticks_begin(writer, err);
    if (r < 0)
        return r;
    if (writer->version < TICKS_VERSION) /* nobody else has done it meanwhile */
        r = give_cluster(writer, cluster, err);
    if (r < 0) {
        ticks_rollback(writer);
        return r;
    }
    r = ticks_commit(writer, err);
    if (r == 0) {
        writer->version = TICKS_VERSION;
        ticks_forget_names(writer);
    }
    return r;
}

/* ---- what there is ---- */

static uint64_t file_bytes(const struct ticks_writer *writer)
{
    static const char *const suffixes[] = { "", "-wal" };
    struct buf path;
    uint64_t bytes = 0;

    for (size_t i = 0; i < COUNT(suffixes); i++) {
        struct stat file;

        buf_init(&path, 1 << 16);
        buf_text(&path, writer->path);
        buf_text(&path, suffixes[i]);
        if (stat(path.p, &file) == 0)
            bytes += (uint64_t)file.st_size;
        buf_free(&path);
    }
    return bytes;
}

int ticks_stats(struct ticks_writer *writer, struct ticks_stats *ret, struct err *err)
{
    int64_t series = 0, first = 0;
    int r = db_get_i64(writer->db, "SELECT count(*) FROM name", &series, err);

    if (r == 0)
        r = db_get_i64(writer->db,
                       "SELECT coalesce((SELECT min(begin_time) FROM batch),"
                       " (SELECT min(time) FROM head), 0)",
                       &first, err);
    if (r < 0)
        return r;
    *ret = (struct ticks_stats){
        .bytes = file_bytes(writer),
        .series = (uint64_t)series,
        .skipped = writer->skipped,
        .first_time = first,
        .last_time = writer->last_time,
    };
    return 0;
}
