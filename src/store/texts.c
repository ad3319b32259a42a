/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each text once: users, states, names of jobs, lists of nodes and who is in them. */
#include "model/hostlist.h"
#include "store/writer.h"

/* More hosts than the largest machine has; and how much is remembered. */
enum { HOSTS_MAX = 1 << 16, TEXTS_MAX = 100000, TEXT_BYTES_MAX = 32 << 20 };

enum { KINDS = TEXT_WORD | TEXT_LIST };

void store_forget_texts(struct store *store)
{
    map_free(&store->texts);
    arena_clear(&store->text_arena);
    map_init(&store->texts, &store->text_arena);
}

static int find_text(struct store *store, struct str text, uintptr_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_FIND_TEXT, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, text);
    r = db_step(statement, err);
    *ret = r > 0 ? (uintptr_t)db_i64(statement, 0, 0) << 2 |
                       ((uintptr_t)db_i64(statement, 1, 0) & KINDS)
                 : 0;
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static int add_text(struct store *store, struct str text, enum text_use use, uintptr_t *ret,
                    struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_ADD_TEXT, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, text);
    db_bind_i64(statement, 2, use);
    r = db_run(statement, err);
    *ret = (uintptr_t)sqlite3_last_insert_rowid(store->db) << 2 | (uintptr_t)use;
    return r;
}

static int set_kinds(struct store *store, uintptr_t known, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_SET_TEXT_KINDS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, (int64_t)(known >> 2));
    db_bind_i64(statement, 2, (int64_t)(known & KINDS));
    return db_run(statement, err);
}

static int change_member(struct store *store, enum store_statement which, int64_t node,
                         int64_t list, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, node);
    db_bind_i64(statement, 2, list);
    return db_run(statement, err);
}

/* A list that cannot be expanded has no members. */
static int change_members(struct store *store, enum store_statement which, struct str text,
                          int64_t list, struct err *err)
{
    struct hostlist hosts;
    struct arena arena = { 0 };
    int r = 0;

    if (hostlist_expand(text, &arena, HOSTS_MAX, &hosts, NULL) < 0)
        hosts.n = 0;
    for (size_t i = 0; i < hosts.n && r == 0; i++) {
        int64_t node;

        r = store_text(store, hosts.hosts[i], TEXT_WORD, &node, err);
        if (r == 0 && node)
            r = change_member(store, which, node, list, err);
    }
    arena_clear(&arena);
    return r;
}

static void remember(struct store *store, struct str text, uintptr_t known)
{
    if (store->texts.n >= TEXTS_MAX || store->text_arena.total_bytes >= TEXT_BYTES_MAX)
        store_forget_texts(store);
    *map_put(&store->texts, text) = (void *)known; /* NOLINT(performance-no-int-to-ptr) */
}

/* What is known of a text that is used in a way in which it was not before. */
static int learn(struct store *store, struct str text, enum text_use use, uintptr_t *known,
                 struct err *err)
{
    int r = 0;

    if (!*known)
        r = find_text(store, text, known, err);
    if (r == 0 && !*known)
        r = add_text(store, text, use, known, err);
    else if (r == 0 && (*known & use) != (uintptr_t)use) {
        *known |= use;
        r = set_kinds(store, *known, err);
    } else if (r == 0)
        use = TEXT_NAME; /* its members are there */
    if (r < 0)
        return r;
    remember(store, text, *known);
    return use == TEXT_LIST
               ? change_members(store, SQL_ADD_MEMBER, text, (int64_t)(*known >> 2), err)
               : 0;
}

int store_text(struct store *store, struct str text, enum text_use use, int64_t *ret,
               struct err *err)
{
    void **place;
    uintptr_t known;
    int r = 0;

    text = db_fit(text, use == TEXT_LIST ? STORE_LIST_MAX : STORE_TEXT_MAX);
    if (!text.n) {
        *ret = 0;
        return 0;
    }
    place = map_get(&store->texts, text);
    known = place ? (uintptr_t)*place : 0;
    if (!known || (known & use) != (uintptr_t)use)
        r = learn(store, text, use, &known, err);
    *ret = (int64_t)(known >> 2);
    return r;
}

int store_read_text(struct store *store, int64_t id, struct str *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_READ_TEXT, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    r = db_step(statement, err);
    *ret = r > 0 ? arena_str(&store->scratch, db_text(statement, 0)) : STR("");
    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

/* 1 if no run has it and it is no word; its text is in the scratch arena. */
static int is_unused(struct store *store, int64_t id, struct str *ret_text, bool *ret_is_list,
                     struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_UNUSED_TEXT, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    r = db_step(statement, err);
    if (r > 0) {
        *ret_text = arena_str(&store->scratch, db_text(statement, 0));
        *ret_is_list = db_i64(statement, 1, 0) & TEXT_LIST;
    }
    sqlite3_reset(statement);
    return r;
}

int store_drop_text(struct store *store, int64_t id, struct err *err)
{
    sqlite3_stmt *statement;
    struct str text;
    bool is_list;
    int r = is_unused(store, id, &text, &is_list, err);

    if (r <= 0)
        return r;
    r = is_list ? change_members(store, SQL_DROP_MEMBER, text, id, err) : 0;
    if (r == 0)
        r = store_use(store, SQL_DROP_TEXT, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    return db_run(statement, err);
}
