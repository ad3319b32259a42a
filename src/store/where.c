/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the WHERE clause of a filter. */
#include "store/where.h"

#include "model/hostlist.h"

#include <math.h>
#include <stdlib.h>

enum { LONGEST_TEXT = 1 << 17 };

struct bound {
    bool is_text;
    int64_t number;
    double real; /* NAN: it is a number */
    struct str text;
};

static struct bound *add_bound(struct where *where)
{
    where->bound =
        heap_grow(where->bound, where->n_bound, &where->bound_room, sizeof(*where->bound));
    where->bound[where->n_bound] = (struct bound){ .real = NAN };
    return &where->bound[where->n_bound++];
}

static void put_parameter(struct where *where)
{
    buf_printf(&where->text, "?%zu", (size_t)where->first_parameter - 1 + where->n_bound);
}

static void put_number(struct where *where, int64_t number)
{
    add_bound(where)->number = number;
    put_parameter(where);
}

static void put_real(struct where *where, double real)
{
    add_bound(where)->real = real;
    put_parameter(where);
}

static void put_text(struct where *where, struct str text)
{
    struct bound *bound = add_bound(where);

    bound->is_text = true;
    bound->text = text;
    put_parameter(where);
}

static void put_numbers(struct where *where, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_text(&where->text, i ? "," : "(");
        put_number(where, numbers[i]);
    }
    buf_byte(&where->text, ')');
}

static bool is_among(const int64_t *ids, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

int where_ids(struct where *where, enum reader_names of, const struct words *words, int64_t **ret,
              size_t *ret_n)
{
    int64_t *ids = ARENA_ARRAY(&where->arena, int64_t, words->n);
    size_t n = 0;

    for (size_t i = 0; i < words->n; i++) {
        int r = reader_id(where->reader, of, words->word[i], &ids[n], where->err);

        if (r < 0)
            return r;
        n += ids[n] != 0 && !is_among(ids, n, ids[n]);
    }
    *ret = ids;
    *ret_n = n;
    return 0;
}

static int put_names(struct where *where, enum reader_names of, const struct words *words,
                     const char *before)
{
    int64_t *ids;
    size_t n;
    int r;

    if (!words->n)
        return 0;
    r = where_ids(where, of, words, &ids, &n);
    if (r < 0)
        return r;
    if (!n) {
        where->is_empty = true;
        return 0;
    }
    buf_text(&where->text, before);
    put_numbers(where, ids, n);
    return 0;
}

/* A text of several words has one of them: what stands around the words is put around both. */
static void put_parts(struct where *where, const struct words *words, const char *before,
                      char begin, char end)
{
    for (size_t i = 0; i < words->n; i++) {
        struct buf part;

        buf_init(&part, words->word[i].n + 3);
        buf_byte(&part, begin);
        buf_put(&part, words->word[i]);
        buf_byte(&part, end);
        buf_text(&where->text, i ? " OR " : " AND (");
        buf_text(&where->text, before);
        put_text(where, arena_str(&where->arena, buf_str(&part)));
        buf_text(&where->text, ") > 0");
        buf_free(&part);
    }
    if (words->n)
        buf_byte(&where->text, ')');
}

/* "r", "Running" and "RUNNING" as the store has it. */
static struct str spell_state(struct arena *arena, struct str word)
{
    struct job_state state = JOB_STATE_NONE;
    struct str spelt = word;
    struct buf buf;

    buf_init(&buf, 256);
    if (job_state_add(&state, word)) {
        job_state_put(&buf, state);
        spelt = arena_str(arena, buf_str(&buf));
    }
    buf_free(&buf);
    return spelt;
}

static void put_states(struct where *where)
{
    struct arena *arena = &where->arena;
    const struct words *states = &where->filter->states;
    struct str *spelt = ARENA_ARRAY(arena, struct str, states->n);

    for (size_t i = 0; i < states->n; i++)
        spelt[i] = spell_state(arena, states->word[i]);
    put_parts(where, &(struct words){ spelt, states->n },
              "instr('+' || (SELECT value FROM text WHERE id = state) || '+', ", '+', '+');
}

/* Every host of every list among the words. */
static int expand_nodes(struct where *where, struct words *ret)
{
    struct arena *arena = &where->arena;
    const struct words *nodes = &where->filter->nodes;
    struct str *hosts = NULL;
    size_t n = 0, room = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        struct hostlist list;
        int r = hostlist_expand(nodes->word[i], arena, STORE_NODES_MAX, &list, where->err);

        for (size_t k = 0; k < list.n && r == 0; k++) {
            hosts = heap_grow(hosts, n, &room, sizeof(*hosts));
            hosts[n++] = list.hosts[k];
        }
        if (r < 0 || n > STORE_NODES_MAX) {
            free(hosts);
            return r < 0 ? err_prefix(where->err, "nodes")
                         : err_set(where->err, E2BIG, "name at most %d nodes", STORE_NODES_MAX);
        }
    }
    arena_adopt(arena, hosts);
    *ret = (struct words){ hosts, n };
    return 0;
}

static int put_nodes(struct where *where)
{
    struct words hosts = { NULL, 0 };
    int r;

    if (!where->filter->nodes.n)
        return 0;
    r = expand_nodes(where, &hosts);
    if (r == 0)
        r = put_names(where, READER_TEXTS, &hosts,
                      " AND node_list IN (SELECT list FROM member WHERE node IN ");
    if (r == 0 && !where->is_empty)
        buf_byte(&where->text, ')');
    return r;
}

static int put_visible(struct where *where)
{
    const struct {
        const struct words *words;
        const char *before;
    } rows[] = {
        { &where->filter->visible_users, "user IN " },
        { &where->filter->visible_accounts, "account IN " },
    };
    bool is_asked = rows[0].words->n || rows[1].words->n, is_first = true;

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t *ids;
        size_t n;
        int r = where_ids(where, READER_TEXTS, rows[i].words, &ids, &n);

        if (r < 0)
            return r;
        if (!n)
            continue;
        buf_text(&where->text, is_first ? " AND (" : " OR ");
        buf_text(&where->text, rows[i].before);
        put_numbers(where, ids, n);
        is_first = false;
    }
    if (!is_first)
        buf_byte(&where->text, ')');
    else if (is_asked)
        where->is_empty = true;
    return 0;
}

static void put_ids(struct where *where)
{
    static const char *const columns[] = { " AND (job_id IN ", " OR array_job_id IN ",
                                           " OR het_job_id IN " };
    const struct job_filter *filter = where->filter;
    int64_t *ids = ARENA_ARRAY(&where->arena, int64_t, filter->n_ids);

    for (size_t i = 0; i < filter->n_ids; i++)
        ids[i] = filter->ids[i];
    for (size_t i = 0; i < COUNT(columns) && filter->n_ids; i++) {
        buf_text(&where->text, columns[i]);
        put_numbers(where, ids, filter->n_ids);
    }
    if (filter->n_ids)
        buf_byte(&where->text, ')');
}

static void put_times(struct where *where)
{
    const struct job_filter *filter = where->filter;

    if (filter->by_end) {
        buf_text(&where->text, " AND is_counted <> 0 AND end_time >= ");
        put_number(where, filter->from);
        buf_text(&where->text, " AND end_time < ");
        put_number(where, filter->to ? filter->to : INT64_MAX);
    } else if (filter->from) {
        buf_text(&where->text, " AND (is_counted = 0 OR end_time IS NULL OR end_time >= ");
        put_number(where, filter->from);
        buf_byte(&where->text, ')');
    }
}

/* Of a run that has ended. */
#define HELD "cpus * (end_time - start_time - ifnull(suspended_seconds, 0))"

static void put_amounts(struct where *where)
{
    const struct job_filter *filter = where->filter;
    const struct {
        const char *before;
        double real;
    } reals[] = {
        { " AND is_counted <> 0 AND " HELD " > 0 AND cpu_seconds / (" HELD ") < ",
          filter->efficiency_below },
        { " AND is_counted <> 0 AND " HELD " > 0 AND cpu_seconds / (" HELD ") > ",
          filter->efficiency_above },
    };
    const struct {
        const char *before;
        uint64_t number, unset;
    } numbers[] = {
        { " AND gpus >= ", filter->min_gpus, 0 },
        { " AND cpus >= ", filter->min_cpus, 0 },
        { " AND array_task_id = ", filter->array_task_id, MODEL_UNKNOWN_U32 },
        { " AND het_offset = ", filter->het_offset, MODEL_UNKNOWN_U32 },
    };

    for (size_t i = 0; i < COUNT(reals); i++) {
        if (isnan(reals[i].real))
            continue;
        buf_text(&where->text, reals[i].before);
        put_real(where, reals[i].real);
    }
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (numbers[i].number == numbers[i].unset)
            continue;
        buf_text(&where->text, numbers[i].before);
        put_number(where, numbers[i].number > INT64_MAX ? INT64_MAX : (int64_t)numbers[i].number);
    }
}

static int put_filter(struct where *where)
{
    const struct job_filter *filter = where->filter;
    const struct {
        enum reader_names of;
        const struct words *words;
        const char *before;
        bool is_skipped;
    } rows[] = {
        { READER_CLUSTERS, &filter->clusters, " AND cluster IN ", false },
        { READER_TEXTS, &filter->users, " AND user IN ", where->skipped == &filter->users },
        { READER_TEXTS, &filter->accounts, " AND account IN ",
          where->skipped == &filter->accounts },
        { READER_TEXTS, &filter->qos, " AND qos IN ", false },
        { READER_TEXTS, &filter->names, " AND name IN ", false },
        { READER_TEXTS, &filter->reservations, " AND reservation IN ", false },
    };
    int r = 0;

    for (size_t i = 0; i < COUNT(rows) && r == 0; i++)
        if (!rows[i].is_skipped)
            r = put_names(where, rows[i].of, rows[i].words, rows[i].before);
    if (r == 0)
        r = put_nodes(where);
    if (r == 0)
        r = put_visible(where);
    if (r < 0)
        return r;
    if (!where->skips_ids)
        put_ids(where);
    put_parts(where, &filter->partitions,
              "instr(',' || (SELECT value FROM text WHERE id = partition) || ',', ", ',', ',');
    put_states(where);
    put_parts(where, &filter->gpu_types,
              "instr(',' || (SELECT value FROM text WHERE id = gpu_types) || '=', ", ',', '=');
    put_times(where);
    put_amounts(where);
    return 0;
}

static int check_words(const struct job_filter *filter, struct err *err)
{
    const struct words *words[] = {
        &filter->clusters, &filter->users,        &filter->accounts,      &filter->partitions,
        &filter->qos,      &filter->states,       &filter->nodes,         &filter->gpu_types,
        &filter->names,    &filter->reservations, &filter->visible_users, &filter->visible_accounts
    };
    size_t most = filter->n_ids;

    for (size_t i = 0; i < COUNT(words); i++)
        most = words[i]->n > most ? words[i]->n : most;
    if (most > STORE_WORDS_MAX)
        return err_set(err, E2BIG, "name at most %d of one kind", STORE_WORDS_MAX);
    return 0;
}

int where_make(struct where *where)
{
    size_t most = (size_t)sqlite3_limit(where->reader->db, SQLITE_LIMIT_VARIABLE_NUMBER, -1);
    int r;

    buf_init(&where->text, LONGEST_TEXT);
    r = check_words(where->filter, where->err);
    if (r == 0)
        r = put_filter(where);
    if (r == 0 && (where->text.over || (size_t)where->first_parameter + where->n_bound > most))
        r = err_set(where->err, E2BIG, "too much is asked for at once: name less");
    return r;
}

void where_free(struct where *where)
{
    buf_free(&where->text);
    free(where->bound);
    arena_clear(&where->arena);
}

static void bind(const struct bound *bound, int at, sqlite3_stmt *statement)
{
    if (bound->is_text)
        db_bind_text(statement, at, bound->text);
    else if (isnan(bound->real))
        db_bind_i64(statement, at, bound->number);
    else
        db_bind_double(statement, at, bound->real);
}

void where_bind(const struct where *where, sqlite3_stmt *statement)
{
    for (size_t i = 0; i < where->n_bound; i++)
        bind(&where->bound[i], where->first_parameter + (int)i, statement);
}
