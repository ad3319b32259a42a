/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the columns of a run come from, and how they are read and written. */
#include "store/job_row.h"

#include "model/tres.h"

#include <math.h>

enum { GPU_TYPES_MAX = 1024 };

enum kind {
    OURS, /* not a member of the record as it is */
    U32,
    U32_OR_ZERO, /* 0: none */
    U64,
    TIME,
    SECONDS,
    WORD,
    TITLE,
    LIST,
};

/* Where a column comes from, and whether an index has it: SQLite writes those anew even if nothing
 * of them has changed. */
static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
    bool is_indexed;
} columns[COLUMNS] = {
#define MEMBER(member) offsetof(struct job_record, member)
    [FIRST_SUBMIT_TIME] = { "first_submit_time", OURS, 0, false },
    [RESTARTS] = { "restarts", U32, MEMBER(restarts), false },
    [ARRAY_JOB_ID] = { "array_job_id", U32_OR_ZERO, MEMBER(array_job_id), true },
    [ARRAY_TASK_ID] = { "array_task_id", U32, MEMBER(array_task_id), false },
    [HET_JOB_ID] = { "het_job_id", U32_OR_ZERO, MEMBER(het_job_id), true },
    [HET_OFFSET] = { "het_offset", OURS, 0, false },
    [TASKS] = { "tasks", U32, MEMBER(tasks), false },
    [USER_ID] = { "user_id", U32, MEMBER(user_id), false },
    [USER] = { "user", WORD, MEMBER(user), true },
    [ACCOUNT] = { "account", WORD, MEMBER(account), true },
    [PARTITION] = { "partition", WORD, MEMBER(partition), false },
    [QOS] = { "qos", WORD, MEMBER(qos), false },
    [NAME] = { "name", TITLE, MEMBER(name), true },
    [RESERVATION] = { "reservation", WORD, MEMBER(reservation), false },
    [STATE] = { "state", OURS, 0, false },
    [REASON] = { "reason", WORD, MEMBER(reason), false },
    [NODE_LIST] = { "node_list", LIST, MEMBER(nodes), true },
    [EXIT_CODE] = { "exit_code", U32, MEMBER(exit_code), false },
    [EXIT_SIGNAL] = { "exit_signal", U32, MEMBER(exit_signal), false },
    [PRIORITY] = { "priority", U64, MEMBER(priority), false },
    [ELIGIBLE_TIME] = { "eligible_time", TIME, MEMBER(eligible_time), false },
    [START_TIME] = { "start_time", TIME, MEMBER(start_time), false },
    [END_TIME] = { "end_time", TIME, MEMBER(end_time), true },
    [SUSPENDED_SECONDS] = { "suspended_seconds", U64, MEMBER(suspended_seconds), false },
    [TIME_LIMIT_MINUTES] = { "time_limit_minutes", U32, MEMBER(time_limit_minutes), false },
    [CPUS] = { "cpus", U32, MEMBER(cpus), false },
    [NODE_COUNT] = { "node_count", U32, MEMBER(node_count), false },
    [MEMORY_BYTES] = { "memory_bytes", U64, MEMBER(memory_bytes), false },
    [GPUS] = { "gpus", OURS, 0, false },
    [GPU_TYPES] = { "gpu_types", OURS, 0, false },
    [BILLING] = { "billing", OURS, 0, false },
    [CPU_SECONDS] = { "cpu_seconds", SECONDS, MEMBER(cpu_seconds), false },
    [USER_SECONDS] = { "user_seconds", SECONDS, MEMBER(user_seconds), false },
    [SYSTEM_SECONDS] = { "system_seconds", SECONDS, MEMBER(system_seconds), false },
    [MEMORY_PEAK_BYTES] = { "memory_peak_bytes", U64, MEMBER(memory_peak_bytes), false },
    [READ_BYTES] = { "read_bytes", U64, MEMBER(read_bytes), false },
    [WRITE_BYTES] = { "write_bytes", U64, MEMBER(write_bytes), false },
    [ENERGY_JOULES] = { "energy_joules", U64, MEMBER(energy_joules), false },
    [AS_OF] = { "as_of", OURS, 0, false },
    [ORIGIN] = { "origin", OURS, 0, false },
    [IS_COUNTED] = { "is_counted", OURS, 0, true },
#undef MEMBER
};

/* Parameters: 1 to 4 are id, cluster, job_id and submit_time, then rest, then the columns. */
enum { REST_AT = 5, COLUMNS_AT = 6 };

static void put_names(struct buf *out)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        buf_text(out, ", ");
        buf_text(out, columns[i].name);
    }
}

static void put_insert(struct buf *out)
{
    buf_text(out, "INSERT INTO job(id, cluster, job_id, submit_time, rest");
    put_names(out);
    buf_text(out, ") VALUES(?1, ?2, ?3, ?4, ?5");
    for (size_t i = 0; i < COLUMNS; i++)
        buf_printf(out, ", ?%zu", COLUMNS_AT + i);
    buf_text(out, ")");
}

static void put_update(struct buf *out, bool with_indexed)
{
    buf_text(out, "UPDATE job SET rest = ?5");
    for (size_t i = 0; i < COLUMNS; i++)
        if (with_indexed || !columns[i].is_indexed)
            buf_printf(out, ", %s = ?%zu", columns[i].name, COLUMNS_AT + i);
    buf_text(out, " WHERE id = ?1");
}

void job_columns_sql(enum store_statement which, struct buf *out)
{
    if (which == SQL_ADD_JOB) {
        put_insert(out);
    } else if (which == SQL_FIND_JOB) {
        buf_text(out, "SELECT id, rest");
        put_names(out);
        buf_text(out, " FROM job WHERE cluster = ?2 AND job_id = ?3 AND submit_time = ?4");
    } else {
        put_update(out, which == SQL_CHANGE_JOB);
    }
}

static int read_member(struct store *store, enum kind kind, const void *member, struct cell *ret,
                       struct err *err)
{
    static const enum text_use uses[] = {
        [WORD] = TEXT_WORD, [TITLE] = TEXT_NAME, [LIST] = TEXT_LIST
    };
    uint32_t u32 = kind == U32 || kind == U32_OR_ZERO ? *(const uint32_t *)member : 0;
    int64_t id;
    int r;

    switch (kind) {
    case U32:
        *ret = number_if(u32 != MODEL_UNKNOWN_U32, u32);
        return 0;
    case U32_OR_ZERO:
        *ret = number_if(u32 && u32 != MODEL_UNKNOWN_U32, u32);
        return 0;
    case U64:
        *ret = number_if(*(const uint64_t *)member <= INT64_MAX, *(const int64_t *)member);
        return 0;
    case TIME:
        *ret = number_if(*(const int64_t *)member > 0, *(const int64_t *)member);
        return 0;
    case SECONDS:
        if (isfinite(*(const double *)member))
            *ret = (struct cell){ .is = CELL_REAL, .real = *(const double *)member };
        return 0;
    case WORD:
    case TITLE:
    case LIST:
        r = store_text(store, *(const struct str *)member, uses[kind], &id, err);
        *ret = text_cell(id);
        return r;
    case OURS:
        return 0;
    }
    return 0;
}

static int read_state(struct store *store, struct job_state state, struct cell *ret,
                      struct err *err)
{
    struct buf *text = &store->plain;
    int64_t id;
    int r;

    if (state.base == JOB_BASE_UNKNOWN && !state.flags)
        return 0;
    buf_reset(text);
    job_state_put(text, state);
    r = store_text(store, buf_str(text), TEXT_WORD, &id, err);
    *ret = text_cell(id);
    return r;
}

/* What the text of TRES tells. */
static int read_tres(struct store *store, struct str text, struct row *row, struct err *err)
{
    char types[GPU_TYPES_MAX];
    struct tres tres;
    int64_t id = 0;
    int r = 0;

    if (!text.n)
        return 0;
    text = db_fit(text, REST_VALUE_MAX);
    tres_parse(text, &tres);
    row->cells[GPUS] = number_if(tres.gpus <= INT64_MAX, (int64_t)tres.gpus);
    row->cells[BILLING] = number_if(tres.billing <= INT64_MAX, (int64_t)tres.billing);
    if (tres.gpus != TRES_UNKNOWN) {
        struct str named = { types, tres_gpu_types(text, types, sizeof(types)) };

        r = store_text(store, named, TEXT_WORD, &id, err);
    }
    row->cells[GPU_TYPES] = text_cell(id);
    return r;
}

/* Slurm tells when it expects a job to start or end, in the same places. */
static void drop_expected_times(const struct job_record *record, struct row *row)
{
    if (record->state.base == JOB_PENDING)
        row->cells[START_TIME] = number_if(false, 0);
    if (!job_record_has_ended(record))
        row->cells[END_TIME] = number_if(false, 0);
}

int job_row_of_record(struct store *store, const struct job_record *record, struct row *row,
                      struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < COLUMNS && r == 0; i++)
        r = read_member(store, columns[i].kind, (const char *)record + columns[i].offset,
                        &row->cells[i], err);
    if (r == 0)
        r = read_state(store, record->state, &row->cells[STATE], err);
    if (r == 0)
        r = read_tres(store, record->tres, row, err);
    row->cells[HET_OFFSET] = number_if(
        is_known(row, HET_JOB_ID) && record->het_offset != MODEL_UNKNOWN_U32, record->het_offset);
    row->cells[FIRST_SUBMIT_TIME] = number(record->submit_time);
    row->cells[AS_OF] = number(record->as_of);
    row->cells[ORIGIN] = number(record->origin);
    row->cells[IS_COUNTED] = number(job_record_has_ended(record));
    drop_expected_times(record, row);
    return r;
}

static struct cell cell_of_column(sqlite3_stmt *statement, int at)
{
    switch (sqlite3_column_type(statement, at)) {
    case SQLITE_INTEGER:
        return number(sqlite3_column_int64(statement, at));
    case SQLITE_FLOAT:
        return (struct cell){ .is = CELL_REAL, .real = sqlite3_column_double(statement, at) };
    default:
        return number_if(false, 0);
    }
}

/* Of most jobs that are put this is the first that is heard: one look at one index tells. */
int job_row_has_id(struct store *store, uint32_t job_id, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_HAS_JOB_ID, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, job_id);
    r = db_step(statement, err);
    sqlite3_reset(statement);
    return r;
}

int job_row_find(struct store *store, int64_t cluster, const struct job_record *record,
                 struct row *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_FIND_JOB, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 2, cluster);
    db_bind_i64(statement, 3, record->id);
    db_bind_i64(statement, 4, record->submit_time);
    r = db_step(statement, err);
    if (r > 0) {
        ret->id = db_i64(statement, 0, 0);
        ret->rest = arena_str(&store->scratch, db_blob(statement, 1));
        for (int i = 0; i < COLUMNS; i++)
            ret->cells[i] = cell_of_column(statement, 2 + i);
    }
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static void bind_cell(sqlite3_stmt *statement, int at, struct cell cell)
{
    if (cell.is == CELL_NUMBER)
        sqlite3_bind_int64(statement, at, cell.number);
    else if (cell.is == CELL_REAL)
        sqlite3_bind_double(statement, at, cell.real);
    else
        sqlite3_bind_null(statement, at);
}

static void bind_row(sqlite3_stmt *statement, const struct row *row, bool with_indexed)
{
    db_bind_blob(statement, REST_AT, row->rest);
    for (int i = 0; i < COLUMNS; i++)
        if (with_indexed || !columns[i].is_indexed)
            bind_cell(statement, COLUMNS_AT + i, row->cells[i]);
}

int job_row_add(struct store *store, int64_t cluster, const struct job_record *record,
                struct row *row, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_ADD_JOB, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 2, cluster);
    db_bind_i64(statement, 3, record->id);
    db_bind_i64(statement, 4, record->submit_time);
    bind_row(statement, row, true);
    r = db_run(statement, err);
    if (r < 0)
        return r;
    row->id = sqlite3_last_insert_rowid(store->db);
    store->runs += store->runs >= 0;
    return 0;
}

int job_row_change(struct store *store, const struct row *before, const struct row *now,
                   struct err *err)
{
    bool is_indexed = false, has_changed = !str_eq(now->rest, before->rest);
    sqlite3_stmt *statement;
    int r;

    for (size_t i = 0; i < COLUMNS; i++) {
        if (!is_changed(now, before, i))
            continue;
        has_changed = true;
        is_indexed |= columns[i].is_indexed;
    }
    if (!has_changed)
        return 0;
    r = store_use(store, is_indexed ? SQL_CHANGE_JOB : SQL_CHANGE_JOB_STATE, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, now->id);
    bind_row(statement, now, is_indexed);
    return db_run(statement, err);
}
