/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run: which is meant, and all that is known of it. */
#include "report/gather.h"

#include "base/quote.h"
#include "report/gather_runs.h"

#include <math.h>

enum {
    EARLIER_RUNS = 20,
    EARLIER_DAYS = 90,
    DAY = 86400,
};

/* Earlier runs are of use, but nobody waits for them: of somebody with a million jobs, those count
 * that were found until then. */
static const int64_t harmless_ns = 50 * NS_PER_MS;

/* The search for the newest run. */
struct search {
    const struct gather *gather;
    struct arena *arena;
    enum facts_teller teller;
    struct job_facts *found; /* its row */
    bool has_found;
    bool is_newest_first; /* rows come so */
    bool has_kin;         /* other tasks or components have the name too */
    struct run_clusters clusters;
};

static void take_found(struct search *search, const struct job_row *row)
{
    facts_take_row(search->found, search->arena, row, search->found->now);
    runs_note_teller(search->gather, search->teller, &search->found->origin);
    search->has_found = true;
}

static int consider(void *ctx, const struct job_row *row)
{
    struct search *search = ctx;
    const struct job_row *found = &search->found->row;
    bool is_kin;

    run_clusters_note(&search->clusters, search->arena, row->key.cluster);
    if (!search->has_found) {
        take_found(search, row);
        return 0;
    }
    if (!str_eq(row->key.cluster, found->key.cluster))
        return 0;
    is_kin = runs_are_kin(row, found);
    if (is_kin && row->key.job_id != found->key.job_id) {
        search->has_kin = true;
        return search->is_newest_first ? -ECANCELED : 0;
    }
    if (row->key.submit_time > found->key.submit_time) {
        search->has_kin &= is_kin;
        take_found(search, row);
    }
    return 0;
}

/* Whether what was found is one run of one cluster. */
static int check_found(const struct search *search, const struct job_name *name, struct err *err)
{
    const struct job_record *record = &search->found->row.record;
    int code = run_clusters_check(&search->clusters, name, err);

    if (code < 0 || !search->has_found || (!search->has_kin && record->tasks <= 1))
        return code;
    if (record->het_job_id)
        return err_set(err, ENOTUNIQ,
                       "job %u has several components: name one, as in %u+0 or %u+1, or take all "
                       "of them with --array",
                       (unsigned)name->id, (unsigned)name->id, (unsigned)name->id);
    return err_set(err, ENOTUNIQ,
                   "job %u is an array of several tasks: name one as %u_TASK, as in %u_7, or take "
                   "all of them with --array",
                   (unsigned)name->id, (unsigned)record->array_job_id,
                   (unsigned)record->array_job_id);
}

static int search_store(const struct gather *gather, const struct job_name *name,
                        struct search *search, struct err *err)
{
    const struct run_sink sink = { consider, search };
    int code;

    if (!gather->store)
        return 0;
    search->is_newest_first = true;
    code = runs_of_store(gather, name, true, &sink, err);
    return code == 0 || code == -ECANCELED ? check_found(search, name, err) : code;
}

static int search_sacct(const struct gather *gather, const struct job_name *name, bool asks_cluster,
                        struct search *search, struct err *err)
{
    const struct run_sink sink = { consider, search };
    int code = runs_of_sacct(gather, name, asks_cluster, &sink, err);

    return code < 0 ? code : check_found(search, name, err);
}

/* Whether accounting knows more: the end of the same run, or one that came after it. */
static bool is_more(const struct gather *gather, const struct job_row *told,
                    const struct job_row *found)
{
    bool is_same_cluster = str_eq(gather->sacct_cluster, found->key.cluster);

    if (told->key.job_id == found->key.job_id && told->key.submit_time == found->key.submit_time)
        return job_record_has_ended(&told->record);
    return is_same_cluster && told->key.submit_time > found->key.submit_time;
}

static void take_told(const struct gather *gather, struct job_facts *ret, struct arena *arena,
                      const struct job_row *told)
{
    struct job_row row = *told;

    if (row.key.job_id == ret->row.key.job_id)
        row.first_submit_time = ret->row.first_submit_time;
    facts_take_row(ret, arena, &row, ret->now);
    runs_note_teller(gather, TOLD_BY_SACCT, &ret->origin);
}

/* The store has nothing of it, or not its end, or has only seen it. */
static int ask_accounting(const struct gather *gather, const struct job_name *name,
                          struct arena *arena, bool *has_found, struct job_facts *ret,
                          struct err *err)
{
    struct job_name own = *name;
    struct job_facts accounted = *ret;
    struct search told = { gather, arena, TOLD_BY_SACCT, .found = &accounted };
    int code;

    if (*has_found)
        own.cluster = ret->row.key.cluster;
    if (!runs_has_sacct(gather, own.cluster))
        return 0;
    code = search_sacct(gather, &own, !*has_found, &told, err);
    if (code < 0 || !told.has_found)
        return code;
    if (!*has_found || is_more(gather, &accounted.row, &ret->row))
        take_told(gather, ret, arena, &accounted.row);
    *has_found = true;
    return 0;
}

static int find_run(const struct gather *gather, const struct job_name *name, struct arena *arena,
                    struct job_facts *ret, struct err *err)
{
    struct search kept = { gather, arena, TOLD_BY_STORE, .found = ret };
    bool has_found;
    struct err why;
    int code = search_store(gather, name, &kept, err);

    if (code < 0 || (kept.has_found && ret->origin.has_accounting))
        return code;
    has_found = kept.has_found;
    code = ask_accounting(gather, name, arena, &has_found, ret, &why);
    if (has_found)
        return 0;
    if (code == -ENOTUNIQ || (code < 0 && !gather->store)) {
        *err = why;
        return code;
    }
    return runs_none(gather, name, code < 0 ? str_of(why.text) : STR(""), err);
}

/* False: there are matchers, and none for this cluster or all. */
static bool find_matcher(const struct gather *gather, struct str cluster, struct str *ret)
{
    bool has_found = !gather->n_matchers;

    *ret = STR("");
    for (size_t i = 0; i < gather->n_matchers; i++) {
        const struct series_matcher *matcher = &gather->matcher[i];
        bool is_own = cluster.n && str_eq(matcher->cluster, cluster);

        if (is_own || !matcher->cluster.n) {
            *ret = matcher->matcher;
            has_found = true;
        }
        if (is_own)
            break;
    }
    return has_found;
}

/* Samples of another cluster's job with the same id would be taken for its own. */
static void say_no_matcher(struct job_facts *facts, struct arena *arena)
{
    struct str cluster = facts->row.key.cluster;
    struct err why;

    if (cluster.n)
        err_set(&why, EINVAL, "--prometheus.match has none for cluster %s: add its labels",
                quote(cluster).text);
    else
        err_set(&why, EINVAL,
                "--prometheus.match is by cluster, and which this job's is is not known: name it "
                "with --cluster");
    facts->origin.why_no_series = arena_str(arena, str_of(why.text));
}

static int take_prometheus(const struct gather *gather, struct job_facts *facts,
                           struct arena *arena, struct err *err)
{
    struct series_question question = {
        .prometheus = gather->prometheus,
        .wants_plots = gather->wants_plots,
        .deadline_ns = gather->deadline_ns,
        .cancelled = gather->cancelled,
    };

    if (!find_matcher(gather, facts->row.key.cluster, &question.matcher)) {
        say_no_matcher(facts, arena);
        return -EINVAL;
    }
    return facts_take_series(facts, arena, &question, err);
}

static int take_embedded(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                         struct err *err)
{
    ticks_reader_deadline(gather->kept, gather->deadline_ns);
    return facts_take_kept(facts, arena, gather->kept, gather->wants_plots, err);
}

/* A report without samples is still one: it says why it has none. */
static void take_series(const struct gather *gather, struct job_facts *facts, struct arena *arena)
{
    struct err err;
    int code;

    if ((!gather->prometheus && !gather->kept) || facts->row.elapsed_seconds < 0)
        return;
    code = gather->prometheus ? take_prometheus(gather, facts, arena, &err)
                              : take_embedded(gather, facts, arena, &err);
    facts->origin.has_failed_series = code < 0;
    if (code < 0 && !facts->origin.why_no_series.n)
        facts->origin.why_no_series = arena_str(arena, str_of(err.text));
}

/* The search for earlier runs. */
struct looking_back {
    const struct gather *gather;
    const struct job_facts *facts;
    struct earlier_facts earlier;
    struct err *err;
};

static int add_earlier(void *ctx, const struct job_row *row)
{
    struct looking_back *back = ctx;
    const struct run_key *own = &back->facts->row.key;
    struct earlier_facts *earlier = &back->earlier;
    struct arena scratch = { 0 };
    struct job_facts facts;
    int code;

    if (row->key.job_id == own->job_id && row->key.submit_time == own->submit_time)
        return 0;
    job_facts_clear(&facts);
    facts_take_row(&facts, &scratch, row, back->gather->now);
    code = runs_take_kept(back->gather, &facts, &scratch, back->err);
    facts_finish(&facts);
    arena_clear(&scratch);
    if (code < 0)
        return code;
    earlier->cpus_used = fmax(earlier->cpus_used, facts.mean_cpus);
    if (!facts.origin.has_task_peak)
        earlier->memory_peak_bytes =
            fmax(earlier->memory_peak_bytes, facts.total.memory_peak_bytes);
    if (row->elapsed_seconds >= 0)
        earlier->elapsed_seconds = fmax(earlier->elapsed_seconds, (double)row->elapsed_seconds);
    return ++earlier->n == EARLIER_RUNS ? -ECANCELED : 0;
}

static void limit_looking_back(const struct gather *gather)
{
    int64_t until =
        clock_mono(&clock_real) + (gather->earlier_ns ? gather->earlier_ns : harmless_ns);

    if (!gather->deadline_ns || until < gather->deadline_ns)
        store_reader_deadline(gather->store, until);
}

static int take_earlier(const struct gather *gather, struct job_facts *facts, struct err *err)
{
    const struct job_record *record = &facts->row.record;
    struct looking_back back = { gather, facts, facts->earlier, err };
    struct str completed = STR("COMPLETED");
    int64_t end = job_record_has_ended(record) ? record->end_time : gather->now;
    struct job_filter filter;
    int code;

    if (!record->user.n || !record->name.n)
        return 0;
    job_filter_clear(&filter);
    filter.clusters = (struct words){ &facts->row.key.cluster, 1 };
    filter.users = (struct words){ &record->user, 1 };
    filter.names = (struct words){ &record->name, 1 };
    filter.states = (struct words){ &completed, 1 };
    filter.from = end - (int64_t)EARLIER_DAYS * DAY;
    filter.to = end + 1;
    filter.by_end = true;
    limit_looking_back(gather);
    code = store_jobs(gather->store, &filter, &(struct job_order){ 0 }, gather->now, add_earlier,
                      &back, err);
    store_reader_deadline(gather->store, gather->deadline_ns);
    facts->earlier = back.earlier;
    return code == -ECANCELED || code == -ETIMEDOUT ? 0 : code;
}

static int take_kept(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                     struct str *ret_summary, struct err *err)
{
    int code = store_life(gather->store, &facts->row.key, arena, &facts->life, &facts->n_life, err);

    if (code == 0)
        code = runs_take_finals(gather, facts, arena, err);
    if (code == 0)
        code = store_summary(gather->store, &facts->row.key, arena, ret_summary, err);
    if (code == 0)
        code = take_earlier(gather, facts, err);
    return code;
}

static int complete(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                    struct err *err)
{
    struct str summary = STR("");
    int code = gather->store ? take_kept(gather, facts, arena, &summary, err) : 0;

    if (code < 0)
        return code;
    take_series(gather, facts, arena);
    runs_take_summary(facts, arena, summary);
    facts_finish(facts);
    return 0;
}

static void begin(const struct gather *gather, struct job_facts *facts)
{
    job_facts_clear(facts);
    facts->now = gather->now;
    if (gather->store)
        store_reader_deadline(gather->store, gather->deadline_ns);
}

int gather_job(const struct gather *gather, const struct job_name *name, struct arena *arena,
               struct job_facts *ret, struct err *err)
{
    int code;

    begin(gather, ret);
    code = find_run(gather, name, arena, ret, err);
    return code < 0 ? code : complete(gather, ret, arena, err);
}

/* The search for a run whose key is known. */
struct keyed {
    const struct run_key *key;
    struct search search;
};

static int consider_keyed(void *ctx, const struct job_row *row)
{
    struct keyed *keyed = ctx;

    if (row->key.job_id == keyed->key->job_id && row->key.submit_time == keyed->key->submit_time)
        take_found(&keyed->search, row);
    return keyed->search.has_found ? -ECANCELED : 0;
}

int gather_run(const struct gather *gather, const struct run_key *key, struct arena *arena,
               struct job_facts *ret, struct err *err)
{
    const struct job_name name = { key->cluster, key->job_id, MODEL_UNKNOWN_U32,
                                   MODEL_UNKNOWN_U32 };
    struct keyed keyed = { key, { gather, arena, TOLD_BY_STORE, .found = ret } };
    const struct run_sink sink = { consider_keyed, &keyed };
    int code;

    begin(gather, ret);
    code = runs_of_store(gather, &name, true, &sink, err);
    if (code == 0)
        return runs_none(gather, &name, STR(""), err);
    return code == -ECANCELED ? complete(gather, ret, arena, err) : code;
}
