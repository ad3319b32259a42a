/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of runs, and what is known of one. */
#include "store/branches.h"
#include "store/query.h"
#include "store/reader.h"
#include "store/rest.h"

#include <math.h>
#include <stdlib.h>

/* How a column becomes a member of struct job_row. */
enum column_kind {
    COLUMN_TEXT,
    COLUMN_TIME,   /* NULL: 0 */
    COLUMN_U32,    /* NULL: unknown */
    COLUMN_PARENT, /* of an array or heterogeneous job; NULL: 0 */
    COLUMN_TASKS,  /* NULL: 1 */
    COLUMN_U64,
    COLUMN_DOUBLE,
};

#define TEXT_OF(column) "(SELECT value FROM text WHERE id = job." column ")"
#define PLACE(member)   offsetof(struct job_row, member)

static const struct {
    const char *sql;
    enum column_kind kind;
    size_t offset;
} columns[] = {
    { "(SELECT name FROM cluster WHERE id = job.cluster)", COLUMN_TEXT, PLACE(key.cluster) },
    { "job_id", COLUMN_U32, PLACE(key.job_id) },
    { "submit_time", COLUMN_TIME, PLACE(key.submit_time) },
    { "first_submit_time", COLUMN_TIME, PLACE(first_submit_time) },
    { "as_of", COLUMN_TIME, PLACE(record.as_of) },
    { "array_job_id", COLUMN_PARENT, PLACE(record.array_job_id) },
    { "array_task_id", COLUMN_U32, PLACE(record.array_task_id) },
    { "tasks", COLUMN_TASKS, PLACE(record.tasks) },
    { "het_job_id", COLUMN_PARENT, PLACE(record.het_job_id) },
    { "het_offset", COLUMN_PARENT, PLACE(record.het_offset) },
    { "user_id", COLUMN_U32, PLACE(record.user_id) },
    { "restarts", COLUMN_U32, PLACE(record.restarts) },
    { TEXT_OF("user"), COLUMN_TEXT, PLACE(record.user) },
    { TEXT_OF("account"), COLUMN_TEXT, PLACE(record.account) },
    { TEXT_OF("qos"), COLUMN_TEXT, PLACE(record.qos) },
    { TEXT_OF("name"), COLUMN_TEXT, PLACE(record.name) },
    { TEXT_OF("reservation"), COLUMN_TEXT, PLACE(record.reservation) },
    { TEXT_OF("partition"), COLUMN_TEXT, PLACE(record.partition) },
    { TEXT_OF("reason"), COLUMN_TEXT, PLACE(record.reason) },
    { TEXT_OF("node_list"), COLUMN_TEXT, PLACE(record.nodes) },
    { "cpus", COLUMN_U32, PLACE(record.cpus) },
    { "node_count", COLUMN_U32, PLACE(record.node_count) },
    { "memory_bytes", COLUMN_U64, PLACE(record.memory_bytes) },
    { "time_limit_minutes", COLUMN_U32, PLACE(record.time_limit_minutes) },
    { "priority", COLUMN_U64, PLACE(record.priority) },
    { "eligible_time", COLUMN_TIME, PLACE(record.eligible_time) },
    { "start_time", COLUMN_TIME, PLACE(record.start_time) },
    { "end_time", COLUMN_TIME, PLACE(record.end_time) },
    { "suspended_seconds", COLUMN_U64, PLACE(record.suspended_seconds) },
    { "exit_code", COLUMN_U32, PLACE(record.exit_code) },
    { "exit_signal", COLUMN_U32, PLACE(record.exit_signal) },
    { "cpu_seconds", COLUMN_DOUBLE, PLACE(record.cpu_seconds) },
    { "user_seconds", COLUMN_DOUBLE, PLACE(record.user_seconds) },
    { "system_seconds", COLUMN_DOUBLE, PLACE(record.system_seconds) },
    { "memory_peak_bytes", COLUMN_U64, PLACE(record.memory_peak_bytes) },
    { "read_bytes", COLUMN_U64, PLACE(record.read_bytes) },
    { "write_bytes", COLUMN_U64, PLACE(record.write_bytes) },
    { "energy_joules", COLUMN_U64, PLACE(record.energy_joules) },
    { "gpus", COLUMN_U64, PLACE(gpus) },
    { TEXT_OF("gpu_types"), COLUMN_TEXT, PLACE(gpu_types) },
    { "billing", COLUMN_U64, PLACE(billing) },
};

/* What follows them, and is no plain member. */
enum { AT_STATE = COUNT(columns), AT_ORIGIN, AT_REST, AT_LAST_SEEN };

static void put_row_sql(struct buf *sql)
{
    buf_text(sql, "SELECT ");
    for (size_t i = 0; i < COUNT(columns); i++) {
        buf_text(sql, columns[i].sql);
        buf_text(sql, ", ");
    }
    buf_text(sql, TEXT_OF("state") ", origin, rest, last_seen FROM job WHERE id = ?1");
}

static void read_column(sqlite3_stmt *statement, size_t i, struct job_row *row)
{
    void *to = (char *)row + columns[i].offset;
    int at = (int)i;

    switch (columns[i].kind) {
    case COLUMN_TEXT:
        *(struct str *)to = db_text(statement, at);
        break;
    case COLUMN_TIME:
        *(int64_t *)to = db_i64(statement, at, 0);
        break;
    case COLUMN_U32:
        *(uint32_t *)to = db_u32(statement, at);
        break;
    case COLUMN_PARENT:
    case COLUMN_TASKS:
        *(uint32_t *)to = db_u32(statement, at);
        if (*(uint32_t *)to == MODEL_UNKNOWN_U32)
            *(uint32_t *)to = columns[i].kind == COLUMN_TASKS;
        break;
    case COLUMN_U64:
        *(uint64_t *)to = db_u64(statement, at);
        break;
    case COLUMN_DOUBLE:
        *(double *)to = db_double(statement, at);
        break;
    }
}

static void compute_times(struct job_row *row, int64_t last_seen, int64_t now)
{
    const struct job_record *record = &row->record;
    const struct reader_run run = {
        .state = record->state,
        .start_time = record->start_time,
        .end_time = record->end_time,
        .last_seen = last_seen,
        .time_limit_minutes = record->time_limit_minutes,
        .suspended_seconds = record->suspended_seconds,
        .as_of = record->as_of,
    };
    int64_t end = reader_run_end(&run, now);
    int64_t start =
        reader_never_ran(record->start_time, end, record->nodes.n) ? 0 : record->start_time;
    bool is_waiting = record->state.base == JOB_PENDING;
    int64_t begun = start ? start : is_waiting ? now : 0;
    uint64_t suspended = reader_run_suspended(&run, end);

    row->elapsed_seconds = -1;
    if (start && end >= start) {
        uint64_t seconds = (uint64_t)(end - start);

        row->elapsed_seconds = (int64_t)(seconds > suspended ? seconds - suspended : 0);
    }
    row->wait_seconds = -1;
    if (record->eligible_time && begun >= record->eligible_time)
        row->wait_seconds = begun - record->eligible_time;
}

static void compute_efficiency(struct job_row *row)
{
    const struct job_record *record = &row->record;
    bool is_known = job_record_has_ended(record) && row->elapsed_seconds > 0 &&
                    record->cpus != MODEL_UNKNOWN_U32 && record->cpus;

    row->cpu_efficiency =
        is_known ? record->cpu_seconds / ((double)record->cpus * (double)row->elapsed_seconds)
                 : NAN;
}

/* One question for runs. */
struct asking {
    struct store_reader *reader;
    const struct job_filter *filter;
    const struct job_order *order;
    int64_t now;
    struct branches branches;
    sqlite3_stmt **statements; /* of each branch; NULL: it has no more */
    sqlite3_stmt *row;
    struct arena arena; /* of one row */
    struct err *err;
};

static int read_row(struct asking *asking, int64_t id, struct job_row *ret)
{
    sqlite3_stmt *statement = asking->row;
    int64_t last_seen;
    int r;

    memset(ret, 0, sizeof(*ret));
    sqlite3_reset(statement);
    db_bind_i64(statement, 1, id);
    r = reader_step(asking->reader, statement, asking->err);
    if (r <= 0)
        return r < 0 ? r
                     : err_set(asking->err, EBADMSG,
                               "the store %s: an index names a run that is not there: "
                               "restore a copy, or begin a new one",
                               asking->reader->path);
    for (size_t i = 0; i < COUNT(columns); i++)
        read_column(statement, i, ret);
    ret->record.id = ret->key.job_id;
    ret->record.submit_time = ret->key.submit_time;
    job_state_parse(db_text(statement, AT_STATE), &ret->record.state);
    ret->record.origin = db_i64(statement, AT_ORIGIN, RECORD_SEEN) == RECORD_ACCOUNTED
                             ? RECORD_ACCOUNTED
                             : RECORD_SEEN;
    last_seen = db_i64(statement, AT_LAST_SEEN, 0);
    compute_times(ret, last_seen, asking->now);
    ret->last_seen = job_record_has_ended(&ret->record) ? 0 : last_seen;
    compute_efficiency(ret);
    if (!asking->order->wants_extra)
        return 0;
    arena_clear(&asking->arena);
    return rest_decode(db_blob(statement, AT_REST), &asking->arena, &ret->record, asking->err);
}

/* Columns of a branch's statement. */
#define KEY_COLUMNS "id, submit_time, job_id, cluster"
enum { AT_ID, AT_SUBMIT_TIME, AT_JOB_ID, AT_CLUSTER };

static bool comes_before(sqlite3_stmt *a, sqlite3_stmt *b)
{
    for (int at = AT_SUBMIT_TIME; at <= AT_CLUSTER; at++) {
        int64_t of_a = sqlite3_column_int64(a, at), of_b = sqlite3_column_int64(b, at);

        if (of_a != of_b)
            return of_a > of_b;
    }
    return false;
}

static int advance(struct asking *asking, size_t branch)
{
    int r = reader_step(asking->reader, asking->statements[branch], asking->err);

    if (r > 0)
        return 0;
    sqlite3_finalize(asking->statements[branch]);
    asking->statements[branch] = NULL;
    return r;
}

/* The branch that has the next run; n if none has. There are few of them: no heap is worth it. */
static size_t find_next(const struct asking *asking)
{
    size_t best = asking->branches.n;

    for (size_t i = 0; i < asking->branches.n; i++)
        if (asking->statements[i] &&
            (best == asking->branches.n ||
             comes_before(asking->statements[i], asking->statements[best])))
            best = i;
    return best;
}

static int find_end(struct asking *asking, struct branch_end *ret)
{
    const struct run_key *after = &asking->order->after;
    int64_t to = asking->filter->to ? asking->filter->to : INT64_MAX;

    *ret = (struct branch_end){ to, 0, 0 };
    if (!after->submit_time || after->submit_time >= to)
        return 0;
    ret->submit_time = after->submit_time;
    ret->job_id = after->job_id;
    return reader_id(asking->reader, READER_CLUSTERS, after->cluster, &ret->cluster, asking->err);
}

static int begin_branches(struct asking *asking)
{
    const struct branches *branches = &asking->branches;
    struct branch_end end;
    int r = find_end(asking, &end);

    asking->statements = heap_alloc((branches->n + 1) * sizeof(*asking->statements));
    for (size_t i = 0; i < branches->n && r == 0; i++) {
        r = reader_prepare(asking->reader, branches->sql[branches->branch[i].sql].p,
                           &asking->statements[i], asking->err);
        if (r < 0)
            break;
        branches_bind(branches, i, &end, asking->statements[i]);
        r = advance(asking, i);
    }
    return r;
}

static int prepare_row(struct asking *asking)
{
    struct buf sql;
    int r;

    buf_init(&sql, 1 << 14);
    put_row_sql(&sql);
    r = reader_prepare(asking->reader, sql.p, &asking->row, asking->err);
    buf_free(&sql);
    return r;
}

static int give_rows(struct asking *asking, int (*row)(void *ctx, const struct job_row *row),
                     void *ctx)
{
    const struct job_order *order = asking->order;
    int64_t last = 0;
    size_t n = 0;

    while (!order->limit || n < order->limit) {
        size_t next = find_next(asking);
        struct job_row found;
        int64_t id;
        int r;

        if (next == asking->branches.n)
            return 0;
        id = sqlite3_column_int64(asking->statements[next], AT_ID);
        r = advance(asking, next);
        /* The same run through two indexes comes twice in a row. */
        if (r == 0 && id == last)
            continue;
        last = id;
        if (r == 0)
            r = read_row(asking, id, &found);
        if (r < 0)
            return r;
        if (found.elapsed_seconds < asking->filter->min_seconds && asking->filter->min_seconds)
            continue;
        r = row(ctx, &found);
        if (r < 0)
            return r;
        n++;
    }
    return 0;
}

static void end_asking(struct asking *asking)
{
    for (size_t i = 0; i < asking->branches.n && asking->statements; i++)
        sqlite3_finalize(asking->statements[i]);
    free(asking->statements);
    sqlite3_finalize(asking->row);
    branches_free(&asking->branches);
    arena_clear(&asking->arena);
    reader_end(asking->reader);
}

int store_jobs(struct store_reader *reader, const struct job_filter *filter,
               const struct job_order *order, int64_t now,
               int (*row)(void *ctx, const struct job_row *row), void *ctx, struct err *err)
{
    struct asking asking = {
        .reader = reader, .filter = filter, .order = order, .now = now, .err = err
    };
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = branches_make(&asking.branches, reader, filter, KEY_COLUMNS, true, err);
    if (r == 0)
        r = prepare_row(&asking);
    if (r == 0)
        r = begin_branches(&asking);
    if (r == 0)
        r = give_rows(&asking, row, ctx);
    end_asking(&asking);
    return r;
}

/* Binds a run to the first three parameters. */
static int prepare_of_run(struct store_reader *reader, const char *sql, const struct run_key *key,
                          sqlite3_stmt **ret, struct err *err)
{
    int r = reader_prepare(reader, sql, ret, err);

    if (r < 0)
        return r;
    db_bind_text(*ret, 1, key->cluster);
    db_bind_i64(*ret, 2, key->job_id);
    db_bind_i64(*ret, 3, key->submit_time);
    return 0;
}

int store_life(struct store_reader *reader, const struct run_key *key, struct arena *arena,
               struct job_moment **ret, size_t *ret_n, struct err *err)
{
    static const char sql[] =
        "SELECT time, (SELECT value FROM text WHERE id = life.state),"
        " (SELECT value FROM text WHERE id = life.reason) FROM life WHERE job ="
        " (SELECT id FROM job WHERE cluster = (SELECT id FROM cluster WHERE name = ?1)"
        " AND job_id = ?2 AND submit_time = ?3) ORDER BY time, state";
    struct job_moment *moments = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = prepare_of_run(reader, sql, key, &statement, err);
    while (r >= 0 && (r = reader_step(reader, statement, err)) > 0) {
        moments = heap_grow(moments, n, &room, sizeof(*moments));
        moments[n++] = (struct job_moment){
            .time = db_i64(statement, 0, 0),
            .state = arena_str(arena, db_text(statement, 1)),
            .reason = arena_str(arena, db_text(statement, 2)),
        };
    }
    sqlite3_finalize(statement);
    reader_end(reader);
    arena_adopt(arena, moments);
    *ret = moments;
    *ret_n = n;
    return r;
}

/* A final record is of the run that was the last to be submitted when its agent first saw it; an
 * agent's clock may be late. */
#define LATE_SECONDS "300"
#define RUNS         " FROM job WHERE cluster = final.cluster AND job_id = final.job_id AND "

int store_finals(struct store_reader *reader, const struct run_key *key, struct arena *arena,
                 struct final_record **ret, size_t *ret_n, struct err *err)
{
    static const char sql[] =
        "SELECT (SELECT value FROM text WHERE id = final.node) AS node_name, begin_time, end_time,"
        " document FROM final WHERE cluster = (SELECT id FROM cluster WHERE name = ?1)"
        " AND job_id = ?2 AND ?3 = ifnull("
        "(SELECT max(submit_time)" RUNS "submit_time <= final.begin_time),"
        "(SELECT min(submit_time)" RUNS "submit_time <= final.begin_time + " LATE_SECONDS "))"
        " ORDER BY node_name, begin_time";
    struct final_record *finals = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = prepare_of_run(reader, sql, key, &statement, err);
    while (r >= 0 && (r = reader_step(reader, statement, err)) > 0) {
        struct final_record *final;

        finals = heap_grow(finals, n, &room, sizeof(*finals));
        final = &finals[n++];
        *final = (struct final_record){
            .job_id = key->job_id,
            .node = arena_str(arena, db_text(statement, 0)),
            .begin_time = db_i64(statement, 1, 0),
            .end_time = db_i64(statement, 2, 0),
        };
        r = rest_unpack(db_blob(statement, 3), arena, &final->document, err);
    }
    sqlite3_finalize(statement);
    reader_end(reader);
    arena_adopt(arena, finals);
    *ret = finals;
    *ret_n = n;
    return r;
}
