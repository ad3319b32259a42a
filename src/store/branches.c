/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits a query into branches that each read one index in order. */
#include "store/branches.h"

#include "store/schema.h"

#include <stdlib.h>

enum {
    LONGEST_SQL = 1 << 18,
    MOST_MERGED = 256, /* branches of an ordered question: each is a statement of its own */
};

/* The first parameters of each statement; those of the filter follow. */
enum { AT_KEY = 1, AT_STAY, AT_LOWEST, AT_SUBMIT_TIME, AT_JOB_ID, AT_CLUSTER, AT_FILTER };

/* Which index is read. */
enum driver {
    BY_ID,
    BY_ARRAY,
    BY_HET,
    BY_NODE,
    BY_USER,
    BY_ACCOUNT,
    BY_STAY,
    BY_STATE,
    BY_OPEN,
    BY_TIME,
    BY_VISIBLE, /* by user and by account */
};

static const struct {
    const char *index, *where;
} driver_rows[] = {
    [BY_ID] = { "job_by_id", "job_id = ?1" },
    [BY_ARRAY] = { "job_by_array", "array_job_id = ?1" },
    [BY_HET] = { "job_by_het", "het_job_id = ?1" },
    [BY_NODE] = { "job_by_node_list", "node_list IS NOT NULL" },
    [BY_USER] = { "job_by_user", "user = ?1 AND " SCHEMA_STAY " = ?2" },
    [BY_ACCOUNT] = { "job_by_account", "account = ?1 AND " SCHEMA_STAY " = ?2" },
    [BY_STAY] = { "job_by_stay", SCHEMA_STAY " = ?2" },
    [BY_STATE] = { "job_by_state", "state = ?1 AND " SCHEMA_STAY " = ?2 AND " SCHEMA_HAS_FAILED },
    [BY_OPEN] = { "job_by_stay", SCHEMA_STAY " = ?2 AND is_counted = 0" },
    [BY_TIME] = { "job_run", "1" },
};

/* What is being made. */
struct making {
    struct branches *branches;
    struct store_reader *reader;
    const struct job_filter *filter;
    struct err *err;
    bool is_ordered;
    enum driver driver;
};

static bool bounds_time(const struct job_filter *filter)
{
    return filter->from || filter->by_end;
}

static enum job_base base_of(struct str word)
{
    struct job_state state = JOB_STATE_NONE;

    return job_state_add(&state, word) && !state.flags ? (enum job_base)state.base
                                                       : JOB_BASE_UNKNOWN;
}

/* Those that have not ended are of one class of stay; of those that have, the rare ones. */
static bool states_have_index(const struct words *states)
{
    for (size_t i = 0; i < states->n; i++) {
        enum job_base base = base_of(states->word[i]);

        if (base == JOB_BASE_UNKNOWN || base == JOB_COMPLETED)
            return false;
    }
    return true;
}

/* A run that is of such a user and in such an account comes through both indexes. */
static bool has_few_visible(const struct making *making, size_t most)
{
    size_t n_accounts = making->filter->visible_accounts.n;
    size_t n = making->filter->visible_users.n + n_accounts;

    return n && n <= most && (making->is_ordered || !n_accounts);
}

static enum driver choose_driver(const struct making *making)
{
    const struct job_filter *filter = making->filter;
    size_t most = making->is_ordered ? MOST_MERGED / SCHEMA_STAYS : STORE_WORDS_MAX;

    if (filter->n_ids && making->is_ordered)
        return BY_ID;
    if (filter->users.n && filter->users.n <= most)
        return BY_USER;
    if (filter->nodes.n && making->is_ordered)
        return BY_NODE;
    if (filter->accounts.n && filter->accounts.n <= most)
        return BY_ACCOUNT;
    if (has_few_visible(making, most))
        return BY_VISIBLE;
    if (filter->states.n && states_have_index(&filter->states))
        return BY_STATE;
    return bounds_time(filter) || !making->is_ordered ? BY_STAY : BY_TIME;
}

static void add_branch(struct branches *branches, struct branch values)
{
    branches->branch =
        heap_grow(branches->branch, branches->n, &branches->room, sizeof(*branches->branch));
    branches->branch[branches->n++] = values;
}

static void add_stays(struct making *making, size_t sql, int64_t key)
{
    const struct job_filter *filter = making->filter;

    for (int i = 0; i < SCHEMA_STAYS; i++) {
        struct branch branch = { sql, key, i, INT64_MIN };

        if (i == SCHEMA_STAY_OPEN && filter->by_end)
            continue;
        if (i < SCHEMA_STAYS_BOUND && bounds_time(filter))
            branch.lowest_submit_time =
                (filter->from > 0 ? filter->from : 0) - schema_stay_seconds[i];
        add_branch(making->branches, branch);
    }
}

static int add_stays_of(struct making *making, size_t sql, const struct words *words)
{
    int64_t *ids;
    size_t n;
    int r = where_ids(&making->branches->where, READER_TEXTS, words, &ids, &n);

    for (size_t i = 0; i < n && r == 0; i++)
        add_stays(making, sql, ids[i]);
    return r;
}

static int add_visible(struct making *making)
{
    int r = add_stays_of(making, 0, &making->filter->visible_users);

    return r < 0 ? r : add_stays_of(making, 1, &making->filter->visible_accounts);
}

static void add_ids(struct making *making)
{
    for (size_t i = 0; i < making->filter->n_ids; i++)
        for (size_t sql = 0; sql < BRANCH_STATEMENTS; sql++)
            add_branch(making->branches,
                       (struct branch){ sql, making->filter->ids[i], 0, INT64_MIN });
}

/* Of "NODE_FAIL+REQUEUED" the queue tells while it will come again. */
static bool is_of_open(struct str text)
{
    struct job_record record = { .origin = RECORD_SEEN };

    job_state_parse(text, &record.state);
    return !job_record_has_ended(&record);
}

/* The texts that are this state, alone or with flags behind it. */
static int add_states_of(struct making *making, enum job_base base, bool *has_open)
{
    static const char sql[] =
        "SELECT id, value FROM text WHERE value = ?1 OR (value > ?1 || '+' AND value < ?1 || ',')";
    sqlite3_stmt *statement;
    int r = reader_prepare(making->reader, sql, &statement, making->err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, job_state_words[base]);
    while ((r = reader_step(making->reader, statement, making->err)) > 0) {
        add_stays(making, 0, db_i64(statement, 0, 0));
        *has_open |= is_of_open(db_text(statement, 1));
    }
    sqlite3_finalize(statement);
    return r;
}

static int add_states(struct making *making)
{
    const struct words *states = &making->filter->states;
    bool is_wanted[JOB_BASES] = { false };
    bool has_open;
    int r = 0;

    for (size_t i = 0; i < states->n; i++)
        is_wanted[base_of(states->word[i])] = true;
    has_open = is_wanted[JOB_PENDING] || is_wanted[JOB_RUNNING] || is_wanted[JOB_SUSPENDED];
    for (int base = JOB_COMPLETED; base < JOB_BASES && r == 0; base++)
        if (is_wanted[base])
            r = add_states_of(making, (enum job_base)base, &has_open);
    if (has_open && !making->filter->by_end)
        add_branch(making->branches, (struct branch){ 1, 0, SCHEMA_STAY_OPEN, INT64_MIN });
    return r;
}

static int add_branches(struct making *making)
{
    switch (making->driver) {
    case BY_ID:
        add_ids(making);
        return 0;
    case BY_USER:
        return add_stays_of(making, 0, &making->filter->users);
    case BY_ACCOUNT:
        return add_stays_of(making, 0, &making->filter->accounts);
    case BY_STAY:
        add_stays(making, 0, 0);
        return 0;
    case BY_STATE:
        return add_states(making);
    case BY_VISIBLE:
        return add_visible(making);
    default:
        add_branch(making->branches, (struct branch){ 0, 0, 0, INT64_MIN });
        return 0;
    }
}

static void put_statement(const struct making *making, enum driver driver, const char *columns,
                          struct buf *sql)
{
    buf_printf(sql,
               "SELECT %s FROM job INDEXED BY %s WHERE %s AND submit_time >= ?3"
               " AND (submit_time, job_id, cluster) < (?4, ?5, ?6)",
               columns, driver_rows[driver].index, driver_rows[driver].where);
    buf_put(sql, buf_str(&making->branches->where.text));
    if (making->is_ordered)
        buf_text(sql, " ORDER BY submit_time DESC, job_id DESC, cluster DESC");
}

static void put_statements(struct making *making, const char *columns)
{
    /* Of those that read several indexes. */
    static const struct {
        size_t n;
        enum driver driver[BRANCH_STATEMENTS];
    } of[] = {
        [BY_ID] = { 3, { BY_ID, BY_ARRAY, BY_HET } },
        [BY_STATE] = { 2, { BY_STATE, BY_OPEN } },
        [BY_VISIBLE] = { 2, { BY_USER, BY_ACCOUNT } },
    };
    size_t n = of[making->driver].n;

    for (size_t i = 0; i < n; i++)
        put_statement(making, of[making->driver].driver[i], columns, &making->branches->sql[i]);
    if (!n)
        put_statement(making, making->driver, columns, &making->branches->sql[0]);
}

int branches_make(struct branches *branches, struct store_reader *reader,
                  const struct job_filter *filter, const char *columns, bool is_ordered,
                  struct err *err)
{
    struct making making = { branches, reader, filter, err, is_ordered, BY_TIME };
    int r;

    making.driver = choose_driver(&making);
    *branches = (struct branches){
        .where = { .reader = reader,
                   .filter = filter,
                   .first_parameter = AT_FILTER,
                   .skipped = making.driver == BY_USER      ? &filter->users
                              : making.driver == BY_ACCOUNT ? &filter->accounts
                                                            : NULL,
                   .skips_ids = making.driver == BY_ID,
                   .err = err },
    };
    for (size_t i = 0; i < BRANCH_STATEMENTS; i++)
        buf_init(&branches->sql[i], LONGEST_SQL);
    r = where_make(&branches->where);
    if (r < 0)
        return r;
    put_statements(&making, columns);
    return branches->where.is_empty ? 0 : add_branches(&making);
}

void branches_free(struct branches *branches)
{
    for (size_t i = 0; i < BRANCH_STATEMENTS; i++)
        buf_free(&branches->sql[i]);
    where_free(&branches->where);
    free(branches->branch);
}

void branches_bind(const struct branches *branches, size_t branch, const struct branch_end *end,
                   sqlite3_stmt *statement)
{
    const struct branch *values = &branches->branch[branch];

    /* A text that does not name the first two has them all the same: the others are numbered. */
    db_bind_i64(statement, AT_KEY, values->key);
    db_bind_i64(statement, AT_STAY, values->stay);
    db_bind_i64(statement, AT_LOWEST, values->lowest_submit_time);
    db_bind_i64(statement, AT_SUBMIT_TIME, end->submit_time);
    db_bind_i64(statement, AT_JOB_ID, end->job_id);
    db_bind_i64(statement, AT_CLUSTER, end->cluster);
    where_bind(&branches->where, statement);
}
