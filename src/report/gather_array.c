/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole array, or all components of a heterogeneous job. */
#include "report/gather_runs.h"

#include <stdlib.h>

/* All runs that have the name: requeued ones too, and what both store and sacct tell of one. */
struct found {
    const struct gather *gather;
    struct arena *arena;
    enum facts_teller teller; /* of those that come next */
    struct job_facts *run;
    size_t n, room, most;
    struct run_clusters clusters;
    bool is_over;
};

static int take(void *ctx, const struct job_row *row)
{
    struct found *found = ctx;
    struct job_facts *run;

    run_clusters_note(&found->clusters, found->arena, row->key.cluster);
    if (found->n == found->most) {
        found->is_over = true;
        return -E2BIG;
    }
    found->run = heap_grow(found->run, found->n, &found->room, sizeof(*run));
    run = &found->run[found->n++];
    job_facts_clear(run);
    facts_take_row(run, found->arena, row, found->gather->now);
    runs_note_teller(found->gather, found->teller, &run->origin);
    return 0;
}

/* Whether accounting may know more. */
static bool has_open(const struct found *found)
{
    for (size_t i = 0; i < found->n; i++)
        if (!found->run[i].origin.has_accounting)
            return true;
    return !found->n;
}

/* A sacct that fails is no misfortune if the store has told something. */
static int take_from_sacct(struct found *found, const struct job_name *name, struct err *err)
{
    const struct run_sink sink = { take, found };
    struct job_name own = *name;
    size_t n = found->n;
    struct err why;
    int code;

    if (n)
        own.cluster = found->run[0].row.key.cluster;
    if (!runs_has_sacct(found->gather, own.cluster))
        return 0;
    found->teller = TOLD_BY_SACCT;
    code = runs_of_sacct(found->gather, &own, !n, &sink, &why);
    if (code == 0 || found->is_over)
        return 0;
    found->n = n;
    if (n)
        return 0;
    if (found->gather->store)
        return runs_none(found->gather, name, str_of(why.text), err);
    *err = why;
    return code;
}

static int find_runs(struct found *found, const struct job_name *name, struct err *err)
{
    const struct run_sink sink = { take, found };
    int code = 0;

    found->teller = TOLD_BY_STORE;
    if (found->gather->store)
        code = runs_of_store(found->gather, name, false, &sink, err);
    if (code == 0)
        code = run_clusters_check(&found->clusters, name, err);
    if (code == 0 && has_open(found))
        code = take_from_sacct(found, name, err);
    if (found->is_over)
        return err_set(err, E2BIG, "job %u has more than %zu tasks: ask for one, as in %u_7",
                       (unsigned)name->id, found->most, (unsigned)name->id);
    if (code == 0 && !found->n)
        code = runs_none(found->gather, name, STR(""), err);
    return code;
}

/* Of the newest job that has the id, each task once. */
static void keep_newest(struct found *found)
{
    struct run_place *place = heap_alloc(found->n * sizeof(*place));
    struct job_facts *run;
    size_t n;

    for (size_t i = 0; i < found->n; i++)
        place[i] = runs_place(&found->run[i].row, i);
    n = runs_keep_newest(place, found->n);
    run = heap_alloc(n * sizeof(*run));
    for (size_t i = 0; i < n; i++)
        run[i] = found->run[place[i].at];
    free(place);
    free(found->run);
    found->run = run;
    found->n = n;
}

static int complete(struct found *found, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < found->n && code == 0; i++) {
        if (found->gather->store)
            code = runs_take_kept(found->gather, &found->run[i], found->arena, err);
        facts_finish(&found->run[i]);
    }
    return code;
}

int gather_array(const struct gather *gather, const struct job_name *name, size_t most,
                 struct arena *arena, struct job_facts **ret, size_t *ret_n, struct err *err)
{
    const struct job_name whole = { name->cluster, name->id, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 };
    struct found found = { .gather = gather, .arena = arena, .most = most };
    int code;

    if (gather->store)
        store_reader_deadline(gather->store, gather->deadline_ns);
    code = find_runs(&found, &whole, err);
    if (code == 0) {
        keep_newest(&found);
        code = complete(&found, err);
    }
    arena_adopt(arena, found.run);
    if (code == 0) {
        *ret = found.run;
        *ret_n = found.n;
    }
    return code;
}
