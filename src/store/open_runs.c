/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of which nobody has said that they have ended. */
#include "store/writer.h"

struct open_run {
    int64_t id;
    uint32_t job_id;
};

struct open_runs {
    struct open_run *run;
    size_t n, room;
};

/* An index alone tells their ids. */
static int find(struct store *store, int64_t cluster, const struct open_filter *filter,
                struct open_runs *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_OPEN_RUNS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    while ((r = db_step(statement, err)) > 0) {
        struct open_run run = { .id = db_i64(statement, 0, 0), .job_id = db_u32(statement, 1) };

        if (run.job_id <= filter->after ||
            (filter->skips && filter->skips(filter->ctx, run.job_id)))
            continue;
        ret->run = heap_grow(ret->run, ret->n, &ret->room, sizeof(*ret->run));
        ret->run[ret->n++] = run;
    }
    sqlite3_reset(statement);
    return r;
}

static int by_job_id(const void *a, const void *b)
{
    const struct open_run *x = a, *y = b;

    return (x->job_id > y->job_id) - (x->job_id < y->job_id);
}

/* 1 if it is one of those that are asked for. */
static int is_old(struct store *store, int64_t before, const struct open_run *run, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_OPEN_RUN, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, run->id);
    db_bind_i64(statement, 2, before);
    r = db_step(statement, err);
    sqlite3_reset(statement);
    return r;
}

static int choose(struct store *store, int64_t before, const struct open_runs *runs, uint32_t *ids,
                  size_t most, size_t *ret_n, struct err *err)
{
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < runs->n && n < most && r >= 0; i++) {
        if (n && ids[n - 1] == runs->run[i].job_id)
            continue;
        r = is_old(store, before, &runs->run[i], err);
        if (r > 0)
            ids[n++] = runs->run[i].job_id;
    }
    *ret_n = n;
    return r < 0 ? r : 0;
}

int store_open_runs(struct store *store, struct str cluster, const struct open_filter *filter,
                    uint32_t *ids, size_t most, size_t *ret_n, struct err *err)
{
    struct open_runs runs = { 0 };
    int64_t id;
    int r = store_find_cluster(store, cluster, &id, err);

    *ret_n = 0;
    if (r == 0)
        r = find(store, id, filter, &runs, err);
    if (r == 0 && runs.n) {
        qsort(runs.run, runs.n, sizeof(*runs.run), by_job_id);
        r = choose(store, filter->as_of, &runs, ids, most, ret_n, err);
    }
    free(runs.run);
    return r;
}

int store_list_open(struct store *store, struct str cluster, struct run_name **ret, size_t *ret_n,
                    struct err *err)
{
    struct run_name *runs = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement;
    int64_t id;
    int r = store_find_cluster(store, cluster, &id, err);

    if (r == 0)
        r = store_use(store, SQL_OPEN_RUNS, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    while ((r = db_step(statement, err)) > 0) {
        runs = heap_grow(runs, n, &room, sizeof(*runs));
        runs[n++] = (struct run_name){ db_u32(statement, 1), db_i64(statement, 2, 0) };
    }
    sqlite3_reset(statement);
    if (r < 0) {
        free(runs);
        return r;
    }
    *ret = runs;
    *ret_n = n;
    return 0;
}

static int set_last_seen(struct store *store, const struct store_cluster *cluster,
                         const struct run_name *run, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_SET_LAST_SEEN, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, run->job_id);
    db_bind_i64(statement, 2, run->submit_time);
    db_bind_i64(statement, 3, cluster->id);
    db_bind_i64(statement, 4, cluster->marks[MARK_JOBS_SEEN]);
    return db_run(statement, err);
}

int store_put_look(struct store *store, struct str cluster, int64_t as_of,
                   const struct run_name *gone, size_t n, struct err *err)
{
    struct store_cluster *of;
    int r = store_cluster(store, cluster, &of, err);

    for (size_t i = 0; i < n && r == 0; i++)
        r = set_last_seen(store, of, &gone[i], err);
    if (r < 0)
        return r;
    store_raise_mark(of, MARK_JOBS_SEEN, as_of);
    store_begin_waits(of, as_of);
    return 0;
}
