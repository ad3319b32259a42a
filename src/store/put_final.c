/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What agents counted of ended jobs. A record of a job that is not recorded is held apart, in a
 * table of its own with a limit, until Slurm's queue or accounting tells of the job: whoever can
 * post could make up any number of jobs. */
#include "store/writer.h"

/* A record as it is written. */
struct row {
    uint32_t job_id;
    struct str node;
    int64_t begin_time, end_time;
    struct str document; /* packed */
};

static void bind_row(sqlite3_stmt *statement, int64_t cluster, const struct row *row)
{
    db_bind_i64(statement, 1, cluster);
    db_bind_i64(statement, 2, row->job_id);
    db_bind_i64(statement, 4, row->begin_time);
    db_bind_i64(statement, 5, row->end_time);
    db_bind_blob(statement, 6, row->document);
}

static int keep(struct store *store, int64_t cluster, const struct row *row, struct err *err)
{
    sqlite3_stmt *statement;
    int64_t node;
    int r = store_text(store, row->node, TEXT_WORD, &node, err);

    if (r == 0)
        r = store_use(store, SQL_PUT_FINAL, &statement, err);
    if (r < 0)
        return r;
    bind_row(statement, cluster, row);
    db_bind_i64(statement, 3, node);
    return db_run(statement, err);
}

/* The oldest go: ids grow in the order in which records came. */
static int drop_oldest(struct store *store, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_DROP_OLDEST_HELD, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, STORE_HELD_MAX);
    r = db_run(statement, err);
    if (r == 0)
        store->n_dropped += (uint64_t)sqlite3_changes(store->db);
    return r;
}

static int hold(struct store *store, int64_t cluster, const struct row *row, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_HOLD, &statement, err);

    if (r < 0)
        return r;
    bind_row(statement, cluster, row);
    db_bind_text(statement, 3, row->node);
    r = db_run(statement, err);
    store->holds = HOLDS_SOME;
    return r < 0 ? r : drop_oldest(store, err);
}

/* 1 if a run of that job is recorded. */
static int knows_job(struct store *store, int64_t cluster, uint32_t job_id, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_KNOWS_JOB, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, job_id);
    db_bind_i64(statement, 2, cluster);
    r = db_step(statement, err);
    sqlite3_reset(statement);
    return r;
}

int store_put_final(struct store *store, struct str cluster, const struct final_record *record,
                    struct err *err)
{
    struct row row = { record->job_id, record->node, record->begin_time, record->end_time, { 0 } };
    struct store_cluster *of;
    int r = store_cluster(store, cluster, &of, err);

    if (r == 0 && record->document.n > REST_MAX)
        r = err_set(err, EFBIG, "the document of job %u on %.*s has more than %d bytes",
                    record->job_id, STR_ARG(str_head(record->node, 100)), REST_MAX);
    if (r == 0)
        r = knows_job(store, of->id, record->job_id, err);
    if (r < 0)
        return r;
    buf_reset(&store->packed);
    rest_pack(store->packer, REST_DOCUMENTS, record->document, &store->packed);
    row.document = buf_str(&store->packed);
    return r ? keep(store, of->id, &row, err) : hold(store, of->id, &row, err);
}

/* --- once the job is recorded --- */

static int count_held(struct store *store, struct err *err)
{
    int64_t is_any = 0;
    int r = db_get_i64(store->db, "SELECT EXISTS(SELECT 1 FROM held)", &is_any, err);

    store->holds = is_any ? HOLDS_SOME : HOLDS_NONE;
    return r;
}

static int drop_held(struct store *store, int64_t id, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_DROP_HELD, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    return db_run(statement, err);
}

/* 1 if there was one. What the statement tells is read until it is reset. */
static int release_one(struct store *store, int64_t cluster, uint32_t job_id, struct err *err)
{
    sqlite3_stmt *statement;
    int64_t id = 0;
    int r = store_use(store, SQL_FIND_HELD, &statement, err), found;

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    db_bind_i64(statement, 2, job_id);
    r = found = db_step(statement, err);
    if (found > 0) {
        const struct row row = { job_id, db_text(statement, 1), db_i64(statement, 2, 0),
                                 db_i64(statement, 3, 0), db_blob(statement, 4) };

        id = db_i64(statement, 0, 0);
        r = keep(store, cluster, &row, err);
    }
    sqlite3_reset(statement);
    if (r == 0 && found > 0)
        r = drop_held(store, id, err);
    return r < 0 ? r : found;
}

int store_release_held(struct store *store, int64_t cluster, uint32_t job_id, struct err *err)
{
    int r = store->holds == HOLDS_UNKNOWN ? count_held(store, err) : 0;

    if (r < 0 || store->holds == HOLDS_NONE)
        return r;
    while ((r = release_one(store, cluster, job_id, err)) > 0)
        ;
    return r;
}

uint64_t store_take_dropped(struct store *store)
{
    uint64_t n = store->n_dropped;

    store->n_dropped = 0;
    return n;
}
