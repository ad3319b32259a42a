/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to stores that the writing side has made. Most answers are held against a plain look at
 * every run. */
#include "store/branches.h"
#include "store/query.h"
#include "store_fixture.h"

#include <math.h>
#include <sys/wait.h>

enum { RUNS = 600, DAY = 86400, MOST = 2 * RUNS };
static const int64_t first_submit = 1790000000, now = 1790000000 + 100 * (int64_t)DAY;

static struct store_reader *open_reader(void)
{
    struct store_reader *reader = NULL;

    OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
    return reader;
}

/* A made run, with all that can be asked for. */
struct made {
    const char *cluster, *user, *account, *partition, *qos, *name, *state, *nodes, *tres;
    uint32_t id, array_job_id, array_task_id, het_job_id, het_offset, cpus;
    int64_t submit_time, eligible_time, start_time, end_time;
    uint64_t suspended;
    double cpu_seconds;
};

static uint64_t noise(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static const char *one_of(uint64_t *seed, const char *const *words, size_t n)
{
    return words[noise(seed) % n];
}

#define ONE_OF(seed, ...)                                                                          \
    one_of(seed, (const char *const[]){ __VA_ARGS__ },                                             \
           sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* Lengths of every order, from none to months. */
static int64_t some_seconds(uint64_t *seed)
{
    return (int64_t)(noise(seed) % (UINT64_C(1) << noise(seed) % 23));
}

static struct made make_run(uint64_t *seed, uint32_t id)
{
    struct made made = {
        .cluster = ONE_OF(seed, "alpha", "beta"),
        .user = ONE_OF(seed, "alice", "bob", "carol", "dave"),
        .account = ONE_OF(seed, "physics", "chemistry", "biology"),
        .partition = ONE_OF(seed, "long", "short", "short,long"),
        .qos = ONE_OF(seed, "normal", "high"),
        .name = ONE_OF(seed, "train", "a'b\"c,\n%_", "eval"),
        .state = ONE_OF(seed, "COMPLETED", "FAILED", "RUNNING", "RUNNING+COMPLETING", "PENDING",
                        "CANCELLED", "TIMEOUT", "SUSPENDED", "NODE_FAIL"),
        .nodes = ONE_OF(seed, "n1", "n2", "n[1-3]", "n[10-12]", "m[1-2]"),
        .tres = ONE_OF(seed, "billing=7,cpu=4,node=1", "cpu=4,gres/gpu:a100=2,gres/gpu=2,node=2",
                       "billing=9,cpu=4,gres/gpu:a100=2,gres/gpu:v100=1,gres/gpu=3"),
        .id = id,
        .cpus = 1 + (uint32_t)(noise(seed) % 8),
        .cpu_seconds = NAN,
    };

    /* Some share a second. */
    made.submit_time = first_submit + (int64_t)(noise(seed) % 200) * DAY / 4;
    made.eligible_time = made.submit_time + 5;
    if (id % 3 == 0) {
        made.array_job_id = id / 30 * 30 + 1;
        made.array_task_id = id % 30;
    } else if (id % 7 == 0) {
        made.het_job_id = id / 7 * 7;
        made.het_offset = 1;
    }
    if (strcmp(made.state, "PENDING") == 0)
        return made;
    made.start_time = made.eligible_time + some_seconds(seed);
    if (strncmp(made.state, "RUNNING", 7) == 0 || strcmp(made.state, "SUSPENDED") == 0)
        return made;
    made.end_time = made.start_time + some_seconds(seed);
    made.suspended = noise(seed) % 4 == 0 ? 3 : 0;
    made.cpu_seconds = noise(seed) % 5 ? (double)(noise(seed) % 4000000) : NAN;
    return made;
}

static void put_made(const struct made *made)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = made->id;
    record.submit_time = made->submit_time;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = now;
    record.array_job_id = made->array_job_id;
    if (made->array_job_id)
        record.array_task_id = made->array_task_id;
    record.het_job_id = made->het_job_id;
    record.het_offset = made->het_offset;
    job_state_parse(str_of(made->state), &record.state);
    record.user = str_of(made->user);
    record.account = str_of(made->account);
    record.partition = str_of(made->partition);
    record.qos = str_of(made->qos);
    record.name = str_of(made->name);
    record.tres = str_of(made->tres);
    record.cpus = made->cpus;
    record.node_count = 1;
    record.memory_bytes = 1000;
    record.eligible_time = made->eligible_time;
    record.start_time = made->start_time;
    record.end_time = made->end_time;
    if (made->start_time)
        record.nodes = str_of(made->nodes);
    if (made->suspended)
        record.suspended_seconds = made->suspended;
    record.cpu_seconds = made->cpu_seconds;
    OK(store_put_job(fixture.store, str_of(made->cluster), &record, &fixture.err));
}

/* A store with many runs, and the runs. */
struct world {
    struct made runs[RUNS];
    struct store_reader *reader;
};

static struct world *world;

static void make_world(void)
{
    uint64_t seed = 7;

    world = heap_alloc(sizeof(*world));
    fixture_begin();
    fixture_open();
    OK(store_begin(fixture.store, &fixture.err));
    for (uint32_t i = 0; i < RUNS; i++) {
        world->runs[i] = make_run(&seed, 100 + i);
        put_made(&world->runs[i]);
    }
    OK(store_commit(fixture.store, &fixture.err));
    world->reader = open_reader();
}

static void end_world(void)
{
    store_reader_close(world->reader);
    fixture_end();
    free(world);
}

PROGRAM_FIXTURE(make_world, end_world)

/* What a question gave: ids are told apart by the cluster's first letter. */
struct found {
    size_t n;
    struct {
        char cluster;
        uint32_t id;
        int64_t submit_time;
    } runs[MOST];
    size_t stop_at; /* 0: never */
};

static int find(void *ctx, const struct job_row *row)
{
    struct found *found = ctx;

    assert_true(found->n < MOST);
    found->runs[found->n].cluster = row->key.cluster.p[0];
    found->runs[found->n].id = row->key.job_id;
    found->runs[found->n].submit_time = row->key.submit_time;
    found->n++;
    return found->stop_at && found->n == found->stop_at ? -ECANCELED : 0;
}

/* All pages of it, one after the other. */
static struct found *ask_pages(const struct job_filter *filter, size_t limit)
{
    struct found *found = heap_alloc(sizeof(*found));
    struct job_order order = { .limit = limit };
    size_t before;

    do {
        before = found->n;
        OK(store_jobs(world->reader, filter, &order, now, find, found, &fixture.err));
        if (found->n)
            order.after = (struct run_key){
                found->runs[found->n - 1].submit_time,
                found->runs[found->n - 1].id,
                found->runs[found->n - 1].cluster == 'a' ? STR("alpha") : STR("beta"),
            };
    } while (limit && found->n > before);
    return found;
}

static struct job_filter everything(void)
{
    struct job_filter filter;

    job_filter_clear(&filter);
    return filter;
}

/* Of a table, where what is not said is 0. */
static struct job_filter complete(struct job_filter filter)
{
    if (!filter.array_task_id)
        filter.array_task_id = MODEL_UNKNOWN_U32;
    if (!filter.het_offset)
        filter.het_offset = MODEL_UNKNOWN_U32;
    if (filter.efficiency_below == 0)
        filter.efficiency_below = NAN;
    if (filter.efficiency_above == 0)
        filter.efficiency_above = NAN;
    return filter;
}

static bool is_word(const struct words *words, const char *text)
{
    for (size_t i = 0; i < words->n; i++)
        if (str_eq(words->word[i], str_of(text)))
            return true;
    return !words->n;
}

/* Whether any part of the text, cut at the separator, begins with a word and ends or has an end. */
static bool has_word(const struct words *words, struct str text, char separator)
{
    for (struct str rest = text; rest.p;) {
        struct str part = str_cut(&rest, separator);

        for (size_t i = 0; i < words->n; i++)
            if (str_eq(part, words->word[i]))
                return true;
    }
    return !words->n;
}

static bool has_ended(const struct made *made)
{
    return made->end_time != 0;
}

/* The lists of the made runs, written out. */
static bool had_node(const struct made *made, struct str node)
{
    static const struct {
        const char *list, *hosts;
    } lists[] = { { "n1", "n1" },
                  { "n2", "n2" },
                  { "n[1-3]", "n1,n2,n3" },
                  { "n[10-12]", "n10,n11,n12" },
                  { "m[1-2]", "m1,m2" } };

    for (size_t i = 0; i < COUNT(lists) && made->start_time; i++)
        if (strcmp(lists[i].list, made->nodes) == 0)
            return has_word(&(struct words){ &node, 1 }, str_of(lists[i].hosts), ',');
    return false;
}

static bool passes_ids(const struct made *made, const struct job_filter *filter)
{
    for (size_t i = 0; i < filter->n_ids; i++)
        if (made->id == filter->ids[i] || made->array_job_id == filter->ids[i] ||
            made->het_job_id == filter->ids[i])
            return (filter->array_task_id == MODEL_UNKNOWN_U32 ||
                    (made->array_job_id && made->array_task_id == filter->array_task_id)) &&
                   (filter->het_offset == MODEL_UNKNOWN_U32 ||
                    (made->het_job_id && made->het_offset == filter->het_offset));
    return !filter->n_ids;
}

static bool passes_times(const struct made *made, const struct job_filter *filter)
{
    int64_t to = filter->to ? filter->to : INT64_MAX;

    if (filter->by_end)
        return has_ended(made) && made->end_time >= filter->from && made->end_time < to;
    return made->submit_time < to && (!has_ended(made) || made->end_time >= filter->from);
}

static bool passes_efficiency(const struct made *made, const struct job_filter *filter)
{
    double held =
        (double)made->cpus * (double)(made->end_time - made->start_time - (int64_t)made->suspended);
    double efficiency = has_ended(made) && held > 0 ? made->cpu_seconds / held : NAN;

    return (isnan(filter->efficiency_below) || efficiency < filter->efficiency_below) &&
           (isnan(filter->efficiency_above) || efficiency > filter->efficiency_above);
}

static bool passes_gpu_type(const struct made *made, const struct words *types)
{
    for (size_t i = 0; i < types->n; i++)
        if (str_find_str(str_of(made->tres), types->word[i]) < strlen(made->tres))
            return true;
    return !types->n;
}

/* A plain look at a run; nodes are single ones here. */
static bool passes(const struct made *made, const struct job_filter *filter)
{
    bool has_node = !filter->nodes.n;

    for (size_t i = 0; i < filter->nodes.n; i++)
        has_node |= had_node(made, filter->nodes.word[i]);
    return is_word(&filter->clusters, made->cluster) && is_word(&filter->users, made->user) &&
           is_word(&filter->accounts, made->account) && is_word(&filter->qos, made->qos) &&
           is_word(&filter->names, made->name) &&
           has_word(&filter->partitions, str_of(made->partition), ',') &&
           has_word(&filter->states, str_of(made->state), '+') &&
           passes_gpu_type(made, &filter->gpu_types) && passes_ids(made, filter) &&
           passes_times(made, filter) && passes_efficiency(made, filter) && has_node;
}

static void check_order(const struct found *found)
{
    for (size_t i = 1; i < found->n; i++) {
        int64_t a = found->runs[i - 1].submit_time, b = found->runs[i].submit_time;

        assert_true(a > b || (a == b && found->runs[i - 1].id > found->runs[i].id));
    }
}

static void check_filter(const char *what, const struct job_filter *filter)
{
    static const size_t limits[] = { 0, 31 };
    size_t expected = 0;

    for (size_t i = 0; i < RUNS; i++)
        expected += passes(&world->runs[i], filter);
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct found *found = ask_pages(filter, limits[i]);

        if (found->n != expected)
            fail_msg("%s, by %zu: got %zu runs, expected %zu", what, limits[i], found->n, expected);
        check_order(found);
        for (size_t k = 0; k < found->n; k++)
            assert_true(passes(&world->runs[found->runs[k].id - 100], filter));
        free(found);
    }
    if (expected == 0 && !filter->n_ids)
        fail_msg("%s: the test asks for nothing", what);
}

#define WORDS(...)                                                                                 \
    ((struct words){ (const struct str[]){ __VA_ARGS__ },                                          \
                     sizeof((const struct str[]){ __VA_ARGS__ }) / sizeof(struct str) })

TEST(every_filter_gives_what_a_look_at_all_runs_gives)
{
    static const uint32_t of_array[] = { 121 }, several[] = { 121, 140, 141, 121, 9999999 };
    const struct {
        const char *what;
        struct job_filter filter;
    } rows[] = {
#define FILTER(...)                                                                                \
    {                                                                                              \
#__VA_ARGS__,                                                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
        FILTER(.min_gpus = 0),
        FILTER(.clusters = WORDS(STR("beta"))),
        FILTER(.users = WORDS(STR("bob"))),
        FILTER(.users = WORDS(STR("bob"), STR("alice"), STR("nobody"), STR("bob"))),
        FILTER(.users = WORDS(STR("bob")), .accounts = WORDS(STR("physics"), STR("biology"))),
        FILTER(.accounts = WORDS(STR("chemistry"))),
        FILTER(.accounts = WORDS(STR("chemistry")), .from = 1790000000 + 10 * DAY),
        FILTER(.partitions = WORDS(STR("long"))),
        FILTER(.partitions = WORDS(STR("long"), STR("short"))),
        FILTER(.qos = WORDS(STR("high")), .names = WORDS(STR("a'b\"c,\n%_"))),
        FILTER(.states = WORDS(STR("RUNNING"))),
        FILTER(.states = WORDS(STR("COMPLETING"))),
        FILTER(.states = WORDS(STR("FAILED"), STR("NODE_FAIL"))),
        FILTER(.states = WORDS(STR("FAILED"), STR("PENDING"), STR("SUSPENDED"))),
        FILTER(.states = WORDS(STR("FAILED"), STR("FAILED")), .from = 1790000000 + 20 * DAY,
               .to = 1790000000 + 21 * DAY),
        FILTER(.states = WORDS(STR("CANCELLED")), .by_end = true, .from = 1790000000 + 20 * DAY,
               .to = 1790000000 + 40 * DAY),
        FILTER(.states = WORDS(STR("COMPLETED"), STR("RUNNING"))),
        FILTER(.nodes = WORDS(STR("n2"))),
        FILTER(.nodes = WORDS(STR("n3"), STR("m1"), STR("n2"))),
        FILTER(.nodes = WORDS(STR("n1")), .users = WORDS(STR("carol"))),
        FILTER(.nodes = WORDS(STR("n1")), .from = 1790000000 + 10 * DAY,
               .to = 1790000000 + 12 * DAY),
        FILTER(.gpu_types = WORDS(STR("a100"))),
        FILTER(.gpu_types = WORDS(STR("v100"))),
        FILTER(.ids = of_array, .n_ids = 1),
        FILTER(.ids = of_array, .n_ids = 1, .array_task_id = 3),
        FILTER(.ids = (const uint32_t[]){ 140 }, .n_ids = 1, .het_offset = 1),
        FILTER(.ids = several, .n_ids = COUNT(several)),
        FILTER(.ids = several, .n_ids = COUNT(several), .users = WORDS(STR("bob"))),
        FILTER(.from = 1790000000 + 20 * DAY),
        FILTER(.to = 1790000000 + 20 * DAY),
        FILTER(.from = 1790000000 + 20 * DAY, .to = 1790000000 + 21 * DAY),
        FILTER(.from = 1790000000 + 20 * DAY, .to = 1790000000 + 21 * DAY,
               .users = WORDS(STR("dave"))),
        FILTER(.from = 1790000000 + 20 * DAY, .to = 1790000000 + 22 * DAY, .by_end = true),
        FILTER(.from = 1790000000 + 20 * DAY, .by_end = true),
        FILTER(.to = 1790000000 + 20 * DAY, .by_end = true),
        FILTER(.efficiency_below = 0.5),
        FILTER(.efficiency_above = 0.5, .efficiency_below = 2),
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_filter filter = complete(rows[i].filter);

        check_filter(rows[i].what, &filter);
    }
}

TEST(a_filter_takes_host_lists_short_states_and_amounts)
{
    struct job_filter filter = everything(), plain = everything();
    struct found *found, *same;

    filter.nodes = WORDS(STR("n[2-3],m1"));
    plain.nodes = WORDS(STR("n2"), STR("n3"), STR("m1"));
    found = ask_pages(&filter, 0);
    same = ask_pages(&plain, 0);
    assert_int_equal(found->n, same->n);
    free(found);
    free(same);
    filter = plain = everything();
    filter.states = WORDS(STR("r"), STR("to"));
    plain.states = WORDS(STR("RUNNING"), STR("TIMEOUT"));
    found = ask_pages(&filter, 0);
    same = ask_pages(&plain, 0);
    assert_true(found->n > 0);
    assert_int_equal(found->n, same->n);
    free(found);
    free(same);
    filter = everything();
    filter.min_gpus = 3;
    filter.min_cpus = 5;
    filter.min_seconds = 1000;
    found = ask_pages(&filter, 0);
    assert_true(found->n > 0);
    for (size_t i = 0; i < found->n; i++) {
        const struct made *made = &world->runs[found->runs[i].id - 100];

        assert_true(made->cpus >= 5 && made->start_time);
        assert_true(!has_ended(made) || made->end_time - made->start_time >= 1000);
        assert_contains(made->tres, "gres/gpu=3");
    }
    free(found);
}

TEST(a_filter_that_cannot_be_is_refused)
{
    struct str *many = heap_array(STORE_WORDS_MAX + 1, sizeof(*many));
    struct job_filter filter = everything();
    struct found *found = heap_alloc(sizeof(*found));
    struct err err = { 0 };

    for (size_t i = 0; i <= STORE_WORDS_MAX; i++)
        many[i] = STR("x");
    filter.users = (struct words){ many, STORE_WORDS_MAX + 1 };
    assert_int_equal(
        store_jobs(world->reader, &filter, &(struct job_order){ 0 }, now, find, found, &err),
        -E2BIG);
    filter = everything();
    filter.nodes = WORDS(STR("n[1-"));
    assert_int_equal(
        store_jobs(world->reader, &filter, &(struct job_order){ 0 }, now, find, found, &err),
        -EBADMSG);
    filter.nodes = WORDS(STR("n[1-9999999]"));
    assert_int_equal(
        store_jobs(world->reader, &filter, &(struct job_order){ 0 }, now, find, found, &err),
        -EFBIG);
    assert_int_equal(found->n, 0);
    free(found);
    free(many);
}

TEST(who_is_told_may_end_it)
{
    struct job_filter filter = everything();
    struct found *found = heap_alloc(sizeof(*found));
    struct err err = { 0 };

    found->stop_at = 3;
    assert_int_equal(
        store_jobs(world->reader, &filter, &(struct job_order){ 0 }, now, find, found, &err),
        -ECANCELED);
    assert_int_equal(found->n, 3);
    free(found);
}

/* Every step of how SQLite would look for it. */
static void check_plan(const char *what, const struct job_filter *filter, bool may_sort)
{
    struct branches branches;
    struct err err = { 0 };

    OK(branches_make(&branches, world->reader, filter, "id, submit_time, job_id, cluster", true,
                     &err));
    assert_true(branches.n > 0);
    for (size_t i = 0; i < BRANCH_STATEMENTS && branches.sql[i].n; i++) {
        char sql[1 << 15];
        sqlite3_stmt *plan;

        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", branches.sql[i].p);
        assert_int_equal(sqlite3_prepare_v2(world->reader->db, sql, -1, &plan, NULL), SQLITE_OK);
        while (sqlite3_step(plan) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(plan, 3);

            if (strstr(step, "SCAN") || (strstr(step, "TEMP B-TREE") && !may_sort))
                fail_msg("%s: %s", what, step);
        }
        sqlite3_finalize(plan);
    }
    branches_free(&branches);
}

TEST(no_question_scans_the_table_and_only_that_for_nodes_sorts)
{
    static const uint32_t ids[] = { 121, 140 };
    const struct {
        const char *what;
        struct job_filter filter;
        bool may_sort;
    } rows[] = {
#define PLAN(sorts, ...) { #__VA_ARGS__, { __VA_ARGS__ }, sorts }
        PLAN(false, .min_gpus = 0),
        PLAN(false, .users = WORDS(STR("bob"))),
        PLAN(false, .users = WORDS(STR("bob"), STR("alice")), .from = 1790000000),
        PLAN(false, .accounts = WORDS(STR("physics"))),
        PLAN(false, .accounts = WORDS(STR("physics")), .states = WORDS(STR("FAILED"))),
        PLAN(false, .ids = ids, .n_ids = 2),
        PLAN(false, .from = 1790000000),
        PLAN(false, .from = 1790000000, .to = 1800000000, .by_end = true),
        PLAN(false, .to = 1790000000),
        PLAN(false, .states = WORDS(STR("FAILED"), STR("RUNNING"))),
        PLAN(true, .nodes = WORDS(STR("n1"))),
        PLAN(true, .nodes = WORDS(STR("n1")), .from = 1790000000, .gpu_types = WORDS(STR("a100"))),
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_filter filter = complete(rows[i].filter);

        check_plan(rows[i].what, &filter, rows[i].may_sort);
    }
}

static int64_t end_at(const struct made *made, int64_t at)
{
    return has_ended(made) ? made->end_time : at;
}

/* Seconds of a run that lie in the period. */
static uint64_t part_of(const struct made *made, int64_t from, int64_t to)
{
    int64_t end = end_at(made, now), begin = made->start_time > from ? made->start_time : from;
    int64_t until = end < to ? end : to;

    return made->start_time && until > begin ? (uint64_t)(until - begin) : 0;
}

/* Those in which it was not suspended: no poll has shown when it was. */
static uint64_t cpu_part_of(const struct made *made, int64_t from, int64_t to)
{
    uint64_t length = (uint64_t)(end_at(made, now) - made->start_time);

    if (!made->start_time || length <= made->suspended)
        return 0;
    return (length - made->suspended) * part_of(made, from, to) / length;
}

static uint64_t gpus_of(const struct made *made, const char *type)
{
    bool has_two = strstr(made->tres, "v100");

    if (!strstr(made->tres, "gpu"))
        return 0;
    return strcmp(type, "a100") == 0 ? 2 : has_two ? 1 : 0;
}

static void check_usage(int64_t from, int64_t to)
{
    const enum usage_key keys[] = { USAGE_ACCOUNT, USAGE_CLUSTER };
    struct usage_row total, *rows;
    struct usage_question question = {
        .filter = everything(), .keys = keys, .n_keys = 2, .now = now, .most = 100, .total = &total
    };
    struct arena arena = { 0 };
    uint64_t all = 0, cpus = 0;
    size_t n;

    question.filter.from = from;
    question.filter.to = to;
    OK(store_usage(world->reader, &question, &arena, &rows, &n, &fixture.err));
    for (size_t i = 0; i < n; i++) {
        uint64_t expected = 0, gpus = 0;

        for (size_t k = 0; k < RUNS; k++) {
            const struct made *made = &world->runs[k];
            uint64_t part = part_of(made, from, to);

            if (!str_eq(rows[i].keys[0], str_of(made->account)) ||
                !str_eq(rows[i].keys[1], str_of(made->cluster)))
                continue;
            expected += cpu_part_of(made, from, to) * made->cpus;
            gpus += part * (gpus_of(made, "a100") + gpus_of(made, "v100"));
        }
        assert_int_equal(rows[i].cpu_seconds, expected);
        assert_int_equal(rows[i].gpu_seconds, gpus);
        all += rows[i].jobs;
        cpus += expected;
        if (i)
            assert_true(memcmp(rows[i - 1].keys[0].p, rows[i].keys[0].p, 4) <= 0);
    }
    assert_int_equal(total.jobs, all);
    assert_int_equal(total.cpu_seconds, cpus);
    arena_clear(&arena);
}

TEST(usage_is_the_part_of_each_run_that_lies_in_the_time)
{
    uint64_t seed = 3;

    check_usage(first_submit - 400 * (int64_t)DAY, now + DAY);
    for (int i = 0; i < 40; i++) {
        int64_t from = first_submit + (int64_t)(noise(&seed) % (60 * DAY));

        check_usage(from, from + 1 + some_seconds(&seed));
    }
}

TEST(a_run_with_two_types_of_gpu_counts_in_both_and_once_in_all)
{
    const enum usage_key key = USAGE_GPU_TYPE;
    struct usage_row total, *rows;
    struct usage_question question = {
        .filter = everything(), .keys = &key, .n_keys = 1, .now = now, .most = 100, .total = &total
    };
    uint64_t expected[2] = { 0, 0 }, gpus = 0;
    struct arena arena = { 0 };
    size_t n;

    question.filter.from = first_submit + 10 * DAY;
    question.filter.to = first_submit + 30 * DAY;
    OK(store_usage(world->reader, &question, &arena, &rows, &n, &fixture.err));
    for (size_t k = 0; k < RUNS; k++) {
        uint64_t part = part_of(&world->runs[k], question.filter.from, question.filter.to);

        expected[0] += part * gpus_of(&world->runs[k], "a100");
        expected[1] += part * gpus_of(&world->runs[k], "v100");
    }
    assert_int_equal(n, 3);
    assert_str(rows[0].keys[0], "");
    assert_int_equal(rows[0].gpu_seconds, 0);
    assert_str(rows[1].keys[0], "a100");
    assert_int_equal(rows[1].gpu_seconds, expected[0]);
    assert_str(rows[2].keys[0], "v100");
    assert_int_equal(rows[2].gpu_seconds, expected[1]);
    gpus = expected[0] + expected[1];
    assert_int_equal(total.gpu_seconds, gpus);
    assert_true(total.jobs < rows[0].jobs + rows[1].jobs + rows[2].jobs);
    arena_clear(&arena);
}

static void assert_same_rows(const struct usage_sum *sum, const struct usage_row *alone, size_t n)
{
    assert_int_equal(sum->n, n);
    for (size_t i = 0; i < n; i++) {
        struct usage_row row = sum->row[i], other = alone[i];

        for (size_t k = 0; k < sum->n_keys; k++)
            assert_true(str_eq(row.keys[k], other.keys[k]));
        memset(row.keys, 0, sizeof(row.keys));
        memset(other.keys, 0, sizeof(other.keys));
        assert_memory_equal(&row, &other, sizeof(row)); /* to the last bit */
    }
}

TEST(sums_that_are_asked_for_together_are_those_that_are_asked_for_alone)
{
    const enum usage_key user = USAGE_USER, both[] = { USAGE_GPU_TYPE, USAGE_ACCOUNT };
    const int64_t to = first_submit + 50 * (int64_t)DAY;
    struct usage_sum sums[] = {
        { .from = to - DAY },
        { .from = to - 7 * DAY },
        { .n_keys = 0 },
        { .keys = &user, .n_keys = 1 },
        { .from = to - 7 * DAY, .keys = both, .n_keys = 2 },
    };
    struct usage_question question = { .filter = everything(), .now = now, .most = 100 };
    struct arena arena = { 0 };

    question.filter.from = to - 30 * DAY;
    question.filter.to = to;
    OK(store_usage_sums(world->reader, &question, sums, COUNT(sums), &arena, &fixture.err));
    assert_true(sums[0].row[0].jobs < sums[1].row[0].jobs);
    for (size_t i = 0; i < COUNT(sums); i++) {
        struct usage_question alone = question;
        struct usage_row *rows;
        size_t n;

        alone.filter.from = sums[i].from ? sums[i].from : question.filter.from;
        alone.keys = sums[i].keys;
        alone.n_keys = sums[i].n_keys;
        OK(store_usage(world->reader, &alone, &arena, &rows, &n, &fixture.err));
        assert_same_rows(&sums[i], rows, n);
    }
    arena_clear(&arena);
}

TEST(more_groups_than_are_wanted_are_refused)
{
    const enum usage_key keys[] = { USAGE_ACCOUNT, USAGE_USER };
    struct usage_question question = {
        .filter = everything(), .keys = keys, .n_keys = 2, .now = now, .most = 5
    };
    struct usage_row *rows;
    struct arena arena = { 0 };
    struct err err = { 0 };
    size_t n;

    question.filter.from = first_submit;
    question.filter.to = now;
    assert_int_equal(store_usage(world->reader, &question, &arena, &rows, &n, &err), -EFBIG);
    question.most = 12;
    assert_int_equal(store_usage(world->reader, &question, &arena, &rows, &n, &err), 0);
    assert_int_equal(n, 12);
    question.filter.to = first_submit;
    assert_int_equal(store_usage(world->reader, &question, &arena, &rows, &n, &err), -EINVAL);
    arena_clear(&arena);
}

TEST(a_question_ends_at_its_deadline)
{
    struct job_filter filter = everything();
    struct found *found = heap_alloc(sizeof(*found));
    struct err err = { 0 };

    store_reader_deadline(world->reader, clock_mono(&clock_real) - 1);
    assert_int_equal(
        store_jobs(world->reader, &filter, &(struct job_order){ 0 }, now, find, found, &err),
        -ETIMEDOUT);
    assert_contains(err.text, "did not answer in time");
    store_reader_deadline(world->reader, 0);
    OK(store_jobs(world->reader, &filter, &(struct job_order){ 0 }, now, find, found, &err));
    assert_int_equal(found->n, RUNS);
    free(found);
}
