/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store of a test, a file in test_dir(), and questions to its tables as any SQL client would
 * ask them. */
#ifndef SONDE_TESTS_STORE_FIXTURE_H
#define SONDE_TESTS_STORE_FIXTURE_H

#include "test.h"

#include "files.h"

#include "base/arena.h"
#include "store/store.h"

#include <fcntl.h>
#include <sqlite3.h>

static struct fixture {
    const char *path;
    struct store *store; /* NULL: it is not open */
    struct err err;
    char answer[4096];
} fixture;

static inline void fixture_begin(void)
{
    fixture = (struct fixture){ .path = test_path("store.db") };
}

static inline void fixture_open(void)
{
    if (store_open(str_of(fixture.path), false, &fixture.store, &fixture.err) < 0)
        fail_msg("%s", fixture.err.text);
}

static inline void fixture_remove_files(void)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

    for (size_t i = 0; i < COUNT(suffixes); i++)
        remove_all(test_path("store.db%s", suffixes[i]));
}

static inline void fixture_begin_open(void)
{
    fixture_begin();
    fixture_open();
}

static inline void fixture_end(void)
{
    fixture.store = store_close(fixture.store);
    fixture_remove_files();
}

/* Of what tells its error in fixture.err. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, fixture.err.text);                                           \
    } while (0)

static inline int add_answer(void *ctx, int n, char **values, char **names)
{
    size_t at = strlen(fixture.answer);

    (void)ctx;
    (void)names;
    for (int i = 0; i < n && at < sizeof(fixture.answer); i++)
        at += (size_t)snprintf(fixture.answer + at, sizeof(fixture.answer) - at, "%s%s",
                               i    ? "|"
                               : at ? "\n"
                                    : "",
                               values[i] ? values[i] : "NULL");
    return 0;
}

/* Rows as lines, columns between bars. */
static inline const char *ask(const char *sql)
{
    sqlite3 *db;

    fixture.answer[0] = '\0';
    assert_int_equal(sqlite3_open_v2(fixture.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_exec(db, sql, add_answer, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
    return fixture.answer;
}

/* A look at a job of ours in the queue, at that time. */
static inline struct job_record job_in(enum job_base base, uint32_t id, int64_t submit_time,
                                       int64_t as_of)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = submit_time;
    record.as_of = as_of;
    record.state.base = (uint8_t)base;
    record.user = STR("alice");
    record.account = STR("physics");
    record.partition = STR("long");
    record.name = STR("train");
    if (base != JOB_PENDING) {
        record.start_time = submit_time + 10;
        record.nodes = STR("n1");
    }
    if (base >= JOB_COMPLETED && base < JOB_BASE_UNKNOWN)
        record.end_time = submit_time + 100;
    return record;
}

static inline void put_in(const char *cluster, const struct job_record *record)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_job(fixture.store, str_of(cluster), record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

static inline void put(struct job_record record)
{
    put_in("alpha", &record);
}

#endif
