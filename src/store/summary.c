/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is kept of the use of a run, when the samples that it was made from are gone. */
#include "store/query.h"
#include "store/reader.h"
#include "store/rest.h"
#include "store/writer.h"

static int find_run(struct store *store, int64_t cluster, const struct summary_record *record,
                    int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_FIND_RUN, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, record->job_id);
    db_bind_i64(statement, 2, record->submit_time);
    db_bind_i64(statement, 3, cluster);
    r = db_step(statement, err);
    *ret = r > 0 ? db_i64(statement, 0, 0) : 0;
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

int store_put_summary(struct store *store, struct str cluster, const struct summary_record *record,
                      struct err *err)
{
    struct store_cluster *of;
    sqlite3_stmt *statement;
    int64_t job = 0;
    int r = store_cluster(store, cluster, &of, err);

    if (r == 0)
        r = find_run(store, of->id, record, &job, err);
    if (r < 0 || !job)
        return r;
    if (record->document.n > REST_MAX)
        return err_set(err, EFBIG, "the summary of job %u has more than %d bytes", record->job_id,
                       REST_MAX);
    r = store_use(store, SQL_PUT_SUMMARY, &statement, err);
    if (r < 0)
        return r;
    buf_reset(&store->packed);
    rest_pack(store->packer, REST_DOCUMENTS, record->document, &store->packed);
    db_bind_i64(statement, 1, job);
    db_bind_blob(statement, 2, buf_str(&store->packed));
    return db_run(statement, err);
}

int store_summary(struct store_reader *reader, const struct run_key *key, struct arena *arena,
                  struct str *ret, struct err *err)
{
    static const char sql[] =
        "SELECT document FROM summary WHERE job ="
        " (SELECT id FROM job WHERE cluster = (SELECT id FROM cluster WHERE name = ?1)"
        " AND job_id = ?2 AND submit_time = ?3)";
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    *ret = STR("");
    if (r < 0)
        return r;
    r = reader_prepare(reader, sql, &statement, err);
    if (r == 0) {
        db_bind_text(statement, 1, key->cluster);
        db_bind_i64(statement, 2, key->job_id);
        db_bind_i64(statement, 3, key->submit_time);
        r = reader_step(reader, statement, err);
    }
    if (r > 0)
        r = rest_unpack(db_blob(statement, 0), arena, ret, err);
    sqlite3_finalize(statement);
    reader_end(reader);
    return r;
}

int store_unsummarised(struct store_reader *reader, struct str cluster, int64_t from, int64_t to,
                       size_t most, struct arena *arena, struct run_key **ret, size_t *ret_n,
                       struct err *err)
{
    static const char sql[] = "SELECT submit_time, job_id FROM job INDEXED BY job_by_end"
                              " WHERE end_time >= ?2 AND end_time < ?3"
                              " AND cluster = (SELECT id FROM cluster WHERE name = ?1)"
                              " AND is_counted <> 0 AND start_time < end_time"
                              " AND NOT EXISTS(SELECT 1 FROM summary WHERE job = job.id)"
                              " ORDER BY end_time DESC LIMIT ?4";
    struct str name = arena_str(arena, cluster);
    struct run_key *runs = ARENA_ARRAY(arena, struct run_key, most);
    sqlite3_stmt *statement = NULL;
    size_t n = 0;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = reader_prepare(reader, sql, &statement, err);
    if (r == 0) {
        db_bind_text(statement, 1, cluster);
        db_bind_i64(statement, 2, from);
        db_bind_i64(statement, 3, to);
        db_bind_i64(statement, 4, (int64_t)most);
    }
    while (r >= 0 && n < most && (r = reader_step(reader, statement, err)) > 0)
        runs[n++] =
            (struct run_key){ db_i64(statement, 0, 0), (uint32_t)db_i64(statement, 1, 0), name };
    sqlite3_finalize(statement);
    reader_end(reader);
    *ret = runs;
    *ret_n = n;
    return r < 0 ? r : 0;
}
