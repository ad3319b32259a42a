/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store in a directory of its own, and questions to its tables as any SQL client would ask them.
 */
#ifndef SONDE_TESTS_STORE_FIXTURE_H
#define SONDE_TESTS_STORE_FIXTURE_H

#include "test.h"

#include "base/arena.h"
#include "store/store.h"

#include <fcntl.h>
#include <sqlite3.h>

struct fixture {
    char directory[40], path[60];
    struct store *store;
    struct err err;
    char answer[4096];
};

static inline void fixture_begin(struct fixture *fixture)
{
    *fixture = (struct fixture){ .directory = "/tmp/test_store.XXXXXX" };
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof(fixture->path), "%s/store.db", fixture->directory);
}

static inline void fixture_open(struct fixture *fixture)
{
    if (store_open(str_of(fixture->path), false, &fixture->store, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static inline void fixture_remove_files(struct fixture *fixture)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    char path[80];

    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(path, sizeof(path), "%s%s", fixture->path, suffixes[i]);
        unlink(path);
    }
}

static inline void fixture_end(struct fixture *fixture)
{
    fixture->store = store_close(fixture->store);
    fixture_remove_files(fixture);
    rmdir(fixture->directory);
}

#define OK(fixture, call)                                                                          \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, (fixture)->err.text);                                        \
    } while (0)

static inline int add_answer(void *ctx, int n, char **values, char **names)
{
    struct fixture *fixture = ctx;
    size_t at = strlen(fixture->answer);

    (void)names;
    for (int i = 0; i < n && at < sizeof(fixture->answer); i++)
        at += (size_t)snprintf(fixture->answer + at, sizeof(fixture->answer) - at, "%s%s",
                               i    ? "|"
                               : at ? "\n"
                                    : "",
                               values[i] ? values[i] : "NULL");
    return 0;
}

/* Rows as lines, columns between bars. */
static inline const char *ask(struct fixture *fixture, const char *sql)
{
    sqlite3 *db;

    fixture->answer[0] = '\0';
    assert_int_equal(sqlite3_open_v2(fixture->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_exec(db, sql, add_answer, fixture, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
    return fixture->answer;
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

static inline void put_in(struct fixture *fixture, const char *cluster,
                          const struct job_record *record)
{
    OK(fixture, store_begin(fixture->store, &fixture->err));
    OK(fixture, store_put_job(fixture->store, str_of(cluster), record, &fixture->err));
    OK(fixture, store_commit(fixture->store, &fixture->err));
}

static inline void put(struct fixture *fixture, struct job_record record)
{
    put_in(fixture, "alpha", &record);
}

#endif
