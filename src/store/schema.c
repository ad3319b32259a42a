/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables and their migrations. A row that has been released is never changed: what is to be
 * different is another row. The SQL is that of SQLite 3.26 and newer. */
#include "store/schema.h"

#include "model/state.h"
#include "store/sqlite.h"

const int64_t schema_stay_seconds[SCHEMA_STAYS_BOUND] = { 3600,   21600,   86400,
                                                          345600, 1382400, 5529600 };

/* What the view of runs shows, with names in place of ids. */
#define JOBS_VIEW                                                                                  \
    " (SELECT name FROM cluster WHERE id = job.cluster) AS cluster,"                               \
    " job_id, submit_time, first_submit_time, restarts, array_job_id, array_task_id, het_job_id,"  \
    " het_offset, tasks, user_id,"                                                                 \
    " (SELECT value FROM text WHERE id = job.user) AS user,"                                       \
    " (SELECT value FROM text WHERE id = job.account) AS account,"                                 \
    " (SELECT value FROM text WHERE id = job.partition) AS partition,"                             \
    " (SELECT value FROM text WHERE id = job.qos) AS qos,"                                         \
    " (SELECT value FROM text WHERE id = job.name) AS name,"                                       \
    " (SELECT value FROM text WHERE id = job.reservation) AS reservation,"                         \
    " (SELECT value FROM text WHERE id = job.state) AS state,"                                     \
    " (SELECT value FROM text WHERE id = job.reason) AS reason,"                                   \
    " (SELECT value FROM text WHERE id = job.node_list) AS node_list,"                             \
    " exit_code, exit_signal, priority, eligible_time, start_time, end_time, suspended_seconds,"   \
    " time_limit_minutes, cpus, node_count, memory_bytes, gpus,"                                   \
    " (SELECT value FROM text WHERE id = job.gpu_types) AS gpu_types,"                             \
    " billing, cpu_seconds, user_seconds, system_seconds, memory_peak_bytes, read_bytes,"          \
    " write_bytes, energy_joules, as_of"                                                           \
    " FROM job;"

/* Texts stand once, in `text`, and elsewhere by their id; NULL is unknown, but 0 in life and ended,
 * where it is part of a key. One that has not been used as a word (kinds & 1) is only the name of
 * `named` runs or a list of nodes, and goes with the last run that has it; kinds & 2: its members
 * are in `member`. The rare fields of a job are in job.rest, packed as rest.h says, and so is
 * final.document.
 *
 * job_run is also the order of pages: newest submit time first. A run with is_counted = 0 has not
 * ended as far as is known; one with 2 has, and is counted when accounting tells so. Ids of states
 * grow from waiting to ended: (time, state) is the order of a life, even within a second. Each
 * further index of all runs costs more than all else that is written of a job, as what is near in
 * time lies far apart in it.
 *
 * A row of node is written when something of it has changed, at seen_time; the mark "nodes_seen"
 * tells when all nodes of that cluster were last seen, "open_seen" when anything was heard of a run
 * that had not ended. */
static const char first_schema[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE cluster(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE text(id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE,"
    " kinds INTEGER NOT NULL DEFAULT 1, named INTEGER NOT NULL DEFAULT 0);"

    "CREATE TABLE job("
    " id INTEGER PRIMARY KEY,"
    " cluster INTEGER NOT NULL,"
    " job_id INTEGER NOT NULL,"
    " submit_time INTEGER NOT NULL,"
    " first_submit_time INTEGER NOT NULL,"
    " restarts INTEGER,"
    " array_job_id INTEGER, array_task_id INTEGER,"
    " het_job_id INTEGER, het_offset INTEGER,"
    " tasks INTEGER,"
    " user_id INTEGER,"
    " user INTEGER, account INTEGER, partition INTEGER, qos INTEGER, name INTEGER,"
    " reservation INTEGER, state INTEGER, reason INTEGER, node_list INTEGER,"
    " exit_code INTEGER, exit_signal INTEGER,"
    " priority INTEGER,"
    " eligible_time INTEGER, start_time INTEGER, end_time INTEGER,"
    " suspended_seconds INTEGER, time_limit_minutes INTEGER,"
    " cpus INTEGER, node_count INTEGER, memory_bytes INTEGER,"
    " gpus INTEGER, gpu_types INTEGER, billing INTEGER,"
    " cpu_seconds REAL, user_seconds REAL, system_seconds REAL,"
    " memory_peak_bytes INTEGER, read_bytes INTEGER, write_bytes INTEGER, energy_joules INTEGER,"
    " as_of INTEGER NOT NULL,"
    " origin INTEGER NOT NULL,"
    " is_counted INTEGER NOT NULL,"
    " rest BLOB);"
    "CREATE UNIQUE INDEX job_run ON job(submit_time, job_id, cluster);"
    "CREATE INDEX job_by_id ON job(job_id, submit_time, cluster);"
    "CREATE INDEX job_by_array ON job(array_job_id, submit_time, job_id, cluster)"
    " WHERE array_job_id IS NOT NULL;"
    "CREATE INDEX job_by_het ON job(het_job_id, submit_time, job_id, cluster)"
    " WHERE het_job_id IS NOT NULL;"
    "CREATE INDEX job_by_stay ON job(" SCHEMA_STAY ", submit_time, job_id, cluster);"
    "CREATE INDEX job_by_user ON job(user, " SCHEMA_STAY ", submit_time, job_id, cluster);"
    "CREATE INDEX job_by_account ON job(account, " SCHEMA_STAY ", submit_time, job_id, cluster);"
    "CREATE INDEX job_by_state ON job(state, " SCHEMA_STAY ", submit_time, job_id, cluster)"
    " WHERE " SCHEMA_HAS_FAILED ";"
    "CREATE INDEX job_by_end ON job(end_time, cluster);"
    "CREATE INDEX job_by_node_list ON job(node_list, submit_time, job_id, cluster)"
    " WHERE node_list IS NOT NULL;"

    "CREATE TABLE member(node INTEGER, list INTEGER, PRIMARY KEY(node, list)) WITHOUT ROWID;"
    "CREATE TABLE life(job INTEGER, time INTEGER, state INTEGER, reason INTEGER,"
    " PRIMARY KEY(job, time, state, reason)) WITHOUT ROWID;"
    "CREATE TABLE final(cluster INTEGER, job_id INTEGER, node INTEGER, begin_time INTEGER,"
    " end_time INTEGER, document BLOB, PRIMARY KEY(cluster, job_id, node, begin_time))"
    " WITHOUT ROWID;"
    "CREATE INDEX final_by_end ON final(cluster, end_time);"
    "CREATE TABLE node(cluster INTEGER, name TEXT, seen_time INTEGER, state TEXT, partitions TEXT,"
    " features TEXT, gres TEXT, gres_used TEXT, reservation TEXT, reason TEXT, reason_user TEXT,"
    " reason_time INTEGER, version TEXT, cpus INTEGER, cpus_alloc INTEGER, cpus_idle INTEGER,"
    " cpus_other INTEGER, cpu_load REAL, memory_bytes INTEGER, memory_alloc_bytes INTEGER,"
    " memory_free_bytes INTEGER, PRIMARY KEY(cluster, name)) WITHOUT ROWID;"
    "CREATE TABLE ended(cluster INTEGER, state INTEGER, partition INTEGER, account INTEGER,"
    " count INTEGER NOT NULL, PRIMARY KEY(cluster, state, partition, account)) WITHOUT ROWID;"
    "CREATE TABLE mark(cluster INTEGER, name TEXT, value INTEGER NOT NULL,"
    " PRIMARY KEY(cluster, name)) WITHOUT ROWID;"

    "CREATE VIEW jobs AS SELECT" JOBS_VIEW;

static int add_state_words(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *statement;
    int r = db_prepare(db, "INSERT INTO text(value) VALUES(?1)", &statement, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < JOB_BASES && r == 0; i++) {
        db_bind_text(statement, 1, job_state_words[i]);
        r = db_run(statement, err);
    }
    sqlite3_finalize(statement);
    return r;
}

/* job.last_seen: when the queue last showed a run that it no longer does, and whose end nobody has
 * told. Where accounting has been asked, what is counted so far stays. */
static const char second_schema[] =
    "ALTER TABLE job ADD COLUMN last_seen INTEGER;"
    "INSERT INTO mark SELECT cluster, 'pruned_before', value FROM mark WHERE name = 'pruned_end';"
    "INSERT INTO mark SELECT cluster, 'is_accounted', 1 FROM mark WHERE name = 'accounted_until';"
    "CREATE INDEX job_uncounted ON job(cluster) WHERE is_counted = 2;"
    "DROP VIEW jobs;"
    "CREATE VIEW jobs AS SELECT id," JOBS_VIEW;

/* What a run used, as JSON packed as final.document is. */
static const char third_schema[] =
    "CREATE TABLE summary(job INTEGER PRIMARY KEY, document BLOB NOT NULL);";

/* The newest section of each kind but jobs, as JSON in the format of zlib (RFC 1950). */
static const char fourth_schema[] =
    "CREATE TABLE section(cluster INTEGER, kind TEXT, time INTEGER NOT NULL,"
    " document BLOB NOT NULL, PRIMARY KEY(cluster, kind));";

/* What agents counted of jobs that are not recorded. The node stands here as it is, as what anybody
 * makes up must not become a word. */
static const char fifth_schema[] =
    "CREATE TABLE held(id INTEGER PRIMARY KEY, cluster INTEGER, job_id INTEGER, node TEXT,"
    " begin_time INTEGER, end_time INTEGER, document BLOB,"
    " UNIQUE(cluster, job_id, node, begin_time));"
    "CREATE INDEX held_by_end ON held(cluster, end_time);";

/* Tasks of an array that ended while they were pending together were counted as one end. Which runs
 * are counted: see rank_of() in put_job.c. */
static const char sixth_schema[] =
    "INSERT OR IGNORE INTO text(value) VALUES('several');"
    "INSERT INTO ended(cluster, state, partition, account, count)"
    " SELECT cluster,"
    " (SELECT id FROM text WHERE value = (SELECT substr(value, 1, instr(value || '+', '+') - 1)"
    "  FROM text WHERE id = job.state)) AS word,"
    " ifnull((SELECT id FROM text WHERE value = (SELECT CASE WHEN instr(value, ',') THEN 'several'"
    "  ELSE value END FROM text WHERE id = job.partition)), 0) AS place,"
    " ifnull(account, 0) AS owner, sum(tasks - 1) FROM job"
    " WHERE is_counted = 1 AND tasks > 1 AND state IS NOT NULL AND (origin = 1 OR NOT EXISTS("
    "  SELECT 1 FROM mark WHERE cluster = job.cluster AND name = 'is_accounted' AND value > 0))"
    " GROUP BY cluster, word, place, owner"
    " ON CONFLICT(cluster, state, partition, account) DO UPDATE SET count = count + "
    "excluded.count;";

/* job.is_wait_counted: how long it was pending is counted in `waited`. bound: the upper bound of
 * the bucket, in seconds; 0: longer than any. The mark "waits_since" tells since when starts count.
 */
static const char seventh_schema[] =
    "ALTER TABLE job ADD COLUMN is_wait_counted INTEGER;"
    "CREATE TABLE waited(cluster INTEGER, partition INTEGER, bound INTEGER,"
    " count INTEGER NOT NULL, seconds INTEGER NOT NULL,"
    " PRIMARY KEY(cluster, partition, bound)) WITHOUT ROWID;";

const struct migration schema_migrations[] = {
    { 1, "Make the tables", first_schema, add_state_words },
    { 2, "Add the id to the view of jobs, and when a run was last seen", second_schema, NULL },
    { 3, "Keep what each job used", third_schema, NULL },
    { 4, "Keep what each cluster last told of itself", fourth_schema, NULL },
    { 5, "Hold records of unknown jobs apart", fifth_schema, NULL },
    { 6, "Count each task of arrays that were canceled while pending", sixth_schema, NULL },
    { 7, "Count how long jobs were pending", seventh_schema, NULL },
};
const size_t n_schema_migrations = COUNT(schema_migrations);

int schema_version(const struct migration *rows, size_t n)
{
    return n ? rows[n - 1].version : 0;
}

static int not_a_store(sqlite3 *db, struct err *err)
{
    return err_set(err, EBADMSG,
                   "%s is a SQLite file, but not a store of sonde: name another file in --store",
                   sqlite3_db_filename(db, "main"));
}

int schema_read_version(sqlite3 *db, int newest, int *ret, struct err *err)
{
    int64_t application_id = 0, version = 0, tables = 0;
    int r = db_get_i64(db, "PRAGMA application_id", &application_id, err);

    if (r == 0)
        r = db_get_i64(db, "PRAGMA user_version", &version, err);
    if (r == 0)
        r = db_get_i64(db, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (r < 0)
        return r;
    if (application_id == 0 && version == 0 && tables == 0) {
        *ret = 0;
        return 0;
    }
    if (application_id != SCHEMA_APPLICATION_ID || version <= 0)
        return not_a_store(db, err);
    if (version > newest)
        return err_set(err, EPROTO,
                       "the store %s has version %lld of the schema, made by a newer sonde; this "
                       "one knows %d: use the newer sonde, or another file",
                       sqlite3_db_filename(db, "main"), (long long)version, newest);
    *ret = (int)version;
    return 0;
}

static int apply(sqlite3 *db, const struct migration *row, struct err *err)
{
    int r = row->sql ? db_exec(db, row->sql, err) : 0;

    if (r == 0 && row->run)
        r = row->run(db, err);
    return r < 0 ? err_prefix(err, "migration %d (%s)", row->version, row->sentence) : 0;
}

/* A pragma takes no parameters; this is a number of our own. */
static int set_version(sqlite3 *db, int version, struct err *err)
{
    char sql[100];

    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             SCHEMA_APPLICATION_ID, version);
    return db_exec(db, sql, err);
}

int schema_migrate(sqlite3 *db, int version, const struct migration *rows, size_t n,
                   struct buf *told, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        int r;

        if (rows[i].version <= version)
            continue;
        r = apply(db, &rows[i], err);
        if (r == 0)
            r = set_version(db, rows[i].version, err);
        if (r < 0)
            return r;
        if (told)
            buf_printf(told, "%d: %s\n", rows[i].version, rows[i].sentence);
    }
    return 0;
}
