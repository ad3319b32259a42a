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
    " cpu_seconds, is_counted, node_list, time_limit_minutes, last_seen, as_of"
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
    AT_AS_OF,
};

enum { PAUSES_MAX = 100 };

/* A time in which polls showed a run as suspended. */
struct pause {
    int64_t from, to;
};

/* A text of the store that runs have in common, by its id. */
struct common {
    int64_t id; /* 0: this place is free */
    struct job_state state;
    struct str text;
};

/* A run, read once for all sums. */
struct run {
    int64_t ids[USAGE_KEYS]; /* of its texts; 0: none */
    int64_t start, end, eligible_time;
    uint64_t length, held; /* seconds; without what it was suspended */
    uint64_t suspended;    /* seconds; */
    uint64_t observed;     /* … those of them that polls showed: the sum of the pauses */
    const struct pause *pause;
    size_t n_pauses;
    uint64_t cpus, gpus, billing, nodes;
    double memory_bytes, cpu_seconds;
    bool has_ended;
};

/* … as far as it lies in the time of a sum. */
struct part {
    uint64_t seconds;     /* that it had its resources in it */
    uint64_t cpu_seconds; /* … without what it was suspended: its CPUs were free for other jobs */
    bool has_started, has_ended;
};

/* A sum under way. */
struct adding_sum {
    const struct usage_sum *asked;
    int64_t from;
    struct map groups; /* by the bytes of the ids: struct usage_row */
    bool is_by_gpu_type;
};

struct adding {
    struct store_reader *reader;
    const struct usage_question *question;
    sqlite3_stmt *runs; /* at a row */
    sqlite3_stmt *last_moment, *moments;
    struct pause pauses[PAUSES_MAX]; /* of the run at hand */
    struct adding_sum *sum;
    size_t n_sums;
    struct map types; /* GPU types by name: their place is their id here */
    struct common *commons;
    size_t n_commons, n_common_slots;
    struct arena arena;
    struct err *err;
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

static uint64_t amount_of(sqlite3_stmt *run, int at)
{
    uint64_t amount = db_u64(run, at);

    return amount == MODEL_UNKNOWN_U64 ? 0 : amount;
}

/* Its end, and how long it was suspended until then. */
static int find_end(struct adding *adding, int64_t start, int64_t *ret, uint64_t *ret_suspended)
{
    sqlite3_stmt *run = adding->runs;
    int64_t end_time = db_i64(run, AT_END_TIME, 0);
    const struct common *state;
    struct reader_run times;
    int r = 0;

    *ret_suspended = amount_of(run, AT_SUSPENDED);
    if (end_time && sqlite3_column_int64(run, AT_IS_COUNTED)) {
        *ret = end_time;
        return 0;
    }
    r = find_common(adding, sqlite3_column_int64(run, USAGE_STATE), &state);
    if (r < 0)
        return r;
    times = (struct reader_run){
        .state = state->state,
        .start_time = start,
        .end_time = end_time,
        .last_seen = db_i64(run, AT_LAST_SEEN, 0),
        .time_limit_minutes = db_u32(run, AT_TIME_LIMIT),
        .suspended_seconds = *ret_suspended,
        .as_of = db_i64(run, AT_AS_OF, 0),
    };
    *ret = reader_run_end(&times, adding->question->now);
    *ret_suspended = reader_run_suspended(&times, *ret);
    if (*ret)
        return 0;
    r = find_last_moment(adding, sqlite3_column_int64(run, AT_ID), ret);
    if (*ret < start)
        *ret = start;
    return r;
}

/* Adds [from, to), as far as the run lasted. */
static void add_pause(struct adding *adding, struct run *run, int64_t from, int64_t to)
{
    from = from > run->start ? from : run->start;
    to = to < run->end ? to : run->end;
    if (from >= to || run->n_pauses == PAUSES_MAX)
        return;
    adding->pauses[run->n_pauses++] = (struct pause){ from, to };
    run->observed += (uint64_t)(to - from);
}

/* What polls have not shown of the suspended time came before they showed the first of it. */
static void extend_first_pause(struct adding *adding, struct run *run)
{
    struct pause *first = adding->pauses;
    uint64_t before = run->n_pauses ? (uint64_t)(first->from - run->start) : 0;
    uint64_t missing = run->suspended > run->observed ? run->suspended - run->observed : 0;

    missing = missing < before ? missing : before;
    if (!missing)
        return;
    first->from -= (int64_t)missing;
    run->observed += missing;
}

/* slurmdbd gives only how long a run was suspended; when it was, the polls have shown. */
static int find_pauses(struct adding *adding, struct run *run)
{
    const struct common *state;
    int64_t since = 0;
    int r;

    run->pause = adding->pauses;
    if (!run->suspended)
        return 0;
    sqlite3_reset(adding->moments);
    db_bind_i64(adding->moments, 1, sqlite3_column_int64(adding->runs, AT_ID));
    while ((r = reader_step(adding->reader, adding->moments, adding->err)) > 0) {
        int64_t time = sqlite3_column_int64(adding->moments, 0);

        r = find_common(adding, sqlite3_column_int64(adding->moments, 1), &state);
        if (r < 0)
            return r;
        if (since)
            add_pause(adding, run, since, time);
        since = state->state.base == JOB_SUSPENDED ? time : 0;
    }
    if (r < 0)
        return r;
    if (since)
        add_pause(adding, run, since, run->end);
    extend_first_pause(adding, run);
    return 0;
}

/* False if it is none that ran. */
static bool read_run(const struct adding *adding, int64_t start, int64_t end, uint64_t suspended,
                     struct run *ret)
{
    sqlite3_stmt *runs = adding->runs;
    int64_t least_seconds = adding->question->filter.min_seconds;

    if (end < start ||
        reader_never_ran(start, end, sqlite3_column_type(runs, AT_NODE_LIST) != SQLITE_NULL))
        return false;
    *ret = (struct run){
        .start = start,
        .end = end,
        .eligible_time = db_i64(runs, AT_ELIGIBLE_TIME, 0),
        .length = (uint64_t)(end - start),
        .cpus = amount_of(runs, AT_CPUS),
        .gpus = amount_of(runs, AT_GPUS),
        .billing = amount_of(runs, AT_BILLING),
        .nodes = amount_of(runs, AT_NODE_COUNT),
        .memory_bytes = (double)amount_of(runs, AT_MEMORY),
        .cpu_seconds = db_double(runs, AT_CPU_SECONDS),
        .has_ended = sqlite3_column_int64(runs, AT_IS_COUNTED),
    };
    for (int i = 0; i < USAGE_KEYS; i++)
        ret->ids[i] = sqlite3_column_int64(runs, i);
    ret->suspended = suspended < ret->length ? suspended : ret->length;
    ret->held = ret->length - ret->suspended;
    return least_seconds <= 0 || ret->held >= (uint64_t)least_seconds;
}

static uint64_t scale(uint64_t amount, uint64_t part, uint64_t whole)
{
    if (part == whole)
        return amount;
    return whole ? (uint64_t)((unsigned __int128)amount * part / whole) : 0;
}

/* Seconds of [from, to) in which it was not suspended: the suspended seconds lie in its pauses or,
 * if no poll has shown any, evenly over the run. */
static uint64_t cpu_seconds_in(const struct run *run, int64_t from, int64_t to)
{
    uint64_t length = to > from ? (uint64_t)(to - from) : 0, seen = 0, suspended;

    if (!run->observed)
        return scale(run->held, length, run->length);
    for (size_t i = 0; i < run->n_pauses; i++) {
        int64_t begin = run->pause[i].from > from ? run->pause[i].from : from;
        int64_t end = run->pause[i].to < to ? run->pause[i].to : to;

        seen += end > begin ? (uint64_t)(end - begin) : 0;
    }
    suspended = scale(run->suspended, seen, run->observed);
    return suspended < length ? length - suspended : 0;
}

/* False if it did not run in the time. */
static bool cut_part(const struct run *run, int64_t from, int64_t to, struct part *ret)
{
    int64_t begin = run->start > from ? run->start : from, until = run->end < to ? run->end : to;

    if (run->start >= to || run->end < from || (run->end == from && run->start < from))
        return false;
    *ret = (struct part){
        .seconds = until > begin ? (uint64_t)(until - begin) : 0,
        .cpu_seconds = cpu_seconds_in(run, begin, until),
        .has_started = run->start >= from,
        .has_ended = run->has_ended && run->end < to,
    };
    return true;
}

/* Adds to a sum that stays at its largest rather than to begin anew. */
static void add_held(uint64_t *sum, uint64_t amount, uint64_t seconds)
{
    uint64_t product;

    if (__builtin_mul_overflow(amount, seconds, &product) ||
        __builtin_add_overflow(*sum, product, sum))
        *sum = UINT64_MAX;
}

static void add_use(struct usage_row *row, const struct run *run, const struct part *part)
{
    if (!part->has_ended || !(run->cpu_seconds >= 0) || !run->cpus || !run->held)
        return;
    row->used_cpu_seconds += run->cpu_seconds;
    row->of_cpu_seconds += (double)run->cpus * (double)run->held;
}

static void add_run(struct usage_row *row, const struct run *run, const struct part *part,
                    uint64_t gpus)
{
    row->jobs++;
    row->started += part->has_started;
    row->ended += part->has_ended;
    add_held(&row->cpu_seconds, run->cpus, part->cpu_seconds);
    add_held(&row->gpu_seconds, gpus, part->seconds);
    add_held(&row->billing_seconds, run->billing, part->seconds);
    add_held(&row->node_seconds, run->nodes, part->seconds);
    row->memory_byte_seconds += run->memory_bytes * (double)part->seconds;
    add_use(row, run, part);
    if (part->has_started && run->eligible_time && run->eligible_time <= run->start) {
        row->waited++;
        add_held(&row->wait_seconds, 1, (uint64_t)(run->start - run->eligible_time));
    }
}

static int find_group(struct adding *adding, struct adding_sum *sum, const int64_t *ids,
                      struct usage_row **ret)
{
    struct str key = { (const char *)ids, sum->asked->n_keys * sizeof(*ids) };
    size_t n = sum->groups.n;
    void **value = map_put(&sum->groups, key);

    if (!*value)
        *value = ARENA_NEW(&adding->arena, struct usage_row);
    *ret = *value;
    if (sum->groups.n > n && sum->groups.n > adding->question->most)
        return err_set(adding->err, EFBIG,
                       "the answer has more than %zu rows: group by less, or ask for fewer jobs",
                       adding->question->most);
    return 0;
}

/* What is added: a run, as far as it lies in the time of a sum. */
struct addend {
    struct adding_sum *sum;
    const struct run *run;
    struct part part;
};

/* `type` is the id of a GPU type here. */
static int add_to_group(struct adding *adding, const struct addend *addend, size_t type,
                        uint64_t gpus)
{
    const struct usage_sum *asked = addend->sum->asked;
    int64_t ids[USAGE_KEYS];
    struct usage_row *row;
    int r;

    for (size_t i = 0; i < asked->n_keys; i++)
        ids[i] =
            asked->keys[i] == USAGE_GPU_TYPE ? (int64_t)type : addend->run->ids[asked->keys[i]];
    r = find_group(adding, addend->sum, ids, &row);
    if (r == 0)
        add_run(row, addend->run, &addend->part, gpus);
    return r;
}

static bool groups_by_gpu_type(const struct usage_sum *asked)
{
    for (size_t i = 0; i < asked->n_keys; i++)
        if (asked->keys[i] == USAGE_GPU_TYPE)
            return true;
    return false;
}

/* "a100", or "a100=2,v100=1". */
static int add_by_type(struct adding *adding, const struct addend *addend, struct str types)
{
    int r = 0;

    if (str_find(types, '=') == types.n)
        return add_to_group(adding, addend, map_index(&adding->types, types), addend->run->gpus);
    for (struct str rest = types; rest.p && r == 0;) {
        struct str count = str_cut(&rest, ','), name = str_cut(&count, '=');
        uint64_t gpus = 0;

        if (count.p && num_get_u64(count, &gpus))
            r = add_to_group(adding, addend, map_index(&adding->types, name), gpus);
    }
    return r;
}

static int add_to_sum(struct adding *adding, struct adding_sum *sum, const struct run *run)
{
    struct addend addend = { sum, run, { 0 } };
    const struct common *types;
    int r;

    if (!cut_part(run, sum->from, adding->question->filter.to, &addend.part))
        return 0;
    if (!sum->is_by_gpu_type)
        return add_to_group(adding, &addend, 0, run->gpus);
    r = find_common(adding, run->ids[USAGE_GPU_TYPE], &types);
    return r < 0 ? r : add_by_type(adding, &addend, types->text);
}

static int add_one(struct adding *adding)
{
    int64_t start = db_i64(adding->runs, AT_START_TIME, 0), end;
    uint64_t suspended;
    struct run run;
    int r = find_end(adding, start, &end, &suspended);

    if (r < 0 || !read_run(adding, start, end, suspended, &run))
        return r;
    r = find_pauses(adding, &run);
    for (size_t i = 0; i < adding->n_sums && r == 0; i++)
        r = add_to_sum(adding, &adding->sum[i], &run);
    return r;
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

    if (r == 0)
        r = reader_prepare(adding->reader,
                           "SELECT time, state FROM life WHERE job = ?1 ORDER BY time, state",
                           &adding->moments, adding->err);
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

static int name_row(struct adding *adding, const struct usage_sum *asked,
                    const struct map_entry *entry, struct arena *arena, struct usage_row *ret)
{
    int64_t ids[USAGE_KEYS];
    int r = 0;

    memcpy(ids, entry->key.p, entry->key.n);
    *ret = *(const struct usage_row *)entry->value;
    for (size_t i = 0; i < asked->n_keys && r == 0; i++)
        r = name_key(adding, asked->keys[i], ids[i], arena, &ret->keys[i]);
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

static int give_rows(struct adding *adding, const struct adding_sum *sum, struct arena *arena,
                     struct usage_sum *ret)
{
    size_t n = sum->groups.n, n_keys = ret->n_keys;
    struct usage_row *rows = ARENA_ARRAY(arena, struct usage_row, n);
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++)
        r = name_row(adding, ret, &sum->groups.entries[i], arena, &rows[i]);
    if (r < 0)
        return r;
    qsort_r(rows, n, sizeof(*rows), usage_row_compare, &n_keys);
    ret->row = rows;
    ret->n = n;
    return 0;
}

static void begin_sums(struct adding *adding, const struct usage_sum *asked, size_t n)
{
    adding->sum = ARENA_ARRAY(&adding->arena, struct adding_sum, n);
    adding->n_sums = n;
    for (size_t i = 0; i < n; i++) {
        adding->sum[i].asked = &asked[i];
        adding->sum[i].from = asked[i].from ? asked[i].from : adding->question->filter.from;
        adding->sum[i].is_by_gpu_type = groups_by_gpu_type(&asked[i]);
        map_init(&adding->sum[i].groups, &adding->arena);
    }
}

static int ask(struct adding *adding, struct usage_sum *sums, size_t n, struct arena *arena)
{
    struct branches branches;
    int r = branches_make(&branches, adding->reader, &adding->question->filter, RUN_COLUMNS, false,
                          adding->err);

    begin_sums(adding, sums, n);
    map_init(&adding->types, &adding->arena);
    if (r == 0)
        r = add_all(adding, &branches);
    for (size_t i = 0; i < n && r == 0; i++)
        r = give_rows(adding, &adding->sum[i], arena, &sums[i]);
    branches_free(&branches);
    for (size_t i = 0; i < n; i++)
        map_free(&adding->sum[i].groups);
    map_free(&adding->types);
    sqlite3_finalize(adding->last_moment);
    sqlite3_finalize(adding->moments);
    free(adding->commons);
    arena_clear(&adding->arena);
    return r;
}

int store_usage_sums(struct store_reader *reader, const struct usage_question *question,
                     struct usage_sum *sums, size_t n, struct arena *arena, struct err *err)
{
    struct adding adding = { .reader = reader, .question = question, .err = err };
    int r;

    if (question->filter.from >= question->filter.to)
        return err_set(err, EINVAL, "the time ends before it begins: check from and to");
    r = reader_begin(reader, err);
    if (r < 0)
        return r;
    r = ask(&adding, sums, n, arena);
    reader_end(reader);
    return r;
}

int store_usage(struct store_reader *reader, const struct usage_question *question,
                struct arena *arena, struct usage_row **ret, size_t *ret_n, struct err *err)
{
    struct usage_sum sums[] = { { .keys = question->keys, .n_keys = question->n_keys }, { 0 } };
    int r = store_usage_sums(reader, question, sums, question->total ? 2 : 1, arena, err);

    if (question->total)
        *question->total = r == 0 && sums[1].n ? sums[1].row[0] : (struct usage_row){ 0 };
    if (r < 0)
        return r;
    *ret = sums[0].row;
    *ret_n = sums[0].n;
    return 0;
}
