/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of which nobody has said that they have ended. */
#include "store/writer.h"

struct open_run {
    int64_t id, as_of;
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

        if (filter->skips && filter->skips(filter->ctx, run.job_id))
            continue;
        ret->run = heap_grow(ret->run, ret->n, &ret->room, sizeof(*ret->run));
        ret->run[ret->n++] = run;
    }
    sqlite3_reset(statement);
    return r;
}

/* 1 if it is one of those that are asked for. */
static int read_run(struct store *store, int64_t before, struct open_run *run, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_OPEN_RUN, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, run->id);
    db_bind_i64(statement, 2, before);
    r = db_step(statement, err);
    if (r > 0)
        run->as_of = db_i64(statement, 0, 0);
    sqlite3_reset(statement);
    return r;
}

static int keep_old(struct store *store, int64_t before, struct open_runs *runs, struct err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < runs->n; i++) {
        int r = read_run(store, before, &runs->run[i], err);

        if (r < 0)
            return r;
        if (r > 0)
            runs->run[n++] = runs->run[i];
    }
    runs->n = n;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct open_run *x = a, *y = b;

    return x->as_of != y->as_of ? (x->as_of > y->as_of) - (x->as_of < y->as_of)
                                : (x->job_id > y->job_id) - (x->job_id < y->job_id);
}

int store_open_runs(struct store *store, struct str cluster, const struct open_filter *filter,
                    uint32_t *ids, size_t most, size_t *ret_n, struct err *err)
{
    struct open_runs runs = { 0 };
    size_t n = 0;
    int64_t id;
    int r = store_find_cluster(store, cluster, &id, err);

    if (r == 0)
        r = find(store, id, filter, &runs, err);
    if (r == 0)
        r = keep_old(store, filter->as_of, &runs, err);
    if (r == 0 && runs.n) {
        qsort(runs.run, runs.n, sizeof(*runs.run), compare);
        for (; n < runs.n && n < most; n++)
            ids[n] = runs.run[n].job_id;
    }
    free(runs.run);
    *ret_n = n;
    return r;
}
