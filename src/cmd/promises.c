/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocations of accounts, compared with their usage in a period. */
#include "cmd/promises.h"

#include "base/buf.h"
#include "base/map.h"
#include "cmd/question.h"
#include "source/allocation_file.h"

#include <math.h>
#include <stdlib.h>

enum { LONGEST_KEY = 1 << 20 };

/* What an account was promised of the time in all periods that reach into it. */
struct promise {
    struct str cluster, account;
    struct {
        double seconds;      /* 0: nothing */
        struct map includes; /* other accounts whose use counts as well */
    } of[ALLOCATION_KINDS];
    bool is_asked_for, has_row;
};

/* Who includes an account. */
struct includer {
    struct promise *promise;
    struct includer *next;
};

struct promises {
    struct arena *arena;
    struct allocation_list file;
    const struct usage_question *question;
    struct map accounts;  /* cluster and account: a struct promise */
    struct map includers; /* likewise: struct includer, the last first */
    struct map rows;      /* all keys of a row: struct usage_row */
    struct buf key;
};

int promises_read(const char *path, struct arena *arena, struct promises **ret, struct err *err)
{
    struct allocation_list file;
    int code = allocation_file_read(path, arena, &file, err);

    if (code < 0)
        return code;
    *ret = ARENA_NEW(arena, struct promises);
    (*ret)->arena = arena;
    (*ret)->file = file;
    map_init(&(*ret)->accounts, arena);
    map_init(&(*ret)->includers, arena);
    map_init(&(*ret)->rows, arena);
    buf_init(&(*ret)->key, LONGEST_KEY);
    return 0;
}

struct promises *promises_free(struct promises *promises)
{
    if (!promises)
        return NULL;
    for (size_t i = 0; i < promises->accounts.n; i++) {
        struct promise *promise = promises->accounts.entries[i].value;

        for (int what = 0; what < ALLOCATION_KINDS; what++)
            map_free(&promise->of[what].includes);
    }
    map_free(&promises->accounts);
    map_free(&promises->includers);
    map_free(&promises->rows);
    buf_free(&promises->key);
    return NULL;
}

/* Texts as one, from which they could be told apart again. */
static void add_to_key(struct promises *promises, struct str text)
{
    buf_u64(&promises->key, text.n);
    buf_byte(&promises->key, ':');
    buf_put(&promises->key, text);
}

static struct str key_of_account(struct promises *promises, struct str cluster, struct str account)
{
    buf_reset(&promises->key);
    add_to_key(promises, cluster);
    add_to_key(promises, account);
    return buf_str(&promises->key);
}

/* Of the row that is as this one, but of that account. */
static struct str key_of_row(struct promises *promises, const struct usage_row *row,
                             struct str account)
{
    const struct usage_question *question = promises->question;

    buf_reset(&promises->key);
    for (size_t i = 0; i < question->n_keys; i++)
        add_to_key(promises, question->keys[i] == USAGE_ACCOUNT ? account : row->keys[i]);
    return buf_str(&promises->key);
}

static struct str account_of(const struct promises *promises, const struct usage_row *row)
{
    size_t at = 0;

    question_has_key(promises->question, USAGE_ACCOUNT, &at);
    return row->keys[at];
}

static struct str cluster_of(const struct promises *promises, const struct usage_row *row)
{
    const struct usage_question *question = promises->question;
    size_t at;

    return question_has_key(question, USAGE_CLUSTER, &at) ? row->keys[at]
                                                          : question->filter.clusters.word[0];
}

static struct str key_of_owner(struct promises *promises, const struct usage_row *row)
{
    return key_of_account(promises, cluster_of(promises, row), account_of(promises, row));
}

static struct promise *promise_of(struct promises *promises, const struct usage_row *row)
{
    void **promise = map_get(&promises->accounts, key_of_owner(promises, row));

    return promise ? *promise : NULL;
}

static bool is_one_of(struct str word, const struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (str_eq(word, words->word[i]))
            return true;
    return !words->n;
}

/* Of a cluster that is not known, nor is what was used of it. */
static bool is_known(struct str cluster, const struct cluster_row *clusters, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(cluster, clusters[i].name))
            return true;
    return false;
}

static double seconds_in(const struct usage_question *question,
                         const struct allocation_entry *entry)
{
    int64_t from = question->filter.from, to = question->filter.to;

    if (entry->from > from)
        from = entry->from;
    if (entry->to && entry->to < to)
        to = entry->to;
    return to > from ? (double)(to - from) : 0;
}

static struct promise *put_promise(struct promises *promises, const struct allocation_entry *entry)
{
    const struct job_filter *filter = &promises->question->filter;
    void **place =
        map_put(&promises->accounts, key_of_account(promises, entry->cluster, entry->account));
    struct promise *promise = *place;

    if (promise)
        return promise;
    *place = promise = ARENA_NEW(promises->arena, struct promise);
    promise->cluster = entry->cluster;
    promise->account = entry->account;
    promise->is_asked_for = is_one_of(entry->cluster, &filter->clusters) &&
                            is_one_of(entry->account, &filter->accounts);
    for (int what = 0; what < ALLOCATION_KINDS; what++)
        map_init(&promise->of[what].includes, promises->arena);
    return promise;
}

static void include(struct promises *promises, struct promise *promise, int what,
                    struct str account)
{
    struct includer *includer;
    void **place;

    if (map_get(&promise->of[what].includes, account))
        return; /* by an earlier period */
    map_put(&promise->of[what].includes, account);
    place = map_put(&promises->includers, key_of_account(promises, promise->cluster, account));
    includer = ARENA_NEW(promises->arena, struct includer);
    *includer = (struct includer){ promise, *place };
    *place = includer;
}

static void take_entry(struct promises *promises, const struct allocation_entry *entry)
{
    const struct allocation allocation = allocation_entry_promise(entry);
    double seconds = seconds_in(promises->question, entry);

    for (int what = 0; what < ALLOCATION_KINDS; what++) {
        double steady = allocation_steady(&allocation, what);
        struct promise *promise;

        if (isnan(steady) || seconds <= 0)
            continue;
        promise = put_promise(promises, entry);
        promise->of[what].seconds += steady * seconds;
        for (size_t i = 0; i < entry->n_includes; i++)
            include(promises, promise, what, entry->includes[i]);
    }
}

struct growing {
    struct usage_row *rows;
    size_t n, room;
};

/* As another one, unless it is there; of that one nothing but the keys is taken. */
static void add_row(struct promises *promises, struct promise *promise,
                    const struct usage_row *like, struct growing *growing)
{
    const struct usage_question *question = promises->question;
    size_t n_before = promises->rows.n;
    struct usage_row row = { 0 };

    promise->has_row = true;
    map_put(&promises->rows, key_of_row(promises, like, promise->account));
    if (promises->rows.n == n_before)
        return;
    for (size_t i = 0; i < question->n_keys; i++)
        row.keys[i] = question->keys[i] == USAGE_ACCOUNT ? promise->account : like->keys[i];
    growing->rows = heap_grow(growing->rows, growing->n, &growing->room, sizeof(row));
    growing->rows[growing->n++] = row;
}

static void add_rows_like(struct promises *promises, const struct usage_row *row,
                          struct growing *growing)
{
    void **includers = map_get(&promises->includers, key_of_owner(promises, row));

    for (struct includer *of = includers ? *includers : NULL; of; of = of->next)
        if (of->promise->is_asked_for)
            add_row(promises, of->promise, row, growing);
}

static void add_bare_row(struct promises *promises, struct promise *promise,
                         struct growing *growing)
{
    struct usage_row row = { 0 };
    size_t at;

    for (size_t i = 0; i < promises->question->n_keys; i++)
        row.keys[i] = STR("");
    if (question_has_key(promises->question, USAGE_CLUSTER, &at))
        row.keys[at] = promise->cluster;
    add_row(promises, promise, &row, growing);
}

/* Rows as they came, those of who includes their accounts, and those of who has none yet. */
static struct growing add_missing(struct promises *promises, const struct usage_row *rows, size_t n)
{
    struct growing growing = { heap_array(n + 1, sizeof(*rows)), n, n + 1 };

    for (size_t i = 0; i < n; i++) {
        struct promise *promise = promise_of(promises, &rows[i]);

        growing.rows[i] = rows[i];
        map_put(&promises->rows, key_of_row(promises, &rows[i], account_of(promises, &rows[i])));
        if (promise)
            promise->has_row = true;
    }
    for (size_t i = 0; i < n; i++)
        add_rows_like(promises, &rows[i], &growing);
    for (size_t i = 0; i < promises->accounts.n; i++) {
        struct promise *promise = promises->accounts.entries[i].value;

        if (promise->is_asked_for && !promise->has_row)
            add_bare_row(promises, promise, &growing);
    }
    return growing;
}

void promises_add_rows(struct promises *promises, const struct usage_question *question,
                       const struct cluster_row *clusters, size_t n_clusters,
                       struct usage_row **rows, size_t *n_rows)
{
    struct growing all;
    size_t n_keys = question->n_keys;

    promises->question = question;
    for (size_t i = 0; i < promises->file.n; i++)
        if (is_known(promises->file.entry[i].cluster, clusters, n_clusters))
            take_entry(promises, &promises->file.entry[i]);
    all = add_missing(promises, *rows, *n_rows);
    arena_adopt(promises->arena, all.rows);
    qsort_r(all.rows, all.n, sizeof(*all.rows), usage_row_compare, &n_keys);
    for (size_t i = 0; i < all.n; i++)
        *map_get(&promises->rows, key_of_row(promises, &all.rows[i],
                                             account_of(promises, &all.rows[i]))) = &all.rows[i];
    *rows = all.rows;
    *n_rows = all.n;
}

static double use_of(const struct usage_row *row, enum allocation_of what)
{
    return (double)(what == ALLOCATION_CPUS ? row->cpu_seconds : row->gpu_seconds);
}

double promises_share(struct promises *promises, const struct usage_row *row,
                      enum allocation_of what)
{
    const struct promise *promise = promise_of(promises, row);
    double used = use_of(row, what);

    if (!promise || promise->of[what].seconds <= 0)
        return NAN;
    for (size_t i = 0; i < promise->of[what].includes.n; i++) {
        struct str account = promise->of[what].includes.entries[i].key;
        void **other = map_get(&promises->rows, key_of_row(promises, row, account));

        if (other)
            used += use_of(*other, what);
    }
    return used / promise->of[what].seconds;
}
