/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clusters, nodes, and how many runs have ended. */
#include "store/query.h"
#include "store/reader.h"

#include <stdlib.h>

static int read_ended(struct store_reader *reader, const char *sql, struct str cluster,
                      struct arena *arena, struct ended_row **ret, size_t *ret_n, struct err *err)
{
    struct ended_row *rows = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = reader_prepare(reader, sql, &statement, err);
    if (r == 0)
        db_bind_text(statement, 1, cluster);
    while (r >= 0 && (r = reader_step(reader, statement, err)) > 0) {
        rows = heap_grow(rows, n, &room, sizeof(*rows));
        rows[n++] = (struct ended_row){
            .state = arena_str(arena, db_text(statement, 0)),
            .partition = arena_str(arena, db_text(statement, 1)),
            .account = arena_str(arena, db_text(statement, 2)),
            .count = (uint64_t)db_i64(statement, 3, 0),
        };
    }
    sqlite3_finalize(statement);
    reader_end(reader);
    arena_adopt(arena, rows);
    *ret = rows;
    *ret_n = n;
    return r;
}

int store_ended(struct store_reader *reader, struct str cluster, struct arena *arena,
                struct ended_row **ret, size_t *ret_n, struct err *err)
{
    static const char sql[] =
        "SELECT (SELECT value FROM text WHERE id = ended.state),"
        " (SELECT value FROM text WHERE id = ended.partition),"
        " (SELECT value FROM text WHERE id = ended.account), count FROM ended"
        " WHERE cluster = (SELECT id FROM cluster WHERE name = ?1) ORDER BY state, partition, "
        "account";

    return read_ended(reader, sql, cluster, arena, ret, ret_n, err);
}

int store_ended_runs(struct store_reader *reader, struct str cluster, struct arena *arena,
                     struct ended_row **ret, size_t *ret_n, struct err *err)
{
    static const char sql[] =
        "SELECT (SELECT value FROM text WHERE id = job.state), NULL, NULL, sum(ifnull(tasks, 1))"
        " FROM job WHERE cluster = (SELECT id FROM cluster WHERE name = ?1) AND is_counted = 1"
        " GROUP BY state";

    return read_ended(reader, sql, cluster, arena, ret, ret_n, err);
}

/* All but the number of its runs. What was last heard of a cluster is of a run that has not ended,
 * of the newest one, or of its nodes. */
static const char cluster_sql[] =
    "SELECT id, name, (SELECT count(*) FROM node WHERE cluster = c.id),"
    " (SELECT submit_time FROM job INDEXED BY job_run WHERE cluster = c.id"
    "  ORDER BY submit_time LIMIT 1),"
    " max(ifnull((SELECT value FROM mark WHERE cluster = c.id AND name = 'open_seen'), 0),"
    "  ifnull((SELECT as_of FROM job INDEXED BY job_run WHERE cluster = c.id"
    "   ORDER BY submit_time DESC LIMIT 1), 0),"
    "  ifnull((SELECT value FROM mark WHERE cluster = c.id AND name = 'jobs_seen'), 0),"
    "  ifnull((SELECT value FROM mark WHERE cluster = c.id AND name = 'nodes_seen'), 0)),"
    " (SELECT value FROM mark WHERE cluster = c.id AND name = 'accounted_since'),"
    " (SELECT value FROM mark WHERE cluster = c.id AND name = 'accounted_until'),"
    " (SELECT value FROM mark WHERE cluster = c.id AND name = 'pruned_end'),"
    " (SELECT value FROM mark WHERE cluster = c.id AND name = 'pruned_before'),"
    " (SELECT value FROM mark WHERE cluster = c.id AND name = 'pruned_submit')"
    " FROM cluster AS c ORDER BY name";

/* Counting a cluster's runs means to read an index to its end, counting all does not: the last
 * cluster has what the others have not. */
static int count_runs(struct store_reader *reader, const int64_t *ids, struct cluster_row *rows,
                      size_t n, struct err *err)
{
    static const char sql[] = "SELECT count(*) FROM job INDEXED BY job_run WHERE cluster = ?1";
    sqlite3_stmt *statement = NULL;
    int64_t left = 0;
    int r = db_get_i64(reader->db, "SELECT count(*) FROM job", &left, err);

    if (r == 0)
        r = reader_prepare(reader, sql, &statement, err);
    for (size_t i = 0; i + 1 < n && r >= 0; i++) {
        db_bind_i64(statement, 1, ids[i]);
        r = reader_step(reader, statement, err);
        if (r < 0)
            break;
        rows[i].runs = (uint64_t)db_i64(statement, 0, 0);
        left -= (int64_t)rows[i].runs;
        sqlite3_reset(statement);
    }
    if (r >= 0 && n)
        rows[n - 1].runs = left > 0 ? (uint64_t)left : 0;
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

static int read_clusters(struct store_reader *reader, struct arena *arena, int64_t **ids,
                         struct cluster_row **ret, size_t *ret_n, struct err *err)
{
    struct cluster_row *rows = NULL;
    size_t n = 0, room = 0, id_room = 0;
    sqlite3_stmt *statement;
    int r = reader_prepare(reader, cluster_sql, &statement, err);

    while (r >= 0 && (r = reader_step(reader, statement, err)) > 0) {
        rows = heap_grow(rows, n, &room, sizeof(*rows));
        *ids = heap_grow(*ids, n, &id_room, sizeof(**ids));
        (*ids)[n] = db_i64(statement, 0, 0);
        rows[n++] = (struct cluster_row){
            .name = arena_str(arena, db_text(statement, 1)),
            .nodes = (uint64_t)db_i64(statement, 2, 0),
            .first_submit_time = db_i64(statement, 3, 0),
            .last_seen_time = db_i64(statement, 4, 0),
            .accounted_since = db_i64(statement, 5, 0),
            .accounted_until = db_i64(statement, 6, 0),
            .pruned_end = db_i64(statement, 7, 0),
            .pruned_before = db_i64(statement, 8, 0),
            .pruned_submit = db_i64(statement, 9, 0),
        };
    }
    sqlite3_finalize(statement);
    arena_adopt(arena, rows);
    *ret = rows;
    *ret_n = n;
    return r;
}

int store_clusters(struct store_reader *reader, struct arena *arena, struct cluster_row **ret,
                   size_t *ret_n, struct err *err)
{
    int64_t *ids = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    *ret_n = 0;
    r = read_clusters(reader, arena, &ids, ret, ret_n, err);
    if (r == 0)
        r = count_runs(reader, ids, *ret, *ret_n, err);
    free(ids);
    reader_end(reader);
    return r;
}

/* A row of node stands since it last changed: it was seen when the others were. */
static const char node_sql[] =
    "SELECT c.name, max(n.seen_time, ifnull((SELECT value FROM mark WHERE cluster = n.cluster"
    " AND mark.name = 'nodes_seen'), 0)), n.name, state, partitions, features, gres, gres_used,"
    " reservation, reason, reason_user, version, reason_time, cpus, cpus_alloc, cpus_idle,"
    " cpus_other, cpu_load, memory_bytes, memory_alloc_bytes, memory_free_bytes"
    " FROM cluster AS c CROSS JOIN node AS n ON n.cluster = c.id"
    " WHERE c.name > ?1 OR (c.name = ?1 AND n.name > ?2) ORDER BY c.name, n.name";

static void read_node(sqlite3_stmt *statement, struct node_row *ret)
{
    struct node_record *record = &ret->record;
    struct str *const texts[] = { &record->name,        &record->state,  &record->partitions,
                                  &record->features,    &record->gres,   &record->gres_used,
                                  &record->reservation, &record->reason, &record->reason_user,
                                  &record->version };
    uint32_t *const counts[] = { &record->cpus, &record->cpus_alloc, &record->cpus_idle,
                                 &record->cpus_other };
    uint64_t *const amounts[] = { &record->memory_bytes, &record->memory_alloc_bytes,
                                  &record->memory_free_bytes };
    int at = 0;

    ret->cluster = db_text(statement, at++);
    ret->seen_time = db_i64(statement, at++, 0);
    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i] = db_text(statement, at++);
    record->reason_time = db_i64(statement, at++, 0);
    for (size_t i = 0; i < COUNT(counts); i++)
        *counts[i] = db_u32(statement, at++);
    record->cpu_load = db_double(statement, at++);
    for (size_t i = 0; i < COUNT(amounts); i++)
        *amounts[i] = db_u64(statement, at++);
}

static void keep_node(struct node_row *row, struct arena *arena)
{
    struct node_record *record = &row->record;
    struct str *const texts[] = { &row->cluster,        &record->name,        &record->state,
                                  &record->partitions,  &record->features,    &record->gres,
                                  &record->gres_used,   &record->reservation, &record->reason,
                                  &record->reason_user, &record->version };

    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i] = arena_str(arena, *texts[i]);
}

/* Whether a list with this separator has any of the words, whatever their case. */
static bool has_any(const struct words *words, struct str list, char separator)
{
    for (struct str rest = list; rest.p && words->n;) {
        struct str word = str_cut(&rest, separator);

        for (size_t i = 0; i < words->n; i++)
            if (str_eq_nocase(word, words->word[i]))
                return true;
    }
    return !words->n;
}

static bool is_any(const struct words *words, struct str text)
{
    for (size_t i = 0; i < words->n; i++)
        if (str_eq(text, words->word[i]))
            return true;
    return !words->n;
}

/* Nodes are few: what is asked for is chosen here. */
static bool passes(const struct node_filter *filter, const struct node_row *row)
{
    return is_any(&filter->clusters, row->cluster) && is_any(&filter->names, row->record.name) &&
           has_any(&filter->states, row->record.state, '+') &&
           has_any(&filter->partitions, row->record.partitions, ',');
}

int store_nodes(struct store_reader *reader, const struct node_filter *filter, struct arena *arena,
                struct node_row **ret, size_t *ret_n, struct err *err)
{
    struct node_row *rows = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = reader_prepare(reader, node_sql, &statement, err);
    if (r == 0) {
        /* An empty text, not NULL, comes before all. */
        sqlite3_bind_text64(statement, 1, filter->after_cluster.n ? filter->after_cluster.p : "",
                            filter->after_cluster.n, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_text64(statement, 2, filter->after_name.n ? filter->after_name.p : "",
                            filter->after_name.n, SQLITE_STATIC, SQLITE_UTF8);
    }
    while (r >= 0 && (!filter->limit || n < filter->limit) &&
           (r = reader_step(reader, statement, err)) > 0) {
        struct node_row row = { 0 };

        read_node(statement, &row);
        if (!passes(filter, &row))
            continue;
        keep_node(&row, arena);
        rows = heap_grow(rows, n, &room, sizeof(*rows));
        rows[n++] = row;
    }
    sqlite3_finalize(statement);
    reader_end(reader);
    arena_adopt(arena, rows);
    *ret = rows;
    *ret_n = n;
    return r < 0 ? r : 0;
}
