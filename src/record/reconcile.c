/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the comparisons and collects their differences. */
#include "record/reconcile_inside.h"

#include "base/quote.h"

#include <stdio.h>

const struct str reconcile_words[RECONCILE_COMPARISONS] = {
    [RECONCILE_RUNS] = STR_INIT("runs"),
    [RECONCILE_USAGE] = STR_INIT("usage"),
    [RECONCILE_ENDED] = STR_INIT("ended"),
};

const struct reconcile_reason_words reconcile_reasons[RECONCILE_REASONS] = {
    [RECONCILE_UNEXPLAINED] = { STR_INIT("unexplained"), "unexplained" },
    [RECONCILE_NOT_POLLED] = { STR_INIT("not_polled"), "changed since slurmdbd was last polled" },
    [RECONCILE_BEFORE_STORE] = { STR_INIT("before_store"),
                                 "from before the time that the store covers" },
    [RECONCILE_DELETED] = { STR_INIT("deleted"),
                            "deleted from the store (--store.retention, --store.max-size)" },
    [RECONCILE_LEFT_OUT] = { STR_INIT("left_out"),
                             "not recorded here (--jobs.accounts, --jobs.users)" },
    [RECONCILE_PURGED] = { STR_INIT("purged"), "deleted from slurmdbd (PurgeJobAfter)" },
    [RECONCILE_PRIVATE] = { STR_INIT("private_data"), "hidden by slurmdbd (PrivateData)" },
    [RECONCILE_RESIZED] = { STR_INIT("resized"), "the job changed its size" },
    [RECONCILE_SUSPENDED] = { STR_INIT("suspended"),
                              "suspended jobs: slurmdbd does not say when they were suspended" },
    [RECONCILE_IDLE_RESERVED] = { STR_INIT("idle_reserved"),
                                  "idle time of reservations, which sreport adds" },
    [RECONCILE_NOT_ROLLED_UP] = { STR_INIT("not_rolled_up"), "not yet rolled up by slurmdbd" },
};

static struct reconcile_row *find_row(struct reconciling *rec, enum reconcile_comparison comparison,
                                      const char *what, enum reconcile_reason reason)
{
    struct reconcile_result *result = rec->result;
    struct reconcile_row *row = result->row;

    for (; row < result->row + result->n; row++)
        if (row->comparison == comparison && row->reason == reason && strcmp(row->what, what) == 0)
            return row;
    if (result->n == RECONCILE_ROWS_MAX) {
        result->is_over = true;
        return NULL;
    }
    result->n++;
    *row = (struct reconcile_row){ .comparison = comparison, .reason = reason, .what = what };
    return row;
}

void reconcile_note(struct reconciling *rec, enum reconcile_comparison comparison, const char *what,
                    enum reconcile_reason reason, const char *format, ...)
{
    struct reconcile_row *row = find_row(rec, comparison, what, reason);
    va_list arguments;

    if (!row)
        return;
    if (row->count < RECONCILE_EXAMPLES) {
        va_start(arguments, format);
        vsnprintf(row->examples[row->count], RECONCILE_EXAMPLE_MAX, format, arguments);
        va_end(arguments);
    }
    row->count++;
}

struct reconcile_pair *reconcile_pair(struct reconciling *rec, struct str account, struct str user)
{
    char key[512];
    int n = snprintf(key, sizeof(key), "%.*s|%.*s", STR_ARG(account), STR_ARG(user));
    void **place = map_put(&rec->pairs,
                           (struct str){ key, n < (int)sizeof(key) ? (size_t)n : sizeof(key) - 1 });

    if (!*place) {
        struct reconcile_pair *pair = ARENA_NEW(rec->arena, struct reconcile_pair);

        pair->account = arena_str(rec->arena, account);
        pair->user = arena_str(rec->arena, user);
        *place = pair;
    }
    return *place;
}

void state_count(struct reconciling *rec, struct state_counts *counts, struct str state,
                 uint64_t more)
{
    size_t i = 0;

    while (i < counts->n && !str_eq(counts->of[i].state, state))
        i++;
    if (i == RECONCILE_STATES_MAX)
        return;
    if (i == counts->n)
        counts->of[counts->n++].state = arena_str(rec->arena, state);
    counts->of[i].count += more;
}

uint64_t state_get(const struct state_counts *counts, struct str state)
{
    for (size_t i = 0; i < counts->n; i++)
        if (str_eq(counts->of[i].state, state))
            return counts->of[i].count;
    return 0;
}

static int find_cluster(struct reconciling *rec)
{
    struct cluster_row *rows;
    size_t n;
    int r = store_clusters(rec->config->reader, rec->arena, &rows, &n, rec->err);

    for (size_t i = 0; i < n && r == 0; i++) {
        if (str_eq(rows[i].name, rec->config->cluster)) {
            rec->cluster = rows[i];
            return 0;
        }
    }
    return r < 0 ? r
                 : err_set(rec->err, ENOENT, "the store has no cluster \"%s\" (see --cluster)",
                           quote(rec->config->cluster).text);
}

int reconcile_run(const struct reconcile_config *config, struct arena *arena,
                  struct reconcile_result *ret, struct err *err)
{
    struct reconciling *rec = heap_alloc(sizeof(*rec));
    int r;

    *ret = (struct reconcile_result){
        .from = config->from,
        .to = config->now,
        .row = ARENA_ARRAY(arena, struct reconcile_row, RECONCILE_ROWS_MAX),
    };
    rec->config = config;
    rec->result = ret;
    rec->arena = arena;
    rec->err = err;
    map_init(&rec->pairs, arena);
    r = find_cluster(rec);
    if (r == 0)
        r = audit_settings(config->audit, &rec->settings, err);
    if (r == 0)
        r = reconcile_runs(rec);
    if (r == 0)
        r = reconcile_usage(rec);
    if (r == 0)
        r = reconcile_ended(rec);
    map_free(&rec->pairs);
    free(rec);
    return r;
}

uint64_t reconcile_count(const struct reconcile_result *result,
                         enum reconcile_comparison comparison, bool is_explained)
{
    uint64_t count = 0;

    for (size_t i = 0; i < result->n; i++)
        if (result->row[i].comparison == comparison &&
            (result->row[i].reason != RECONCILE_UNEXPLAINED) == is_explained)
            count += result->row[i].count;
    return count;
}
