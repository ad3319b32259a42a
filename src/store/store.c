/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store as a whole: opening, migrating, transactions, and the small things that are kept in it.
 * https://www.sqlite.org/wal.html */
#include "base/quote.h"
#include "store/schema.h"
#include "store/writer.h"

#include <fcntl.h>

/* Those without a text are made from the columns of a job. */
static const char *const statements[SQL_STATEMENTS] = {
    [SQL_FIND_TEXT] = "SELECT id, kinds FROM text WHERE value = ?1",
    [SQL_READ_TEXT] = "SELECT value FROM text WHERE id = ?1",
    [SQL_ADD_TEXT] = "INSERT INTO text(value, kinds) VALUES(?1, ?2)",
    [SQL_SET_TEXT_KINDS] = "UPDATE text SET kinds = ?2 WHERE id = ?1",
    [SQL_COUNT_NAMED] = "UPDATE text SET named = named + ?5 WHERE id = ?1",
    [SQL_ADD_MEMBER] = "INSERT OR IGNORE INTO member(node, list) VALUES(?1, ?2)",
    [SQL_FIND_CLUSTER] = "SELECT id FROM cluster WHERE name = ?1",
    [SQL_ADD_CLUSTER] = "INSERT INTO cluster(name) VALUES(?1)",
    [SQL_GET_MARK] = "SELECT value FROM mark WHERE cluster = ?1 AND name = ?2",
    [SQL_SET_MARK] = "INSERT OR REPLACE INTO mark(cluster, name, value) VALUES(?1, ?2, ?3)",
    [SQL_NEWEST_RUN] = "SELECT id, submit_time, cluster FROM job WHERE job_id = ?1"
                       " ORDER BY submit_time DESC LIMIT 1",
    [SQL_FIND_RUN] = "SELECT id FROM job WHERE job_id = ?1 AND submit_time = ?2 AND cluster = ?3",
    [SQL_RUN_BEFORE] = "SELECT id, submit_time, first_submit_time, restarts, user, name, state,"
                       " reason, partition, account, is_counted FROM job"
                       " WHERE job_id = ?1 AND submit_time < ?2 AND cluster = ?3"
                       " ORDER BY submit_time DESC LIMIT 1",
    [SQL_RUN_AFTER] = "SELECT id, submit_time, first_submit_time, restarts, user, name, state,"
                      " reason, partition, account, is_counted FROM job"
                      " WHERE job_id = ?1 AND submit_time > ?2 AND cluster = ?3"
                      " ORDER BY submit_time LIMIT 1",
    [SQL_SET_FIRST_SUBMIT] = "UPDATE job SET first_submit_time = ?2 WHERE id = ?1",
    [SQL_END_REQUEUED] = "UPDATE job SET state = ?2, reason = NULL, end_time = ?3, origin = ?4,"
                         " is_counted = ?5 WHERE id = ?1",
    [SQL_ADD_MOMENT] = "INSERT OR IGNORE INTO life(job, time, state, reason)"
                       " VALUES(?1, ?2, ?3, ?4)",
    [SQL_DROP_MOMENT] = "DELETE FROM life WHERE job = ?1 AND time = ?2 AND state = ?3"
                        " AND reason = ?4",
    [SQL_COUNT_MOMENTS] = "SELECT count(*) FROM life WHERE job = ?1",
    [SQL_COUNT_ENDED] = "INSERT INTO ended(cluster, state, partition, account, count)"
                        " VALUES(?1, ?2, ?3, ?4, ?5)"
                        " ON CONFLICT(cluster, state, partition, account)"
                        " DO UPDATE SET count = count + excluded.count",
    [SQL_COUNT_WAITED] = "INSERT INTO waited(cluster, partition, bound, count, seconds)"
                         " VALUES(?1, ?2, ?3, ?5, ?4 * ?5)"
                         " ON CONFLICT(cluster, partition, bound) DO UPDATE SET"
                         " count = count + excluded.count, seconds = seconds + excluded.seconds",
    [SQL_WAITS] = "SELECT ifnull((SELECT value FROM text WHERE id = waited.partition), ''), bound,"
                  " count, seconds FROM waited"
                  " WHERE cluster = (SELECT id FROM cluster WHERE name = ?1)"
                  " ORDER BY partition, bound",
    [SQL_DROP_ENDED] = "DELETE FROM ended WHERE cluster = ?1",
    [SQL_PUT_FINAL] = "INSERT INTO final(cluster, job_id, node, begin_time, end_time, document)"
                      " VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
                      " ON CONFLICT(cluster, job_id, node, begin_time)"
                      " DO UPDATE SET end_time = excluded.end_time, document = excluded.document"
                      " WHERE excluded.end_time >= final.end_time",
    [SQL_KNOWS_JOB] = "SELECT 1 FROM job WHERE job_id = ?1 AND cluster = ?2 LIMIT 1",
    [SQL_HOLD] = "INSERT INTO held(cluster, job_id, node, begin_time, end_time, document)"
                 " VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
                 " ON CONFLICT(cluster, job_id, node, begin_time)"
                 " DO UPDATE SET end_time = excluded.end_time, document = excluded.document"
                 " WHERE excluded.end_time >= held.end_time",
    [SQL_FIND_HELD] = "SELECT id, node, begin_time, end_time, document FROM held"
                      " WHERE cluster = ?1 AND job_id = ?2 LIMIT 1",
    [SQL_DROP_HELD] = "DELETE FROM held WHERE id = ?1",
    [SQL_DROP_OLDEST_HELD] = "DELETE FROM held WHERE id <= (SELECT max(id) FROM held) - ?1",
    [SQL_PUT_SUMMARY] = "INSERT OR REPLACE INTO summary(job, document) VALUES(?1, ?2)",
    [SQL_PUT_SECTION] = "INSERT OR REPLACE INTO section(cluster, kind, time, document)"
                        " VALUES(?1, ?2, ?3, ?4)",
    [SQL_TOUCH_SECTION] = "UPDATE section SET time = ?3 WHERE cluster = ?1 AND kind = ?2",
    [SQL_CLUSTER_NODES] = "SELECT name, state, partitions, features, gres, gres_used, reservation,"
                          " reason, reason_user, version, reason_time, cpus, cpus_alloc, cpus_idle,"
                          " cpus_other, cpu_load, memory_bytes, memory_alloc_bytes,"
                          " memory_free_bytes FROM node WHERE cluster = ?1",
    [SQL_CHANGE_NODE] = "UPDATE node SET state = ?2, partitions = ?3, features = ?4, gres = ?5,"
                        " gres_used = ?6, reservation = ?7, reason = ?8, reason_user = ?9,"
                        " version = ?10, reason_time = ?11, cpus = ?12, cpus_alloc = ?13,"
                        " cpus_idle = ?14, cpus_other = ?15, cpu_load = ?16, memory_bytes = ?17,"
                        " memory_alloc_bytes = ?18, memory_free_bytes = ?19, seen_time = ?21"
                        " WHERE cluster = ?20 AND name = ?1",
    [SQL_ADD_NODE] = "INSERT INTO node(name, state, partitions, features, gres,"
                     " gres_used, reservation, reason, reason_user, version, reason_time, cpus,"
                     " cpus_alloc, cpus_idle, cpus_other, cpu_load, memory_bytes,"
                     " memory_alloc_bytes, memory_free_bytes, cluster, seen_time)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
                     " ?16, ?17, ?18, ?19, ?20, ?21)",
    [SQL_DROP_NODE] = "DELETE FROM node WHERE cluster = ?1 AND name = ?2",
    [SQL_OPEN_RUNS] = "SELECT id, job_id, submit_time FROM job INDEXED BY job_by_stay"
                      " WHERE " SCHEMA_STAY " = 7 AND cluster = ?1 UNION ALL"
                      " SELECT id, job_id, submit_time FROM job INDEXED BY job_uncounted"
                      " WHERE is_counted = 2 AND cluster = ?1",
    [SQL_OPEN_RUN] = "SELECT as_of FROM job WHERE id = ?1 AND as_of < ?2 AND is_counted <> 1",
    [SQL_SET_LAST_SEEN] = "UPDATE job SET last_seen = max(as_of, ?4) WHERE job_id = ?1"
                          " AND submit_time = ?2 AND cluster = ?3 AND is_counted = 0"
                          " AND last_seen IS NULL",
    [SQL_RUNS_BY_END] = "SELECT id, name, node_list, submit_time, end_time FROM job"
                        " WHERE end_time < ?2 AND cluster = ?1 ORDER BY end_time LIMIT ?3",
    [SQL_RUNS_BY_SUBMIT] = "SELECT id, name, node_list, submit_time, ifnull(end_time, as_of)"
                           " FROM job"
                           " WHERE is_counted <> 0 AND cluster = ?1 ORDER BY submit_time LIMIT ?3",
    [SQL_DROP_JOB] = "DELETE FROM job WHERE id = ?1",
    [SQL_DROP_LIFE] = "DELETE FROM life WHERE job = ?1",
    [SQL_DROP_SUMMARY] = "DELETE FROM summary WHERE job = ?1",
    [SQL_DROP_FINALS] = "DELETE FROM final WHERE (cluster, job_id, node, begin_time) IN"
                        " (SELECT cluster, job_id, node, begin_time FROM final"
                        " WHERE cluster = ?1 AND end_time < ?2 LIMIT ?3)",
    [SQL_DROP_HELD_FINALS] = "DELETE FROM held WHERE id IN (SELECT id FROM held"
                             " WHERE cluster = ?1 AND end_time < ?2 LIMIT ?3)",
    [SQL_UNUSED_TEXT] = "SELECT value, kinds FROM text WHERE id = ?1 AND kinds & 1 = 0"
                        " AND named <= 0"
                        " AND NOT EXISTS(SELECT 1 FROM job WHERE node_list = ?1)",
    [SQL_DROP_TEXT] = "DELETE FROM text WHERE id = ?1",
    [SQL_DROP_MEMBER] = "DELETE FROM member WHERE node = ?1 AND list = ?2",
    [SQL_COUNT_RUNS] = "SELECT count(*) FROM job WHERE cluster = ?1",
};

int store_path(struct str url, char ret[STORE_PATH_MAX], struct err *err)
{
    const struct str scheme = STR("sqlite:");
    size_t colon = str_find(url, ':'), slash = str_find(url, '/');
    struct str path = str_starts(url, scheme) ? str_skip(url, scheme.n) : url;

    if (str_eq(path, STR(":memory:")))
        return err_set(err, EINVAL,
                       "--store: what is in memory only is not kept: name a file, sqlite:PATH");
    /* What follows the scheme may hold a password. */
    if (path.n == url.n && colon < slash)
        return err_set(err, EINVAL,
                       "--store: \"%s\" is not known here: a store is a SQLite file, sqlite:PATH",
                       quote(str_head(url, colon)).text);
    if (!path.n || memchr(path.p, '\0', path.n))
        return err_set(err, EINVAL, "--store needs the path of a file: sqlite:PATH");
    if (path.n >= STORE_PATH_MAX)
        return err_set(err, EINVAL, "--store: the path is longer than %d bytes",
                       STORE_PATH_MAX - 1);
    memcpy(ret, path.p, path.n);
    ret[path.n] = '\0';
    return 0;
}

/* Never opened by ourselves when it is there: closing it would drop the locks that other
 * connections of this process hold (https://www.sqlite.org/howtocorrupt.html, 2.2). */
static int make_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

    if (fd < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make the store %s: %s; check its directory", path,
                       err_words(errno));
    if (fd >= 0)
        close(fd);
    return 0;
}

static int set_log(sqlite3 *db, struct err *err)
{
    int r = db_use_log(db, "the store", err);

    if (r < 0)
        return r;
    return db_exec(db,
                   "PRAGMA synchronous = FULL; PRAGMA cache_size = -49152;"
                   "PRAGMA wal_autocheckpoint = 16384; PRAGMA journal_size_limit = 67108864",
                   err);
}

static int set_simulated(sqlite3 *db, bool is_simulated, struct err *err)
{
    return db_exec(db,
                   is_simulated ? "INSERT INTO meta(name, value) VALUES('is_simulated', 1)"
                                : "INSERT INTO meta(name, value) VALUES('is_simulated', 0)",
                   err);
}

/* In one transaction: another may be doing the same. */
static int bring_up_to_date(sqlite3 *db, bool is_simulated, struct err *err)
{
    int newest = schema_version(schema_migrations, n_schema_migrations);
    int version, r = db_exec(db, "BEGIN IMMEDIATE", err);

    if (r < 0)
        return r;
    r = schema_read_version(db, newest, &version, err);
    if (r == 0)
        r = schema_migrate(db, version, schema_migrations, n_schema_migrations, NULL, err);
    if (r == 0 && version == 0)
        r = set_simulated(db, is_simulated, err);
    if (r == 0)
        r = db_exec(db, "COMMIT", err);
    if (r < 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

static int check_simulated(sqlite3 *db, bool is_simulated, struct err *err)
{
    int64_t was_simulated;
    int r =
        db_get_i64(db, "SELECT value FROM meta WHERE name = 'is_simulated'", &was_simulated, err);

    if (r < 0 || !was_simulated == !is_simulated)
        return r;
    return err_set(err, EINVAL,
                   "the store %s is of %s jobs, these are %s: name another file in "
                   "--store",
                   sqlite3_db_filename(db, "main"), was_simulated ? "simulated" : "real",
                   is_simulated ? "simulated" : "real");
}

static int open_db(sqlite3 *db, bool is_simulated, struct err *err)
{
    int newest = schema_version(schema_migrations, n_schema_migrations);
    int version, r = schema_read_version(db, newest, &version, err);

    if (r == 0 && version == 0) /* must come before the first table */
        r = db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", err);
    if (r == 0)
        r = set_log(db, err);
    if (r == 0 && version < newest)
        r = bring_up_to_date(db, is_simulated, err);
    return r < 0 ? r : check_simulated(db, is_simulated, err);
}

int store_open(struct str url, bool is_simulated, struct store **ret, struct err *err)
{
    struct store *store = heap_alloc(sizeof(*store));
    int r = store_path(url, store->path, err);

    if (r == 0)
        r = make_file(store->path, err);
    if (r == 0)
        r = db_open(store->path, true, &store->db, err);
    if (r == 0)
        r = open_db(store->db, is_simulated, err);
    if (r < 0) {
        db_close(store->db);
        free(store);
        return r;
    }
    store->files = db_files(store->path);
    store->runs = -1;
    store->packer = packer_new();
    map_init(&store->clusters, &store->cluster_arena);
    map_init(&store->texts, &store->text_arena);
    map_init(&store->tallies, &store->tally_arena);
    buf_init(&store->plain, REST_MAX + 1);
    buf_init(&store->packed, 2 * REST_MAX);
    *ret = store;
    return 0;
}

struct store *store_close(struct store *store)
{
    if (!store)
        return NULL;
    store_rollback(store);
    for (size_t i = 0; i < SQL_STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    /* Empties the log, so that readers find little to look through; no harm if one is reading. */
    sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    db_close(store->db);
    packer_free(store->packer);
    map_free(&store->clusters);
    map_free(&store->texts);
    map_free(&store->tallies);
    arena_clear(&store->cluster_arena);
    arena_clear(&store->text_arena);
    arena_clear(&store->tally_arena);
    arena_clear(&store->scratch);
    buf_free(&store->plain);
    buf_free(&store->packed);
    free(store);
    return NULL;
}

bool store_is_there(const struct store *store)
{
    return db_files_are(store->path, &store->files);
}

static int check_there(const struct store *store, struct err *err)
{
    if (store_is_there(store))
        return 0;
    return err_set(err, ENOENT,
                   "the store %s or its log has been removed or replaced: it must be opened anew",
                   store->path);
}

/* One that is not there is not made: its path is more likely to be mistyped. */
static int open_to_try(struct str url, sqlite3 **ret, struct err *err)
{
    char path[STORE_PATH_MAX];
    int r = store_path(url, path, err);

    if (r < 0)
        return r;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return err_set(err, ENOENT,
                       "there is no store %s: name the one that the exporter writes in --store",
                       path);
    return db_open(path, true, ret, err);
}

int store_try_migrations(struct str url, struct buf *out, struct err *err)
{
    int newest = schema_version(schema_migrations, n_schema_migrations);
    sqlite3 *db = NULL;
    int version, r = open_to_try(url, &db, err);

    if (r < 0)
        return r;
    r = schema_read_version(db, newest, &version, err);
    if (r == 0 && version < newest) {
        r = db_exec(db, "BEGIN IMMEDIATE", err);
        if (r == 0)
            r = schema_migrate(db, version, schema_migrations, n_schema_migrations, out, err);
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    db_close(db);
    return r;
}

int store_use(struct store *store, enum store_statement which, sqlite3_stmt **ret, struct err *err)
{
    sqlite3_stmt **statement = &store->statements[which];
    struct buf sql;
    int r;

    if (!*statement) {
        buf_init(&sql, 1 << 16);
        if (statements[which])
            buf_text(&sql, statements[which]);
        else
            job_columns_sql(which, &sql);
        r = db_prepare(store->db, sql.p, statement, err);
        buf_free(&sql);
        if (r < 0)
            return r;
    }
    *ret = *statement;
    return 0;
}

static void forget(struct store *store)
{
    store_forget_texts(store);
    store_forget_tallies(store);
    map_free(&store->clusters);
    arena_clear(&store->cluster_arena);
    map_init(&store->clusters, &store->cluster_arena);
    store->runs = -1;
    store->holds = HOLDS_UNKNOWN;
    store->n_dropped = 0;
}

/* Somebody may have changed the file by hand, or with a second exporter. */
static int check_changes(struct store *store, struct err *err)
{
    int64_t version;
    int r = db_get_i64(store->db, "PRAGMA data_version", &version, err);

    if (r < 0)
        return r;
    if (version != store->data_version)
        forget(store);
    store->data_version = version;
    return 0;
}

int store_begin(struct store *store, struct err *err)
{
    int r = check_there(store, err);

    if (r == 0)
        r = db_exec(store->db, "BEGIN IMMEDIATE", err);
    return r < 0 ? r : check_changes(store, err);
}

int store_commit(struct store *store, struct err *err)
{
    int r = check_there(store, err);

    if (r == 0)
        r = store_write_tallies(store, err);
    if (r == 0)
        r = store_write_marks(store, err);
    return r < 0 ? r : db_exec(store->db, "COMMIT", err);
}

void store_rollback(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db)) /* else SQLite has done so by itself */
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    forget(store);
}

int store_tidy(struct store *store, struct err *err)
{
    int code = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    return code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY ? 0 : db_fail(store->db, code, err);
}
