/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes as they were last seen, and what agents counted of jobs on them. */
#include "store/writer.h"

#include <math.h>

enum node_kind { NODE_TEXT, NODE_U32, NODE_U64, NODE_TIME, NODE_LOAD };

/* In the order of SQL_CLUSTER_NODES, SQL_CHANGE_NODE and SQL_ADD_NODE; the name is the first. */
static const struct {
    enum node_kind kind;
    size_t offset;
} columns[] = {
#define MEMBER(kind, member)                                                                       \
    {                                                                                              \
        kind, offsetof(struct node_record, member)                                                 \
    }
    MEMBER(NODE_TEXT, name),
    MEMBER(NODE_TEXT, state),
    MEMBER(NODE_TEXT, partitions),
    MEMBER(NODE_TEXT, features),
    MEMBER(NODE_TEXT, gres),
    MEMBER(NODE_TEXT, gres_used),
    MEMBER(NODE_TEXT, reservation),
    MEMBER(NODE_TEXT, reason),
    MEMBER(NODE_TEXT, reason_user),
    MEMBER(NODE_TEXT, version),
    MEMBER(NODE_TIME, reason_time),
    MEMBER(NODE_U32, cpus),
    MEMBER(NODE_U32, cpus_alloc),
    MEMBER(NODE_U32, cpus_idle),
    MEMBER(NODE_U32, cpus_other),
    MEMBER(NODE_LOAD, cpu_load),
    MEMBER(NODE_U64, memory_bytes),
    MEMBER(NODE_U64, memory_alloc_bytes),
    MEMBER(NODE_U64, memory_free_bytes),
#undef MEMBER
};
enum { CLUSTER_AT = COUNT(columns) + 1, SEEN_TIME_AT };

static struct str text_of(const void *member)
{
    return db_fit(*(const struct str *)member, STORE_LIST_MAX);
}

static bool is_same(sqlite3_stmt *row, int at, enum node_kind kind, const void *member)
{
    double load;

    switch (kind) {
    case NODE_TEXT:
        return str_eq(db_text(row, at), text_of(member));
    case NODE_U32:
        return db_u32(row, at) == *(const uint32_t *)member;
    case NODE_U64:
        return db_u64(row, at) == *(const uint64_t *)member;
    case NODE_TIME:
        return db_i64(row, at, 0) == *(const int64_t *)member;
    case NODE_LOAD:
        load = *(const double *)member;
        return isnan(load) ? isnan(db_double(row, at)) : db_double(row, at) == load;
    }
    return false;
}

static bool is_same_node(sqlite3_stmt *row, const struct node_record *record)
{
    for (size_t i = 0; i < COUNT(columns); i++)
        if (!is_same(row, (int)i, columns[i].kind, (const char *)record + columns[i].offset))
            return false;
    return true;
}

static void bind_member(sqlite3_stmt *statement, int at, enum node_kind kind, const void *member)
{
    switch (kind) {
    case NODE_TEXT:
        db_bind_text(statement, at, text_of(member));
        break;
    case NODE_U32:
        db_bind_u32(statement, at, *(const uint32_t *)member);
        break;
    case NODE_U64:
        db_bind_u64(statement, at, *(const uint64_t *)member);
        break;
    case NODE_TIME:
        db_bind_time(statement, at, *(const int64_t *)member);
        break;
    case NODE_LOAD:
        db_bind_double(statement, at, *(const double *)member);
        break;
    }
}

/* What is to be done with the nodes of a cluster. */
struct changes {
    struct map by_name; /* what is still to be written: struct node_record */
    struct str *gone;   /* names */
    size_t n_gone, n_gone_room;
};

static int compare(struct store *store, int64_t cluster, struct changes *changes, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_CLUSTER_NODES, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    while ((r = db_step(statement, err)) > 0) {
        struct str name = db_text(statement, 0);
        void **place = map_get(&changes->by_name, name);

        if (place && is_same_node(statement, *place))
            *place = NULL;
        if (place)
            continue;
        changes->gone = heap_grow(changes->gone, changes->n_gone, &changes->n_gone_room,
                                  sizeof(*changes->gone));
        changes->gone[changes->n_gone++] = arena_str(&store->scratch, name);
    }
    sqlite3_reset(statement);
    return r;
}

static int write_node(struct store *store, enum store_statement which, int64_t cluster,
                      int64_t seen_time, const struct node_record *record, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < COUNT(columns); i++)
        bind_member(statement, (int)i + 1, columns[i].kind,
                    (const char *)record + columns[i].offset);
    db_bind_i64(statement, CLUSTER_AT, cluster);
    db_bind_i64(statement, SEEN_TIME_AT, seen_time);
    return db_run(statement, err);
}

static int put_node(struct store *store, int64_t cluster, int64_t seen_time,
                    const struct node_record *record, struct err *err)
{
    int r = write_node(store, SQL_CHANGE_NODE, cluster, seen_time, record, err);

    return r < 0 || sqlite3_changes(store->db)
               ? r
               : write_node(store, SQL_ADD_NODE, cluster, seen_time, record, err);
}

static int drop_node(struct store *store, int64_t cluster, struct str name, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_DROP_NODE, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    db_bind_text(statement, 2, name);
    return db_run(statement, err);
}

static int write_changes(struct store *store, int64_t cluster, int64_t seen_time,
                         const struct changes *changes, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < changes->by_name.n && r == 0; i++)
        if (changes->by_name.entries[i].value)
            r = put_node(store, cluster, seen_time, changes->by_name.entries[i].value, err);
    for (size_t i = 0; i < changes->n_gone && r == 0; i++)
        r = drop_node(store, cluster, changes->gone[i], err);
    return r < 0 ? r : store_write_mark(store, cluster, "nodes_seen", seen_time, err);
}

int store_put_nodes(struct store *store, struct str cluster, int64_t seen_time,
                    const struct node_record *records, size_t n, struct err *err)
{
    struct changes changes = { .gone = NULL };
    struct store_cluster *of;
    int r = store_cluster(store, cluster, &of, err);

    if (r < 0)
        return r;
    map_init(&changes.by_name, &store->scratch);
    for (size_t i = 0; i < n; i++) {
        struct str name = text_of(&records[i].name);

        if (name.n)
            *map_put(&changes.by_name, name) = (void *)(uintptr_t)&records[i];
    }
    r = compare(store, of->id, &changes, err);
    if (r == 0)
        r = write_changes(store, of->id, seen_time, &changes, err);
    map_free(&changes.by_name);
    free(changes.gone);
    arena_clear(&store->scratch);
    return r;
}
