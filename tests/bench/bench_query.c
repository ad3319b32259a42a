/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to a store of 1,000,000 runs of a year: pages of 50, and the usage of a month. The
 * reference of each is a look through the whole table. The rows are written by SQL: how fast the
 * store itself takes them is another benchmark. */
#include "bench.h"

#include "base/clock.h"
#include "store/query.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    RUNS = 1000000,
    USERS = 400,
    ACCOUNTS = 50,
    NODES = 500,
    LISTS = 20000, /* of several nodes */
    PAGE = 50,
    DAY = 86400,
};
static const int64_t first_submit = 1767225600, year = 365 * (int64_t)DAY;

/* Ids of texts: those of a kind follow each other, behind those that a new store has. */
enum {
    USER = 10000,
    ACCOUNT = USER + USERS,
    NODE = ACCOUNT + ACCOUNTS,
    LIST = NODE + NODES,
    PARTITION = LIST + LISTS,
    QOS = PARTITION + 4,
    GPU_TYPE = QOS + 2,
    TEXTS = GPU_TYPE + 3,
};

static const char *const gpu_types[] = { "a100", "v100", "a100=2,v100=1" };

struct bench {
    char path[64];
    struct store_reader *reader;
    struct arena arena;
    struct err err;
    size_t found;
    int64_t now;
};

static _Noreturn void give_up(struct bench *bench)
{
    bench_give_up("%s", bench->err.text);
}

static uint64_t noise(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void put_text(sqlite3_stmt *statement, int64_t id, const char *kind, uint64_t number,
                     struct err *err)
{
    char text[64];

    if (number == UINT64_MAX)
        snprintf(text, sizeof(text), "%s", kind);
    else
        snprintf(text, sizeof(text), "%s%llu", kind, (unsigned long long)number);
    sqlite3_reset(statement);
    db_bind_i64(statement, 1, id);
    sqlite3_bind_text(statement, 2, text, -1, SQLITE_TRANSIENT);
    db_run(statement, err);
}

static void put_texts(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *text, *member;
    uint64_t seed = 1;

    if (db_prepare(db, "INSERT INTO text(id, value) VALUES(?1, ?2)", &text, err) < 0 ||
        db_prepare(db, "INSERT OR IGNORE INTO member VALUES(?1, ?2)", &member, err) < 0)
        return;
    for (unsigned i = 0; i < USERS; i++)
        put_text(text, USER + i, "user", i, err);
    for (unsigned i = 0; i < ACCOUNTS; i++)
        put_text(text, ACCOUNT + i, "account", i, err);
    for (unsigned i = 0; i < NODES; i++) {
        put_text(text, NODE + i, "n", i, err);
        db_bind_i64(member, 1, NODE + i);
        db_bind_i64(member, 2, NODE + i);
        db_run(member, err);
    }
    for (unsigned i = 0; i < LISTS; i++) {
        put_text(text, LIST + i, "n[0-9]of", i, err);
        for (unsigned k = 0; k < 8; k++) {
            db_bind_i64(member, 1, NODE + (int64_t)(noise(&seed) % NODES));
            db_bind_i64(member, 2, LIST + i);
            db_run(member, err);
        }
    }
    for (unsigned i = 0; i < 4; i++)
        put_text(text, PARTITION + i, "partition", i, err);
    for (unsigned i = 0; i < 2; i++)
        put_text(text, QOS + i, "qos", i, err);
    for (unsigned i = 0; i < COUNT(gpu_types); i++)
        put_text(text, GPU_TYPE + i, gpu_types[i], UINT64_MAX, err);
    sqlite3_finalize(text);
    sqlite3_finalize(member);
}

/* Most are short, some wait or run for days, as jobs are. */
static int64_t some_seconds(uint64_t *seed, int64_t most)
{
    double x = (double)(noise(seed) >> 11) / 9007199254740992.0;

    return (int64_t)(x * x * x * x * (double)most);
}

static void bind_run(sqlite3_stmt *run, int64_t i, uint64_t *seed)
{
    int64_t submit = first_submit + i * year / RUNS;
    int64_t start = submit + some_seconds(seed, 3 * DAY);
    int64_t end = start + some_seconds(seed, 7 * DAY);
    uint64_t which = noise(seed);
    /* A tenth of all is one user's. */
    int64_t user = which % 10 ? (int64_t)(which / 10 % USERS) : 0;
    int64_t cpus = 1 << (which >> 20) % 7;
    bool has_gpus = (which >> 30) % 4 == 0, is_wide = (which >> 33) % 10 == 0;
    bool is_array = (which >> 40) % 2;
    const char *state = (which >> 50) % 5000 == 0 ? "NODE_FAIL"
                        : (which >> 50) % 20 == 0 ? "FAILED"
                                                  : "COMPLETED";
    const int64_t values[] = {
        100000 + i,
        submit,
        is_array ? 100000 + i / 100 * 100 : 0,
        is_array ? i % 100 : 0,
        USER + user,
        ACCOUNT + user % ACCOUNTS,
        PARTITION + (int64_t)((which >> 22) % 4),
        QOS + (int64_t)((which >> 24) % 2),
        0,
        is_wide ? LIST + (int64_t)((which >> 8) % LISTS) : NODE + (int64_t)((which >> 8) % NODES),
        submit,
        start,
        end,
        cpus,
        is_wide ? 8 : 1,
        cpus << 32,
        has_gpus ? 2 : 0,
        has_gpus ? GPU_TYPE + (int64_t)((which >> 26) % 3) : 0,
        cpus,
    };

    for (int k = 0; k < (int)COUNT(values); k++)
        db_bind_i64(run, k + 1, values[k]);
    if (!is_array) {
        sqlite3_bind_null(run, 3);
        sqlite3_bind_null(run, 4);
    }
    if (!has_gpus)
        sqlite3_bind_null(run, 18);
    db_bind_text(run, 9, str_of(state));
    db_bind_double(run, 20, (double)cpus * (double)(end - start) * (double)(which >> 56) / 256);
}

static void put_runs(sqlite3 *db, struct err *err)
{
    static const char sql[] =
        "INSERT INTO job(cluster, job_id, submit_time, first_submit_time, array_job_id,"
        " array_task_id, user, account, partition, qos, state, node_list, eligible_time,"
        " start_time, end_time, cpus, node_count, memory_bytes, gpus, gpu_types, billing,"
        " cpu_seconds, as_of, origin, is_counted, name, time_limit_minutes, rest)"
        " VALUES(1, ?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT id FROM text WHERE value = ?9), "
        "?10, ?11, ?12, ?13, ?14, ?15, ?16,"
        " ?17, ?18, ?19, ?20, ?13, 1, 1, 1, 1440, zeroblob(150))";
    sqlite3_stmt *run;
    uint64_t seed = 2;

    if (db_prepare(db, sql, &run, err) < 0)
        return;
    for (int64_t i = 0; i < RUNS && !err->code; i++) {
        bind_run(run, i, &seed);
        db_run(run, err);
    }
    sqlite3_finalize(run);
}

static void fill(struct bench *bench)
{
    sqlite3 *db;

    if (sqlite3_open(bench->path, &db) != SQLITE_OK)
        bench_give_up("cannot make %s", bench->path);
    db_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN", &bench->err);
    schema_migrate(db, 0, schema_migrations, n_schema_migrations, NULL, &bench->err);
    db_exec(db, "INSERT INTO cluster VALUES(1, 'alpha')", &bench->err);
    put_texts(db, &bench->err);
    put_runs(db, &bench->err);
    db_exec(db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", &bench->err);
    sqlite3_close(db);
    if (bench->err.code)
        give_up(bench);
}

static int count_row(void *ctx, const struct job_row *row)
{
    (void)row;
    ((struct bench *)ctx)->found++;
    return 0;
}

static void ask_page(struct bench *bench, const struct job_filter *filter, size_t limit)
{
    const struct job_order order = { .limit = limit };

    bench->found = 0;
    if (store_jobs(bench->reader, filter, &order, bench->now, count_row, bench, &bench->err) < 0)
        give_up(bench);
}

static struct job_filter everything(void)
{
    struct job_filter filter;

    job_filter_clear(&filter);
    return filter;
}

#define WORD(text) ((struct words){ &STR(text), 1 })

static void page_of_user(void *ctx)
{
    struct job_filter filter = everything();

    filter.users = WORD("user7");
    ask_page(ctx, &filter, PAGE);
}

/* One who has a hundred thousand, but none that is as old. */
static void day_of_user(void *ctx)
{
    struct job_filter filter = everything();

    filter.users = WORD("user0");
    filter.from = first_submit + year + 30 * DAY;
    ask_page(ctx, &filter, PAGE);
}

static void page_of_account(void *ctx)
{
    struct job_filter filter = everything();

    filter.accounts = WORD("account3");
    filter.states = WORD("FAILED");
    ask_page(ctx, &filter, PAGE);
}

static void page_of_node(void *ctx)
{
    struct job_filter filter = everything();

    filter.nodes = WORD("n[17-18]");
    ask_page(ctx, &filter, PAGE);
}

static void page_of_id(void *ctx)
{
    const uint32_t id = 100000 + RUNS / 2;
    struct job_filter filter = everything();

    filter.ids = &id;
    filter.n_ids = 1;
    ask_page(ctx, &filter, PAGE);
}

static void page_of_time(void *ctx)
{
    struct job_filter filter = everything();

    filter.from = first_submit + 100 * DAY;
    filter.to = filter.from + DAY;
    filter.gpu_types = WORD("v100");
    ask_page(ctx, &filter, PAGE);
}

static void page_of_waste(void *ctx)
{
    struct job_filter filter = everything();

    filter.efficiency_below = 0.02;
    filter.min_cpus = 32;
    ask_page(ctx, &filter, PAGE);
}

static void page_of_rare_state(void *ctx)
{
    struct job_filter filter = everything();

    filter.states = WORD("NODE_FAIL");
    ask_page(ctx, &filter, PAGE);
}

static void ask_usage(struct bench *bench, int64_t from, int64_t to, const enum usage_key *keys,
                      size_t n_keys)
{
    struct usage_question question = {
        .filter = everything(), .keys = keys, .n_keys = n_keys, .now = bench->now, .most = 100000
    };
    struct usage_row *rows;

    question.filter.from = from;
    question.filter.to = to;
    if (store_usage(bench->reader, &question, &bench->arena, &rows, &bench->found, &bench->err) < 0)
        give_up(bench);
    arena_clear(&bench->arena);
}

static void month_by_account(void *ctx)
{
    const enum usage_key key = USAGE_ACCOUNT;

    ask_usage(ctx, first_submit + 90 * DAY, first_submit + 120 * DAY, &key, 1);
}

static void month_by_all(void *ctx)
{
    const enum usage_key keys[] = { USAGE_ACCOUNT, USAGE_USER, USAGE_GPU_TYPE };

    ask_usage(ctx, first_submit + 90 * DAY, first_submit + 120 * DAY, keys, COUNT(keys));
}

/* As little as can be done with each row: one column behind all others but the last. */
static void read_all(void *ctx)
{
    struct bench *bench = ctx;
    sqlite3 *db;
    int64_t sum;

    if (db_open(bench->path, false, &db, &bench->err) < 0 ||
        db_get_i64(db, "SELECT sum(is_counted) FROM job NOT INDEXED", &sum, &bench->err) < 0)
        give_up(bench);
    db_close(db);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void *ctx);
        double most_ms;
    } questions[] = {
        { "query: page of a user", page_of_user, 20 },
        { "query: day of a heavy user, empty", day_of_user, 20 },
        { "query: page of an account, failed", page_of_account, 20 },
        { "query: page of two nodes", page_of_node, 20 },
        { "query: page of an array", page_of_id, 20 },
        { "query: page of a day, by GPU type", page_of_time, 20 },
        { "query: page of wide jobs that wasted", page_of_waste, 20 },
        { "query: page of a rare state", page_of_rare_state, 20 },
        { "query: a month by account", month_by_account, 300 },
        { "query: a month by account, user, GPU", month_by_all, 300 },
    };
    struct bench *bench = heap_alloc(sizeof(*bench));
    struct bench_run runs[COUNT(questions) + 1];

    bench_begin(argc, argv);
    snprintf(bench->path, sizeof(bench->path), "/tmp/sonde-bench-query.%d", (int)getpid());
    bench->now = first_submit + year + 40 * DAY;
    fill(bench);
    if (store_reader_open(str_of(bench->path), &bench->reader, &bench->err) < 0)
        give_up(bench);
    for (size_t i = 0; i < COUNT(questions); i++)
        runs[i] = (struct bench_run){ .run = questions[i].run, .ctx = bench };
    runs[COUNT(questions)] = (struct bench_run){ .run = read_all, .ctx = bench };
    bench_measure(runs, COUNT(runs), 9);
    for (size_t i = 0; i < COUNT(questions); i++)
        bench_row(&(struct bench_row){ questions[i].name, "ms", runs[i].median_seconds * 1e3,
                                       runs[COUNT(questions)].median_seconds * 1e3, BENCH_AT_MOST,
                                       questions[i].most_ms });
    store_reader_close(bench->reader);
    unlink(bench->path);
    for (size_t i = 0; i < 2; i++) {
        char side[80];

        snprintf(side, sizeof(side), "%s-%s", bench->path, i ? "shm" : "wal");
        unlink(side);
    }
    free(bench);
    return 0;
}
