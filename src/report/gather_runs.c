/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the runs of a job in the store and with sacct. */
#include "report/gather_runs.h"

#include "base/quote.h"
#include "model/tres.h"

#include <math.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 400 };

static bool has_name(const struct job_name *name, const struct job_row *row)
{
    const struct job_record *record = &row->record;

    if (name->cluster.n && !str_eq(name->cluster, row->key.cluster))
        return false;
    if (name->task != MODEL_UNKNOWN_U32)
        return record->array_job_id == name->id && record->array_task_id == name->task;
    if (name->offset != MODEL_UNKNOWN_U32)
        return record->het_job_id == name->id && record->het_offset == name->offset;
    return record->id == name->id || record->array_job_id == name->id ||
           record->het_job_id == name->id;
}

/* What passes rows on. */
struct passing {
    const struct gather *gather;
    const struct job_name *name;
    const struct run_sink *sink;
};

static int pass_row(void *ctx, const struct job_row *row)
{
    struct passing *passing = ctx;

    return has_name(passing->name, row) ? passing->sink->take(passing->sink->ctx, row) : 0;
}

int runs_of_store(const struct gather *gather, const struct job_name *name, bool wants_extra,
                  const struct run_sink *sink, struct err *err)
{
    struct passing passing = { gather, name, sink };
    struct job_order order = { .wants_extra = wants_extra };
    struct job_filter filter;

    job_filter_clear(&filter);
    if (name->cluster.n)
        filter.clusters = (struct words){ &name->cluster, 1 };
    filter.ids = &name->id;
    filter.n_ids = 1;
    filter.array_task_id = name->task;
    filter.het_offset = name->offset;
    return store_jobs(gather->store, &filter, &order, gather->now, pass_row, &passing, err);
}

static void compute_times(struct job_row *row, int64_t now)
{
    const struct job_record *record = &row->record;
    bool is_open = !job_record_has_ended(record);
    int64_t start = job_record_never_ran(record) ? 0 : record->start_time;
    int64_t end = is_open && job_holds_resources(record->state) ? now : record->end_time;
    int64_t begun = start ? start : is_open ? now : 0;
    bool knows_suspended = record->suspended_seconds < INT64_MAX;
    int64_t suspended = knows_suspended ? (int64_t)record->suspended_seconds : 0;

    row->elapsed_seconds = row->wait_seconds = -1;
    /* How long a suspended job has run, the queue does not say. */
    if (start && end >= start && (knows_suspended || record->state.base != JOB_SUSPENDED))
        row->elapsed_seconds = end - start > suspended ? end - start - suspended : 0;
    if (record->eligible_time && begun >= record->eligible_time)
        row->wait_seconds = begun - record->eligible_time;
}

static double efficiency_of(const struct job_row *row)
{
    const struct job_record *record = &row->record;

    if (!job_record_has_ended(record) || row->elapsed_seconds <= 0 || !record->cpus ||
        record->cpus == MODEL_UNKNOWN_U32)
        return NAN;
    return record->cpu_seconds / ((double)record->cpus * (double)row->elapsed_seconds);
}

void runs_row_of(const struct job_record *record, struct str cluster, int64_t now,
                 char types[RUN_GPU_TYPES_MAX], struct job_row *ret)
{
    struct tres tres;

    *ret = (struct job_row){
        .key = { record->submit_time, record->id, cluster },
        .record = *record,
        /* Slurm sets the submit time anew at each restart. */
        .first_submit_time = record->restarts ? 0 : record->submit_time,
    };
    tres_parse(record->tres, &tres);
    ret->gpus = tres.gpus;
    ret->billing = tres.billing;
    ret->gpu_types = (struct str){ types, tres_gpu_types(record->tres, types, RUN_GPU_TYPES_MAX) };
    compute_times(ret, now);
    ret->cpu_efficiency = efficiency_of(ret);
}

void runs_note_teller(const struct gather *gather, enum facts_teller teller,
                      struct facts_origin *origin)
{
    origin->teller = teller;
    if (teller == TOLD_BY_STORE)
        origin->is_simulated = store_reader_is_simulated(gather->store);
}

static int pass_record(void *ctx, const struct job_record *record, struct err *err)
{
    const struct passing *passing = ctx;
    char types[RUN_GPU_TYPES_MAX];
    struct job_row row;
    int code;

    runs_row_of(record, passing->name->cluster, passing->gather->now, types, &row);
    code = pass_row(ctx, &row);
    return code < 0 ? err_set(err, -code, "too many runs") : 0;
}

/* Half of the time: others are to be asked after it. */
static int64_t deadline_of_sacct(const struct gather *gather)
{
    int64_t now = clock_mono(&clock_real);

    return gather->deadline_ns > now ? now + (gather->deadline_ns - now) / 2 : gather->deadline_ns;
}

int runs_of_sacct(const struct gather *gather, const struct job_name *name, bool asks_cluster,
                  const struct run_sink *sink, struct err *err)
{
    struct job_name own = *name; /* its answer names no cluster */
    struct passing passing = { gather, &own, sink };
    struct sacct_question question = {
        .ids = &name->id,
        .n_ids = 1,
        .as_of = gather->now,
        .deadline_ns = deadline_of_sacct(gather),
        .cancelled = gather->cancelled,
        .record = pass_record,
        .ctx = &passing,
    };
    struct sacct_result result;

    if (gather->sacct_cluster.n)
        own.cluster = gather->sacct_cluster;
    else if (asks_cluster)
        question.cluster = name->cluster;
    return sacct_ask(gather->sacct, &question, &result, err);
}

bool runs_has_sacct(const struct gather *gather, struct str cluster)
{
    return gather->sacct &&
           (!cluster.n || !gather->sacct_cluster.n || str_eq(cluster, gather->sacct_cluster));
}

struct run_place runs_place(const struct job_row *row, size_t at)
{
    const struct job_record *record = &row->record;
    bool has_ended = job_record_has_ended(record);

    return (struct run_place){
        .job_id = row->key.job_id,
        .parent = record->array_job_id ? record->array_job_id : record->het_job_id,
        .part = record->het_job_id ? record->het_offset : record->array_task_id,
        .submit_time = row->key.submit_time,
        .first_submit_time = row->first_submit_time,
        .end = has_ended + (has_ended && record->origin == RECORD_ACCOUNTED),
        .at = at,
    };
}

/* Ids are used again after years; all of one job were submitted at once. */
static bool are_kin(const struct run_place *a, const struct run_place *b)
{
    return a->parent && a->parent == b->parent &&
           (a->first_submit_time == b->first_submit_time || !a->first_submit_time ||
            !b->first_submit_time);
}

bool runs_are_kin(const struct job_row *a, const struct job_row *b)
{
    const struct run_place of_a = runs_place(a, 0), of_b = runs_place(b, 0);

    return are_kin(&of_a, &of_b);
}

/* By part; of one, the newest run first, and of that what is known of its end. */
static int by_part(const void *a, const void *b)
{
    const struct run_place *left = a, *right = b;

    if (left->part != right->part)
        return left->part < right->part ? -1 : 1;
    if (left->job_id != right->job_id)
        return left->job_id < right->job_id ? -1 : 1;
    if (left->submit_time != right->submit_time)
        return left->submit_time > right->submit_time ? -1 : 1;
    if (left->end != right->end)
        return left->end > right->end ? -1 : 1;
    return left->at < right->at ? -1 : 1;
}

static struct run_place find_newest(const struct run_place *place, size_t n)
{
    size_t newest = 0;

    for (size_t i = 1; i < n; i++)
        if (place[i].submit_time > place[newest].submit_time)
            newest = i;
    return place[newest];
}

size_t runs_keep_newest(struct run_place *place, size_t n)
{
    size_t n_kin = 0, n_kept = 0;
    struct run_place newest;

    if (!n)
        return 0;
    newest = find_newest(place, n);
    for (size_t i = 0; i < n; i++)
        if (place[i].job_id == newest.job_id || are_kin(&place[i], &newest))
            place[n_kin++] = place[i];
    qsort(place, n_kin, sizeof(*place), by_part);
    for (size_t i = 0; i < n_kin; i++)
        if (!i || place[i].job_id != place[n_kept - 1].job_id)
            place[n_kept++] = place[i];
    return n_kept;
}

void run_clusters_note(struct run_clusters *clusters, struct arena *arena, struct str cluster)
{
    for (size_t i = 0; i < clusters->n; i++)
        if (str_eq(clusters->name[i], cluster))
            return;
    if (clusters->n < RUN_CLUSTERS_MAX)
        clusters->name[clusters->n++] = arena_str(arena, cluster);
}

int run_clusters_check(const struct run_clusters *clusters, const struct job_name *name,
                       struct err *err)
{
    struct job_name example = *name;
    struct buf list, shown;
    int code = 0;

    if (clusters->n < 2)
        return 0;
    buf_init(&list, NAME_MAX_BYTES);
    buf_init(&shown, NAME_MAX_BYTES);
    for (size_t i = 0; i < clusters->n; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", quote(clusters->name[i]).text);
    example.cluster = clusters->name[0];
    job_name_put(&shown, &example);
    code = err_set(err, ENOTUNIQ, "job %u is known of several clusters: %s; say which, as in %s",
                   (unsigned)name->id, buf_str(&list).p, quote(buf_str(&shown)).text);
    buf_free(&list);
    buf_free(&shown);
    return code;
}

int runs_none(const struct gather *gather, const struct job_name *name, struct str why,
              struct err *err)
{
    bool has_sacct = runs_has_sacct(gather, name->cluster) && !why.n;
    struct buf shown;
    int code;

    buf_init(&shown, NAME_MAX_BYTES);
    job_name_put(&shown, name);
    code = err_set(err, ENOENT, "there is no job %s in %s%s%.*s", quote(buf_str(&shown)).text,
                   !gather->store ? "Slurm's accounting"
                   : has_sacct    ? "the store or in Slurm's accounting"
                                  : "the store",
                   why.n ? "; sacct could not be asked: " : "", STR_ARG(why));
    buf_free(&shown);
    return code;
}

int runs_take_finals(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                     struct err *err)
{
    struct arena scratch = { 0 };
    struct final_record *finals;
    struct err ignored;
    size_t n;
    int code = store_finals(gather->store, &facts->row.key, &scratch, &finals, &n, err);

    /* One that cannot be read says nothing of the others. */
    for (size_t i = 0; i < n && code == 0; i++)
        facts_take_final(facts, arena, &finals[i], &ignored);
    arena_clear(&scratch);
    return code;
}

void runs_take_summary(struct job_facts *facts, struct arena *arena, struct str summary)
{
    struct err ignored;

    if (summary.n && !facts->origin.has_series)
        facts_take_summary(facts, arena, summary, &ignored);
}

int runs_take_kept(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                   struct err *err)
{
    struct arena scratch = { 0 };
    struct str summary = STR("");
    int code = runs_take_finals(gather, facts, arena, err);

    if (code == 0)
        code = store_summary(gather->store, &facts->row.key, &scratch, &summary, err);
    if (code == 0)
        runs_take_summary(facts, arena, summary);
    arena_clear(&scratch);
    return code;
}
