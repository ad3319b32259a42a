/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clusters, and the numbers that are kept of each. */
#include "store/writer.h"

static const char *const mark_names[CLUSTER_MARKS] = {
    [MARK_PRUNED_BEFORE] = "pruned_before", [MARK_PRUNED_SUBMIT] = "pruned_submit",
    [MARK_PRUNED_END] = "pruned_end",       [MARK_OPEN_SEEN] = "open_seen",
    [MARK_JOBS_SEEN] = "jobs_seen",         [MARK_IS_ACCOUNTED] = "is_accounted",
    [MARK_WAITS_SINCE] = "waits_since",
};

int store_read_mark(struct store *store, int64_t cluster, const char *name, int64_t otherwise,
                    int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_GET_MARK, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    db_bind_text(statement, 2, str_of(name));
    r = db_step(statement, err);
    if (r >= 0)
        *ret = r > 0 ? db_i64(statement, 0, otherwise) : otherwise;
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

int store_write_mark(struct store *store, int64_t cluster, const char *name, int64_t value,
                     struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_SET_MARK, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    db_bind_text(statement, 2, str_of(name));
    db_bind_i64(statement, 3, value);
    return db_run(statement, err);
}

int store_find_cluster(struct store *store, struct str name, int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_FIND_CLUSTER, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, name);
    r = db_step(statement, err);
    *ret = r > 0 ? db_i64(statement, 0, 0) : 0;
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int add_cluster(struct store *store, struct str name, int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_ADD_CLUSTER, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, name);
    r = db_run(statement, err);
    *ret = sqlite3_last_insert_rowid(store->db);
    return r;
}

int store_cluster(struct store *store, struct str name, struct store_cluster **ret, struct err *err)
{
    struct store_cluster cluster = { 0 };
    void **place;
    int r;

    name = db_fit(name, STORE_TEXT_MAX);
    if (!name.n)
        return err_set(err, EINVAL, "a cluster without a name cannot be kept in a store");
    place = map_get(&store->clusters, name);
    if (place) {
        *ret = *place;
        return 0;
    }
    r = store_find_cluster(store, name, &cluster.id, err);
    if (r == 0 && !cluster.id)
        r = add_cluster(store, name, &cluster.id, err);
    for (size_t i = 0; i < CLUSTER_MARKS && r == 0; i++)
        r = store_read_mark(store, cluster.id, mark_names[i], 0, &cluster.marks[i], err);
    if (r < 0)
        return r;
    memcpy(cluster.written, cluster.marks, sizeof(cluster.marks));
    *ret = ARENA_NEW(&store->cluster_arena, struct store_cluster);
    **ret = cluster;
    *map_put(&store->clusters, name) = *ret;
    return 0;
}

int store_get_mark(struct store *store, struct str cluster, const char *name, int64_t otherwise,
                   int64_t *ret, struct err *err)
{
    int64_t id;
    int r = store_find_cluster(store, cluster, &id, err);

    return r < 0 ? r : store_read_mark(store, id, name, otherwise, ret, err);
}

int store_set_mark(struct store *store, struct str cluster, const char *name, int64_t value,
                   struct err *err)
{
    struct store_cluster *of = NULL;
    int r = store_cluster(store, cluster, &of, err);

    return r < 0 ? r : store_write_mark(store, of->id, name, value, err);
}

int store_open_seen(struct store *store, struct str cluster, int64_t *ret, struct err *err)
{
    struct store_cluster *of = NULL;
    int r = store_cluster(store, cluster, &of, err);

    if (r == 0)
        *ret = of->marks[MARK_OPEN_SEEN];
    return r;
}

int store_newest_seen(struct store *store, int64_t *ret, struct err *err)
{
    return db_get_i64(
        store->db, "SELECT coalesce(max(value), 0) FROM mark WHERE name = 'open_seen'", ret, err);
}

static int write_marks_of(struct store *store, struct store_cluster *cluster, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < CLUSTER_MARKS && r == 0; i++) {
        if (cluster->marks[i] > cluster->written[i])
            r = store_write_mark(store, cluster->id, mark_names[i], cluster->marks[i], err);
        cluster->written[i] = cluster->marks[i];
    }
    return r;
}

int store_write_marks(struct store *store, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < store->clusters.n && r == 0; i++)
        r = write_marks_of(store, store->clusters.entries[i].value, err);
    return r;
}
