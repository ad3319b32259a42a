/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is too old or too much goes, a few runs at a time, and the file shrinks. */
#include "store/writer.h"

#include <sys/stat.h>

/* Pages given back at once; and how many parts of the file must be free before that pays. */
enum { VACUUM_PAGES = 2000, FREE_PART = 20 };

static int count_runs(struct store *store, int64_t cluster, int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_COUNT_RUNS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    r = db_step(statement, err);
    if (r > 0)
        *ret = db_i64(statement, 0, 0);
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int count_all_runs(struct store *store, int64_t *ret, struct err *err)
{
    if (store->runs < 0) {
        int r = db_get_i64(store->db, "SELECT count(*) FROM job", &store->runs, err);

        if (r < 0)
            return r;
    }
    *ret = store->runs;
    return 0;
}

/* Without what is free. */
static int used_bytes(struct store *store, int64_t *ret_bytes, int64_t *ret_free_pages,
                      int64_t *ret_pages, struct err *err)
{
    int64_t page_bytes;
    int r = db_get_i64(store->db, "PRAGMA page_size", &page_bytes, err);

    if (r == 0)
        r = db_get_i64(store->db, "PRAGMA page_count", ret_pages, err);
    if (r == 0)
        r = db_get_i64(store->db, "PRAGMA freelist_count", ret_free_pages, err);
    if (r == 0)
        *ret_bytes = (*ret_pages - *ret_free_pages) * page_bytes;
    return r;
}

/* How many runs must go for the cluster's share of the file to fit. */
static int count_too_many(struct store *store, int64_t cluster, uint64_t max_bytes, int64_t *ret,
                          struct err *err)
{
    int64_t runs = 0, all_runs, bytes = 0, pages, free_pages;
    double run_bytes, share;
    int r = count_runs(store, cluster, &runs, err);

    if (r == 0)
        r = count_all_runs(store, &all_runs, err);
    if (r == 0)
        r = used_bytes(store, &bytes, &free_pages, &pages, err);
    if (r < 0)
        return r;
    *ret = 0;
    if (!runs || !all_runs)
        return 0;
    run_bytes = (double)bytes / (double)all_runs;
    share = run_bytes * (double)runs;
    if (share > (double)max_bytes)
        *ret = (int64_t)((share - (double)max_bytes) / run_bytes) + 1;
    return 0;
}

/* Runs that are to go, and the texts that may go with them. */
struct doomed {
    int64_t *ids, *texts; /* two texts a run, its name and its list of nodes; 0: none */
    size_t n;
    int64_t last_submit_time, last_end_time;
};

static int find_doomed(struct store *store, enum store_statement which, int64_t cluster,
                       int64_t before, size_t most, struct doomed *doomed, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    if (which == SQL_RUNS_BY_END)
        db_bind_i64(statement, 2, before);
    db_bind_i64(statement, 3, (int64_t)most);
    while ((r = db_step(statement, err)) > 0 && doomed->n < most) {
        doomed->ids[doomed->n] = db_i64(statement, 0, 0);
        doomed->texts[2 * doomed->n] = db_i64(statement, 1, 0);
        doomed->texts[2 * doomed->n + 1] = db_i64(statement, 2, 0);
        doomed->last_submit_time = db_i64(statement, 3, 0);
        if (db_i64(statement, 4, 0) > doomed->last_end_time)
            doomed->last_end_time = db_i64(statement, 4, 0);
        doomed->n++;
    }
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int drop(struct store *store, enum store_statement which, int64_t id, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    return db_run(statement, err);
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int drop_texts(struct store *store, struct doomed *doomed, struct err *err)
{
    int r = 0;

    qsort(doomed->texts, 2 * doomed->n, sizeof(*doomed->texts), compare_ids);
    for (size_t i = 0; i < 2 * doomed->n && r == 0; i++)
        if (doomed->texts[i] && (!i || doomed->texts[i] != doomed->texts[i - 1]))
            r = store_drop_text(store, doomed->texts[i], err);
    store_forget_texts(store);
    return r;
}

static int drop_runs(struct store *store, struct doomed *doomed, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < doomed->n && r == 0; i++) {
        r = drop(store, SQL_DROP_LIFE, doomed->ids[i], err);
        if (r == 0)
            r = drop(store, SQL_DROP_SUMMARY, doomed->ids[i], err);
        if (r == 0)
            r = drop(store, SQL_DROP_JOB, doomed->ids[i], err);
        store_count_named(store, doomed->texts[2 * i], -1);
    }
    if (r == 0)
        r = store_write_tallies(store, err);
    if (r < 0)
        return r;
    if (store->runs >= 0)
        store->runs -= (int64_t)doomed->n;
    return doomed->n ? drop_texts(store, doomed, err) : 0;
}

/* What agents told of jobs that ended before then, whether the job was ever seen or not. */
static int drop_from(struct store *store, enum store_statement which, int64_t cluster,
                     int64_t before, size_t most, uint64_t *deleted, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    db_bind_i64(statement, 2, before);
    db_bind_i64(statement, 3, (int64_t)most);
    r = db_run(statement, err);
    if (r == 0)
        *deleted += (uint64_t)sqlite3_changes(store->db);
    return r;
}

static int drop_finals(struct store *store, int64_t cluster, int64_t before, size_t most,
                       uint64_t *deleted, struct err *err)
{
    int r = drop_from(store, SQL_DROP_FINALS, cluster, before, most, deleted, err);

    return r < 0 ? r : drop_from(store, SQL_DROP_HELD_FINALS, cluster, before, most, deleted, err);
}

/* The submit time of the last that went is written if any did. */
static int prune_runs(struct store *store, enum store_statement which,
                      struct store_cluster *cluster, int64_t before, size_t most, uint64_t *deleted,
                      int64_t *last_submit, struct err *err)
{
    struct doomed doomed = { .ids = heap_array(most, sizeof(int64_t)),
                             .texts = heap_array(2 * most, sizeof(int64_t)) };
    int r = find_doomed(store, which, cluster->id, before, most, &doomed, err);

    if (r == 0)
        r = drop_runs(store, &doomed, err);
    if (r == 0 && doomed.n) {
        store_raise_mark(cluster, MARK_PRUNED_END, doomed.last_end_time);
        *deleted += doomed.n;
        *last_submit = doomed.last_submit_time;
    }
    free(doomed.ids);
    free(doomed.texts);
    return r;
}

static int prune_by_age(struct store *store, struct store_cluster *cluster, int64_t oldest_end,
                        size_t most, struct store_pruned *pruned, struct err *err)
{
    int64_t last_submit;
    int r = prune_runs(store, SQL_RUNS_BY_END, cluster, oldest_end, most, &pruned->by_age,
                       &last_submit, err);

    if (r < 0)
        return r;
    store_raise_mark(cluster, MARK_PRUNED_BEFORE, oldest_end);
    store_raise_mark(cluster, MARK_PRUNED_END, oldest_end);
    return drop_finals(store, cluster->id, oldest_end, most, &pruned->finals, err);
}

static int prune_by_size(struct store *store, struct store_cluster *cluster, uint64_t max_bytes,
                         size_t most, struct store_pruned *pruned, struct err *err)
{
    int64_t too_many, last_submit = 0;
    int r = count_too_many(store, cluster->id, max_bytes, &too_many, err);

    if (r < 0 || !too_many)
        return r;
    r = prune_runs(store, SQL_RUNS_BY_SUBMIT, cluster, 0,
                   (uint64_t)too_many < most ? (size_t)too_many : most, &pruned->by_size,
                   &last_submit, err);
    if (r < 0 || !last_submit)
        return r;
    store_raise_mark(cluster, MARK_PRUNED_SUBMIT, last_submit);
    return drop_finals(store, cluster->id, last_submit, most, &pruned->finals, err);
}

static int give_back(struct store *store, struct err *err)
{
    int64_t bytes, free_pages = 0, pages = 0;
    char sql[60];
    int r = used_bytes(store, &bytes, &free_pages, &pages, err);

    if (r < 0 || free_pages < pages / FREE_PART)
        return r;
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
    return db_exec(store->db, sql, err);
}

int store_prune(struct store *store, struct str cluster, const struct store_retention *retention,
                size_t most, struct store_pruned *ret, struct err *err)
{
    struct store_cluster *of;
    int r = store_cluster(store, cluster, &of, err);

    *ret = (struct store_pruned){ 0 };
    if (r == 0 && retention->oldest_end)
        r = prune_by_age(store, of, retention->oldest_end, most, ret, err);
    if (r == 0 && retention->max_bytes)
        r = prune_by_size(store, of, retention->max_bytes, most, ret, err);
    if (r == 0)
        r = give_back(store, err);
    arena_clear(&store->scratch);
    return r;
}

int store_size(struct store *store, struct store_size *ret, struct err *err)
{
    char log[STORE_PATH_MAX + 4];
    struct stat file, log_file;
    int64_t runs;
    int r = count_all_runs(store, &runs, err);

    if (r < 0)
        return r;
    snprintf(log, sizeof(log), "%s-wal", store->path);
    if (stat(store->path, &file) < 0)
        return err_set(err, errno, "cannot look at the store %s: %s", store->path,
                       err_words(errno));
    ret->bytes = (uint64_t)file.st_size;
    if (stat(log, &log_file) == 0)
        ret->bytes += (uint64_t)log_file.st_size;
    ret->runs = (uint64_t)runs;
    return 0;
}
