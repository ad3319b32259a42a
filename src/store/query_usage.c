/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What runs used of a time, counted as Slurm's slurmdbd does for sreport (as_mysql_rollup.c), but
 * of each run and not of each hour. */
#include "base/map.h"
#include "base/num.h"
#include "store/branches.h"
#include "store/query.h"
#include "store/reader.h"

#include <stdlib.h>

const struct str usage_key_words[USAGE_KEYS] = {
    [USAGE_CLUSTER] = STR_INIT("cluster"), [USAGE_ACCOUNT] = STR_INIT("account"),
    [USAGE_USER] = STR_INIT("user"),       [USAGE_PARTITION] = STR_INIT("partition"),
    [USAGE_QOS] = STR_INIT("qos"),         [USAGE_GPU_TYPE] = STR_INIT("gpu_type"),
    [USAGE_STATE] = STR_INIT("state"),
};

bool usage_key_find(struct str word, enum usage_key *ret)
{
    for (int i = 0; i < USAGE_KEYS; i++) {
        if (str_eq_nocase(word, usage_key_words[i])) {
            *ret = (enum usage_key)i;
            return true;
        }
    }
    return false;
}

/* The keys of a run come first, in their order. */
#define RUN_COLUMNS                                                                                \
    "cluster, account, user, partition, qos, gpu_types, state, id, start_time, end_time,"          \
    " suspended_seconds, eligible_time, cpus, gpus, billing, node_count, memory_bytes,"            \
    " cpu_seconds, is_counted, node_list, time_limit_minutes, last_seen"
enum {
    AT_ID = USAGE_KEYS,
    AT_START_TIME,
    AT_END_TIME,
    AT_SUSPENDED,
    AT_ELIGIBLE_TIME,
    AT_CPUS,
    AT_GPUS,
    AT_BILLING,
    AT_NODE_COUNT,
    AT_MEMORY,
    AT_CPU_SECONDS,
    AT_IS_COUNTED,
    AT_NODE_LIST,
    AT_TIME_LIMIT,
    AT_LAST_SEEN,
};

/* A text of the store that runs have in common, by its id. */
struct common {
    int64_t id; /* 0: this place is free */
    struct job_state state;
    struct str text;
};

struct adding {
    struct store_reader *reader;
    const struct usage_question *question;
    sqlite3_stmt *runs; /* at a row */
    sqlite3_stmt *last_moment;
    struct map groups; /* by the bytes of the ids: struct usage_row */
    struct map types;  /* GPU types by name: their place is their id here */
    struct common *commons;
    size_t n_commons, n_common_slots;
    struct arena arena;
    struct usage_row *total;
    struct err *err;
};

/* One run, as far as it lies in the time. */
struct part {
    int64_t start, end;
    uint64_t seconds; /* that it held its resources in it */
    bool has_started, has_ended;
};

static void grow_commons(struct adding *adding)
{
    struct common *old = adding->commons;
    size_t n_old = adding->n_common_slots;

    adding->n_common_slots = n_old ? n_old * 2 : 256;
    adding->commons = heap_alloc(adding->n_common_slots * sizeof(*adding->commons));
    for (size_t i = 0; i < n_old; i++) {
        size_t at = (size_t)old[i].id & (adding->n_common_slots - 1);

        while (old[i].id && adding->commons[at].id)
            at = (at + 1) & (adding->n_common_slots - 1);
        if (old[i].id)
            adding->commons[at] = old[i];
    }
    free(old);
}

/* States and lists of GPU types are few: each is read once. */
static int find_common(struct adding *adding, int64_t id, const struct common **ret)
{
    static const struct common none = { .state = { JOB_BASE_UNKNOWN, 0 } };
    struct common *common;
    size_t at;
    int r;

    *ret = &none;
    if (!id)
        return 0;
    if (adding->n_commons * 2 >= adding->n_common_slots)
        grow_commons(adding);
    at = (size_t)id & (adding->n_common_slots - 1);
    while (adding->commons[at].id && adding->commons[at].id != id)
        at = (at + 1) & (adding->n_common_slots - 1);
    common = &adding->commons[at];
    *ret = common;
    if (common->id)
        return 0;
    r = reader_name(adding->reader, READER_TEXTS, id, &adding->arena, &common->text, adding->err);
    common->id = id;
    adding->n_commons++;
    job_state_parse(common->text, &common->state);
    return r;
}

/* When it was last heard of; 0: never. */
static int find_last_moment(struct adding *adding, int64_t id, int64_t *ret)
{
    int r;

    sqlite3_reset(adding->last_moment);
    db_bind_i64(adding->last_moment, 1, id);
    r = reader_step(adding->reader, adding->last_moment, adding->err);
    *ret = r > 0 ? db_i64(adding->last_moment, 0, 0) : 0;
    return r < 0 ? r : 0;
}

static int find_end(struct adding *adding, int64_t start, int64_t *ret)
{
    sqlite3_stmt *run = adding->runs;
    int64_t end_time = db_i64(run, AT_END_TIME, 0);
    const struct common *state;
    int r = 0;

    if (end_time && sqlite3_column_int64(run, AT_IS_COUNTED)) {
        *ret = end_time;
        return 0;
    }
    r = find_common(adding, sqlite3_column_int64(run, USAGE_STATE), &state);
    if (r < 0)
        return r;
    *ret = reader_run_end(
        &(struct reader_run){
            .state = state->state,
            .start_time = start,
            .end_time = end_time,
            .last_seen = db_i64(run, AT_LAST_SEEN, 0),
            .time_limit_minutes = db_u32(run, AT_TIME_LIMIT),
            .suspended_seconds = db_u64(run, AT_SUSPENDED),
        },
        adding->question->now);
    if (*ret)
        return 0;
    r = find_last_moment(adding, sqlite3_column_int64(run, AT_ID), ret);
    if (*ret < start)
        *ret = start;
    return r;
}

static uint64_t scale(uint64_t amount, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((unsigned __int128)amount * part / whole) : 0;
}

/* False if it did not run in it. */
static bool cut_part(const struct adding *adding, int64_t start, int64_t end, struct part *ret)
{
    int64_t from = adding->question->filter.from, to = adding->question->filter.to;
    int64_t begin = start > from ? start : from, until = end < to ? end : to;
    uint64_t suspended = db_u64(adding->runs, AT_SUSPENDED);
    uint64_t length, held;

    if (start >= to || end < start || end < from || (end == from && start < from) ||
        reader_never_ran(start, end,
                         sqlite3_column_type(adding->runs, AT_NODE_LIST) != SQLITE_NULL))
        return false;
    length = (uint64_t)(end - start);
    if (suspended == MODEL_UNKNOWN_U64)
        suspended = 0;
    held = suspended < length ? length - suspended : 0;
    *ret = (struct part){
        .start = start,
        .end = end,
        .seconds = until > begin ? scale(held, (uint64_t)(until - begin), length) : 0,
        .has_started = start >= from,
        .has_ended = sqlite3_column_int64(adding->runs, AT_IS_COUNTED) && end < to,
    };
    return adding->question->filter.min_seconds <= 0 ||
           held >= (uint64_t)adding->question->filter.min_seconds;
}

static uint64_t amount_of(sqlite3_stmt *run, int at)
{
    uint64_t amount = db_u64(run, at);

    return amount == MODEL_UNKNOWN_U64 ? 0 : amount;
}

/* Adds to a sum that stays at its largest rather than to begin anew. */
static void add_held(uint64_t *sum, uint64_t amount, uint64_t seconds)
{
    uint64_t product;

    if (__builtin_mul_overflow(amount, seconds, &product) ||
        __builtin_add_overflow(*sum, product, sum))
        *sum = UINT64_MAX;
}

static void add_use(struct usage_row *row, sqlite3_stmt *run, const struct part *part)
{
    double cpu_seconds = db_double(run, AT_CPU_SECONDS);
    uint64_t suspended = amount_of(run, AT_SUSPENDED), cpus = amount_of(run, AT_CPUS);
    uint64_t length = (uint64_t)(part->end - part->start);

    if (!part->has_ended || !(cpu_seconds >= 0) || !cpus || suspended >= length)
        return;
    row->used_cpu_seconds += cpu_seconds;
    row->of_cpu_seconds += (double)cpus * (double)(length - suspended);
}

static void add_run(struct usage_row *row, sqlite3_stmt *run, const struct part *part,
                    uint64_t gpus)
{
    int64_t eligible_time = db_i64(run, AT_ELIGIBLE_TIME, 0);

    row->jobs++;
    row->started += part->has_started;
    row->ended += part->has_ended;
    add_held(&row->cpu_seconds, amount_of(run, AT_CPUS), part->seconds);
    add_held(&row->gpu_seconds, gpus, part->seconds);
    add_held(&row->billing_seconds, amount_of(run, AT_BILLING), part->seconds);
    add_held(&row->node_seconds, amount_of(run, AT_NODE_COUNT), part->seconds);
    row->memory_byte_seconds += (double)amount_of(run, AT_MEMORY) * (double)part->seconds;
    add_use(row, run, part);
    if (part->has_started && eligible_time && eligible_time <= part->start) {
        row->waited++;
        add_held(&row->wait_seconds, 1, (uint64_t)(part->start - eligible_time));
    }
}

static int find_group(struct adding *adding, const int64_t *ids, struct usage_row **ret)
{
    struct str key = { (const char *)ids, adding->question->n_keys * sizeof(*ids) };
    size_t n = adding->groups.n;
    void **value = map_put(&adding->groups, key);

    if (!*value)
        *value = ARENA_NEW(&adding->arena, struct usage_row);
    *ret = *value;
    if (adding->groups.n > n && adding->groups.n > adding->question->most)
        return err_set(adding->err, EFBIG,
                       "the answer has more than %zu rows: group by less, or ask for fewer jobs",
                       adding->question->most);
    return 0;
}

/* `type` is the id of a GPU type here. */
static int add_to_group(struct adding *adding, const struct part *part, size_t type, uint64_t gpus)
{
    int64_t ids[USAGE_KEYS];
    struct usage_row *row;
    int r;

    for (size_t i = 0; i < adding->question->n_keys; i++) {
        enum usage_key key = adding->question->keys[i];

        ids[i] = key == USAGE_GPU_TYPE ? (int64_t)type : db_i64(adding->runs, (int)key, 0);
    }
    r = find_group(adding, ids, &row);
    if (r == 0)
        add_run(row, adding->runs, part, gpus);
    return r;
}

static bool groups_by_gpu_type(const struct usage_question *question)
{
    for (size_t i = 0; i < question->n_keys; i++)
        if (question->keys[i] == USAGE_GPU_TYPE)
            return true;
    return false;
}

/* "a100", or "a100=2,v100=1". */
static int add_by_type(struct adding *adding, const struct part *part, struct str types)
{
    uint64_t all = amount_of(adding->runs, AT_GPUS);
    int r = 0;

    if (str_find(types, '=') == types.n)
        return add_to_group(adding, part, map_index(&adding->types, types), all);
    for (struct str rest = types; rest.p && r == 0;) {
        struct str count = str_cut(&rest, ','), name = str_cut(&count, '=');
        uint64_t gpus = 0;

        if (count.p && num_get_u64(count, &gpus))
            r = add_to_group(adding, part, map_index(&adding->types, name), gpus);
    }
    return r;
}

static int add_one(struct adding *adding)
{
    int64_t start = db_i64(adding->runs, AT_START_TIME, 0), end;
    const struct common *types;
    struct part part;
    int r = find_end(adding, start, &end);

    if (r < 0 || !cut_part(adding, start, end, &part))
        return r;
    if (adding->total)
        add_run(adding->total, adding->runs, &part, amount_of(adding->runs, AT_GPUS));
    if (!groups_by_gpu_type(adding->question))
        return add_to_group(adding, &part, 0, amount_of(adding->runs, AT_GPUS));
    r = find_common(adding, db_i64(adding->runs, USAGE_GPU_TYPE, 0), &types);
    return r < 0 ? r : add_by_type(adding, &part, types->text);
}

static int add_branch(struct adding *adding)
{
    int r = 0;

    while (r >= 0 && (r = reader_step(adding->reader, adding->runs, adding->err)) > 0)
        r = sqlite3_column_type(adding->runs, AT_START_TIME) == SQLITE_NULL ? 0 : add_one(adding);
    return r;
}

static int add_all(struct adding *adding, const struct branches *branches)
{
    const struct branch_end end = { adding->question->filter.to, 0, 0 };
    sqlite3_stmt *statements[BRANCH_STATEMENTS] = { NULL };
    int r = reader_prepare(adding->reader, "SELECT max(time) FROM life WHERE job = ?1",
                           &adding->last_moment, adding->err);

    for (size_t i = 0; i < BRANCH_STATEMENTS && branches->sql[i].n && r == 0; i++)
        r = reader_prepare(adding->reader, branches->sql[i].p, &statements[i], adding->err);
    for (size_t i = 0; i < branches->n && r == 0; i++) {
        adding->runs = statements[branches->branch[i].sql];
        sqlite3_reset(adding->runs);
        branches_bind(branches, i, &end, adding->runs);
        r = add_branch(adding);
    }
    for (size_t i = 0; i < BRANCH_STATEMENTS; i++)
        sqlite3_finalize(statements[i]);
    return r;
}

static int name_key(struct adding *adding, enum usage_key key, int64_t id, struct arena *arena,
                    struct str *ret)
{
    if (key == USAGE_GPU_TYPE) {
        *ret = arena_str(arena, adding->types.entries[id].key);
        return 0;
    }
    return reader_name(adding->reader, key == USAGE_CLUSTER ? READER_CLUSTERS : READER_TEXTS, id,
                       arena, ret, adding->err);
}

static int name_row(struct adding *adding, const struct map_entry *entry, struct arena *arena,
                    struct usage_row *ret)
{
    int64_t ids[USAGE_KEYS];
    int r = 0;

    memcpy(ids, entry->key.p, entry->key.n);
    *ret = *(const struct usage_row *)entry->value;
    for (size_t i = 0; i < adding->question->n_keys && r == 0; i++)
        r = name_key(adding, adding->question->keys[i], ids[i], arena, &ret->keys[i]);
    return r;
}

static int compare_texts(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

int usage_row_compare(const void *a, const void *b, void *ctx)
{
    const struct usage_row *row_a = a, *row_b = b;
    int order = 0;

    for (size_t i = 0; i < *(const size_t *)ctx && !order; i++)
        order = compare_texts(row_a->keys[i], row_b->keys[i]);
    return order;
}

static int give_rows(struct adding *adding, struct arena *arena, struct usage_row **ret,
                     size_t *ret_n)
{
    size_t n = adding->groups.n, n_keys = adding->question->n_keys;
    struct usage_row *rows = ARENA_ARRAY(arena, struct usage_row, n);
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = name_row(adding, &adding->groups.entries[i], arena, &rows[i]);
    if (r < 0)
        return r;
    qsort_r(rows, n, sizeof(*rows), usage_row_compare, &n_keys);
    *ret = rows;
    *ret_n = n;
    return 0;
}

static int ask(struct adding *adding, struct arena *arena, struct usage_row **ret, size_t *ret_n)
{
    struct branches branches;
    int r = branches_make(&branches, adding->reader, &adding->question->filter, RUN_COLUMNS, false,
                          adding->err);

    map_init(&adding->groups, &adding->arena);
    map_init(&adding->types, &adding->arena);
    if (r == 0)
        r = add_all(adding, &branches);
    if (r == 0)
        r = give_rows(adding, arena, ret, ret_n);
    branches_free(&branches);
    map_free(&adding->groups);
    map_free(&adding->types);
    sqlite3_finalize(adding->last_moment);
    free(adding->commons);
    arena_clear(&adding->arena);
    return r;
}

int store_usage(struct store_reader *reader, const struct usage_question *question,
                struct arena *arena, struct usage_row **ret, size_t *ret_n, struct err *err)
{
    struct adding adding = {
        .reader = reader, .question = question, .total = question->total, .err = err
    };
    int r;

    if (question->filter.from >= question->filter.to)
        return err_set(err, EINVAL, "the time ends before it begins: check from and to");
    r = reader_begin(reader, err);
    if (r < 0)
        return r;
    if (adding.total)
        *adding.total = (struct usage_row){ 0 };
    r = ask(&adding, arena, ret, ret_n);
    reader_end(reader);
    return r;
}
