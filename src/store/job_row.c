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

/* Which indexes have a column: an UPDATE that names it writes all of these anew, even if nothing of
 * them has changed. OF_NONE are always named. Ends are in what tells the class of a stay. */
enum group {
    OF_NONE,
    OF_PLACE = 1,
    OF_END = 2,
    OF_OWNER = 4,
};
_Static_assert(SQL_CHANGE_JOB + (OF_PLACE | OF_END | OF_OWNER) == SQL_CHANGE_JOB_LAST,
               "a statement for each set of groups");

/* Where a column comes from. */
static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
    enum group group;
} columns[COLUMNS] = {
#define MEMBER(member) offsetof(struct job_record, member)
    [FIRST_SUBMIT_TIME] = { "first_submit_time", OURS, 0, OF_NONE },
    [RESTARTS] = { "restarts", U32, MEMBER(restarts), OF_NONE },
    [ARRAY_JOB_ID] = { "array_job_id", U32_OR_ZERO, MEMBER(array_job_id), OF_OWNER },
    [ARRAY_TASK_ID] = { "array_task_id", U32, MEMBER(array_task_id), OF_NONE },
    [HET_JOB_ID] = { "het_job_id", U32_OR_ZERO, MEMBER(het_job_id), OF_OWNER },
    [HET_OFFSET] = { "het_offset", OURS, 0, OF_NONE },
    [TASKS] = { "tasks", U32, MEMBER(tasks), OF_NONE },
    [USER_ID] = { "user_id", U32, MEMBER(user_id), OF_NONE },
    [USER] = { "user", WORD, MEMBER(user), OF_OWNER },
    [ACCOUNT] = { "account", WORD, MEMBER(account), OF_OWNER },
    [PARTITION] = { "partition", WORD, MEMBER(partition), OF_NONE },
    [QOS] = { "qos", WORD, MEMBER(qos), OF_NONE },
    [NAME] = { "name", TITLE, MEMBER(name), OF_NONE },
    [RESERVATION] = { "reservation", WORD, MEMBER(reservation), OF_NONE },
    [STATE] = { "state", OURS, 0, OF_NONE },
    [REASON] = { "reason", WORD, MEMBER(reason), OF_NONE },
    [NODE_LIST] = { "node_list", LIST, MEMBER(nodes), OF_PLACE },
    [EXIT_CODE] = { "exit_code", U32, MEMBER(exit_code), OF_NONE },
    [EXIT_SIGNAL] = { "exit_signal", U32, MEMBER(exit_signal), OF_NONE },
    [PRIORITY] = { "priority", U64, MEMBER(priority), OF_NONE },
    [ELIGIBLE_TIME] = { "eligible_time", TIME, MEMBER(eligible_time), OF_NONE },
    [START_TIME] = { "start_time", TIME, MEMBER(start_time), OF_NONE },
    [END_TIME] = { "end_time", TIME, MEMBER(end_time), OF_END },
    [SUSPENDED_SECONDS] = { "suspended_seconds", U64, MEMBER(suspended_seconds), OF_NONE },
    [TIME_LIMIT_MINUTES] = { "time_limit_minutes", U32, MEMBER(time_limit_minutes), OF_NONE },
    [CPUS] = { "cpus", U32, MEMBER(cpus), OF_NONE },
    [NODE_COUNT] = { "node_count", U32, MEMBER(node_count), OF_NONE },
    [MEMORY_BYTES] = { "memory_bytes", U64, MEMBER(memory_bytes), OF_NONE },
    [GPUS] = { "gpus", OURS, 0, OF_NONE },
    [GPU_TYPES] = { "gpu_types", OURS, 0, OF_NONE },
    [BILLING] = { "billing", OURS, 0, OF_NONE },
    [CPU_SECONDS] = { "cpu_seconds", SECONDS, MEMBER(cpu_seconds), OF_NONE },
    [USER_SECONDS] = { "user_seconds", SECONDS, MEMBER(user_seconds), OF_NONE },
    [SYSTEM_SECONDS] = { "system_seconds", SECONDS, MEMBER(system_seconds), OF_NONE },
    [MEMORY_PEAK_BYTES] = { "memory_peak_bytes", U64, MEMBER(memory_peak_bytes), OF_NONE },
    [READ_BYTES] = { "read_bytes", U64, MEMBER(read_bytes), OF_NONE },
    [WRITE_BYTES] = { "write_bytes", U64, MEMBER(write_bytes), OF_NONE },
    [ENERGY_JOULES] = { "energy_joules", U64, MEMBER(energy_joules), OF_NONE },
    [AS_OF] = { "as_of", OURS, 0, OF_NONE },
    [ORIGIN] = { "origin", OURS, 0, OF_NONE },
    [IS_COUNTED] = { "is_counted", OURS, 0, OF_END },
    [LAST_SEEN] = { "last_seen", OURS, 0, OF_NONE },
    [IS_WAIT_COUNTED] = { "is_wait_counted", OURS, 0, OF_NONE },
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

static void put_update(struct buf *out, int groups)
{
    buf_text(out, "UPDATE job SET rest = ?5");
    for (size_t i = 0; i < COLUMNS; i++)
        if (!columns[i].group || columns[i].group & groups)
            buf_printf(out, ", %s = ?%zu", columns[i].name, COLUMNS_AT + i);
    buf_text(out, " WHERE id = ?1");
}

void job_columns_sql(enum store_statement which, struct buf *out)
{
    if (which == SQL_ADD_JOB) {
        put_insert(out);
    } else if (which == SQL_READ_JOB) {
        buf_text(out, "SELECT rest");
        put_names(out);
        buf_text(out, " FROM job WHERE id = ?1");
    } else {
        put_update(out, (int)which - SQL_CHANGE_JOB);
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

/* 1 if there is any with that id; *ret_row only if it is this one. */
static int find_newest(struct store *store, int64_t cluster, const struct job_record *record,
                       int64_t *ret_row, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_NEWEST_RUN, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, record->id);
    r = db_step(statement, err);
    if (r > 0 && db_i64(statement, 1, 0) == record->submit_time &&
        db_i64(statement, 2, 0) == cluster)
        *ret_row = db_i64(statement, 0, 0);
    sqlite3_reset(statement);
    return r;
}

static int find_run(struct store *store, int64_t cluster, const struct job_record *record,
                    int64_t *ret_row, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_FIND_RUN, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, record->id);
    db_bind_i64(statement, 2, record->submit_time);
    db_bind_i64(statement, 3, cluster);
    r = db_step(statement, err);
    if (r > 0)
        *ret_row = db_i64(statement, 0, 0);
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int read_row(struct store *store, struct row *row, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_READ_JOB, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, row->id);
    r = db_step(statement, err);
    if (r > 0) {
        row->rest = arena_str(&store->scratch, db_blob(statement, 0));
        for (int i = 0; i < COLUMNS; i++)
            row->cells[i] = cell_of_column(statement, 1 + i);
    }
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

/* Of most jobs that are put, this is the first that is heard, or the newest run is meant: one look
 * at one index tells. */
int job_row_find(struct store *store, int64_t cluster, const struct job_record *record,
                 struct row *ret, struct err *err)
{
    int r = 0, knows_id = find_newest(store, cluster, record, &ret->id, err);

    if (knows_id <= 0)
        return knows_id;
    if (!ret->id)
        r = find_run(store, cluster, record, &ret->id, err);
    if (r == 0 && ret->id)
        r = read_row(store, ret, err);
    return r < 0 ? r : 1;
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

enum { ALL_GROUPS = OF_PLACE | OF_END | OF_OWNER };

static void bind_row(sqlite3_stmt *statement, const struct row *row, int groups)
{
    db_bind_blob(statement, REST_AT, row->rest);
    for (int i = 0; i < COLUMNS; i++)
        if (!columns[i].group || columns[i].group & groups)
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
    bind_row(statement, row, ALL_GROUPS);
    r = db_run(statement, err);
    if (r < 0)
        return r;
    row->id = sqlite3_last_insert_rowid(store->db);
    store->runs += store->runs >= 0;
    store_count_named(store, value_of(row, NAME), 1);
    return 0;
}

static int write_change(struct store *store, const struct row *now, int groups, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, (enum store_statement)(SQL_CHANGE_JOB + groups), &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, now->id);
    bind_row(statement, now, groups);
    return db_run(statement, err);
}

int job_row_change(struct store *store, const struct row *before, const struct row *now,
                   struct err *err)
{
    bool has_changed = !str_eq(now->rest, before->rest);
    int groups = 0;

    for (size_t i = 0; i < COLUMNS; i++) {
        if (!is_changed(now, before, i))
            continue;
        has_changed = true;
        groups |= (int)columns[i].group;
    }
    if (is_changed(now, before, NAME)) {
        store_count_named(store, value_of(before, NAME), -1);
        store_count_named(store, value_of(now, NAME), 1);
    }
    return has_changed ? write_change(store, now, groups, err) : 0;
}
