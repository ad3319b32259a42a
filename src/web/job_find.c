/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the job that an address names, and checks access to it. */
#include "web/job_find.h"

#include "base/quote.h"
#include "record/seen.h"
#include "report/advice.h"
#include "report/gather.h"
#include "report/outline.h"
#include "web/api_key.h"
#include "web/html.h"

enum { NAME_BYTES = 600 };

int job_allow(struct site_call *call, struct str user, struct str account)
{
    if (viewer_may_see(&call->viewer, user, account))
        return 0;
    return site_refuse(call, 403,
                       "this is another's job: you can see your own, and those of accounts that "
                       "you coordinate");
}

int job_refused(struct site_call *call, int status)
{
    buf_reset(&call->out);
    return status;
}

void job_put_title(struct site_call *call, struct str title)
{
    call->title = title;
    buf_text(&call->out, "<h1>");
    html_text(&call->out, title);
    buf_text(&call->out, "</h1>\n");
}

int64_t job_deadline(const struct site_call *call)
{
    int64_t now = clock_mono(&clock_real);

    return call->deadline_ns > now ? now + (call->deadline_ns - now) * 3 / 4 : call->deadline_ns;
}

static bool has_name(const struct job_name *name, const struct job *job)
{
    if (name->task != MODEL_UNKNOWN_U32)
        return job->array_job_id == name->id && job->array_task_id == name->task;
    if (name->offset != MODEL_UNKNOWN_U32)
        return job->het_job_id == name->id && job->het_offset == name->offset;
    return job->id == name->id || job->array_job_id == name->id || job->het_job_id == name->id;
}

void job_each_on_board(const struct site_call *call, const struct job_name *name,
                       void (*see)(void *ctx, const struct board_cluster *cluster,
                                   const struct job *job),
                       void *ctx)
{
    for (size_t i = 0; call->board && i < call->board->n_clusters; i++) {
        const struct board_cluster *cluster = &call->board->cluster[i];
        const struct section *section = cluster->section[KIND_JOBS];

        if (!section || (name->cluster.n && !str_eq(name->cluster, cluster->name)))
            continue;
        for (size_t j = 0; j < section->jobs.n; j++)
            if (has_name(name, &section->jobs.job[j]))
                see(ctx, cluster, &section->jobs.job[j]);
    }
}

void job_row_of_board(const struct board_cluster *cluster, const struct job *job, int64_t now,
                      struct arena *arena, struct job_row *ret)
{
    const struct section *section = cluster->section[KIND_JOBS];
    struct seen_job *seen = ARENA_NEW(arena, struct seen_job);
    char types[RUN_GPU_TYPES_MAX];

    seen_job(section, job, section->wall_ns / NS_PER_SEC, seen);
    runs_row_of(&seen->record, cluster->name, now, types, ret);
    ret->gpu_types = arena_str(arena, ret->gpu_types);
}

/* The search for the newest run of a name, or for that of a key. */
struct search {
    struct site_call *call;
    struct job_found *found;
    struct job_facts kept; /* its row is that which the store has */
    bool has_found;
    const struct run_key *key; /* or NULL */
};

static bool is_sought(const struct search *search, const struct run_key *key)
{
    return !search->key ||
           (key->job_id == search->key->job_id && key->submit_time == search->key->submit_time);
}

static bool are_kin(const struct job_record *a, const struct job_record *b)
{
    if (a->id == b->id)
        return false;
    return (a->array_job_id && a->array_job_id == b->array_job_id) ||
           (a->het_job_id && a->het_job_id == b->het_job_id);
}

/* The newest run of a cluster comes first: it is that which a choice would lead to. */
static void note_cluster(struct search *search, struct str cluster, struct str user,
                         struct str account)
{
    struct job_found *found = search->found;
    struct arena *arena = &search->call->arena;
    size_t n = found->clusters.n;

    run_clusters_note(&found->clusters, arena, cluster);
    if (found->clusters.n > n && viewer_may_see(&search->call->viewer, user, account))
        run_clusters_note(&found->seen, arena, cluster);
}

/* The newest comes first. */
static int take_kept(void *ctx, const struct job_row *row)
{
    struct search *search = ctx;
    struct job_found *found = search->found;

    if (!is_sought(search, &row->key))
        return 0;
    note_cluster(search, row->key.cluster, row->record.user, row->record.account);
    if (!search->has_found) {
        facts_take_row(&search->kept, &search->call->arena, row, search->call->now);
        found->row = search->kept.row;
        found->is_kept = search->has_found = true;
        found->is_many = !search->key && row->record.tasks > 1;
    } else if (!search->key && are_kin(&row->record, &found->row.record)) {
        found->is_many = true;
    }
    return 0;
}

/* What the store does not have yet. */
static void take_on_board(void *ctx, const struct board_cluster *cluster, const struct job *job)
{
    struct search *search = ctx;
    struct job_found *found = search->found;
    const struct section *section = cluster->section[KIND_JOBS];
    const struct run_key key = { job->submit_time, job->id, cluster->name };
    struct job_row row;
    bool is_newer;

    if (!is_sought(search, &key))
        return;
    note_cluster(search, cluster->name, section_text(section, job->user),
                 section_text(section, job->account));
    is_newer = !search->has_found ||
               (job->id == found->row.key.job_id && job->submit_time > found->row.key.submit_time);
    if (search->has_found && !is_newer && found->is_kept)
        return;
    job_row_of_board(cluster, job, search->call->now, &search->call->arena, &row);
    found->is_many |=
        !search->key &&
        (job->tasks > 1 || (search->has_found && are_kin(&row.record, &found->row.record)));
    if (!is_newer)
        return;
    found->row = row;
    found->is_kept = false;
    search->has_found = true;
}

static int look(struct search *search)
{
    struct site_call *call = search->call;
    const struct run_sink sink = { take_kept, search };
    struct gather gather = { .store = call->reader, .now = call->now };
    int code = 0;

    job_facts_clear(&search->kept);
    if (call->reader)
        code = runs_of_store(&gather, &search->found->name, false, &sink, &call->err);
    if (code < 0)
        return code;
    job_each_on_board(call, &search->found->name, take_on_board, search);
    return 0;
}

static int refuse_absent(struct site_call *call, struct str text)
{
    if (call->why_no_store.n)
        return site_refuse(call, 404,
                           "job %s is not in the queue, and what was kept cannot be read: %.*s",
                           quote(text).text, STR_ARG(call->why_no_store));
    return site_refuse(call, 404,
                       "there is no job %s: it was deleted, or its id is another's; write 4711, "
                       "4711_7 for a task, 4711+1 for a component, or CLUSTER:4711",
                       quote(text).text);
}

/* Of the key, or of the path. */
static int read_name(struct site_call *call, struct str text, struct job_found *ret,
                     struct run_key *key)
{
    struct str given = site_argument(call, "key");

    *key = (struct run_key){ 0 };
    if (given.n) {
        if (!api_key_read_run(given, &call->arena, key))
            return site_refuse(call, 404, "this is no key: take a link of a page of jobs");
        ret->name =
            (struct job_name){ key->cluster, key->job_id, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 };
        return 0;
    }
    if (job_name_read(text, &ret->name, &call->err) < 0)
        return 404;
    if (!ret->name.cluster.n)
        ret->name.cluster = call->cluster;
    return 0;
}

int job_find(struct site_call *call, struct str text, struct job_found *ret)
{
    struct run_key key;
    struct search search = { .call = call, .found = ret };
    int code;

    *ret = (struct job_found){ 0 };
    code = read_name(call, text, ret, &key);
    if (code)
        return code;
    search.key = key.submit_time ? &key : NULL;
    code = look(&search);
    if (code < 0)
        return code;
    if (!search.has_found)
        return refuse_absent(call, text);
    if (ret->clusters.n > 1)
        return 0;
    ret->name.cluster = ret->row.key.cluster;
    return job_allow(call, ret->row.record.user, ret->row.record.account);
}

int job_find_one(struct site_call *call, struct str text, struct job_found *ret)
{
    int code = job_find(call, text, ret);

    if (code)
        return code;
    if (ret->clusters.n > 1)
        return site_refuse(call, 404, "several clusters have a job %u: say which, as in CLUSTER:%u",
                           (unsigned)ret->name.id, (unsigned)ret->name.id);
    if (ret->is_many)
        return site_refuse(call, 404,
                           "job %u has several parts: name one, as in %u_7 of an array, or %u+1 of "
                           "a heterogeneous job",
                           (unsigned)ret->name.id, (unsigned)ret->name.id, (unsigned)ret->name.id);
    return 0;
}

int job_show_choice(struct site_call *call, const struct job_name *name,
                    const struct run_clusters *clusters, const char *title, const char *path)
{
    struct buf text;

    job_put_title(call, str_of(title));
    buf_text(&call->out, "<ul>\n");
    buf_init(&text, NAME_BYTES);
    for (size_t i = 0; i < clusters->n; i++) {
        struct job_name own = *name;
        struct html_address link;

        own.cluster = clusters->name[i];
        buf_reset(&text);
        job_name_put(&text, &own);
        buf_text(&call->out, "<li>");
        link = html_begin_link(&call->out, path);
        html_part(&link, buf_str(&text));
        html_end_link(&link, buf_str(&text));
        buf_text(&call->out, "</li>\n");
    }
    buf_free(&text);
    buf_text(&call->out, "</ul>\n");
    return 0;
}

int job_go_to_array(struct site_call *call, const struct job_name *name)
{
    struct buf address;
    int code;

    buf_init(&address, NAME_BYTES * 3);
    buf_text(&address, "/array/");
    if (name->cluster.n) {
        buf_url(&address, name->cluster);
        buf_byte(&address, ':');
    }
    buf_u64(&address, name->id);
    code = site_go(call, buf_str(&address));
    buf_free(&address);
    return code;
}

/* The name that no other run of the cluster has at its time. */
static struct job_name name_of(const struct job_row *row)
{
    const struct job_record *record = &row->record;
    struct job_name name = { row->key.cluster, record->id, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 };

    if (record->array_job_id && record->array_task_id != MODEL_UNKNOWN_U32) {
        name.id = record->array_job_id;
        name.task = record->array_task_id;
    } else if (record->het_job_id) {
        name.id = record->het_job_id;
        name.offset = record->het_offset;
    }
    return name;
}

int job_is_newest(struct site_call *call, const struct job_found *found, bool *ret)
{
    struct job_found newest = { .name = name_of(&found->row) };
    struct search search = { .call = call, .found = &newest };
    int code = look(&search);

    *ret = code == 0 && search.has_found && newest.row.key.job_id == found->row.key.job_id &&
           newest.row.key.submit_time == found->row.key.submit_time;
    return code;
}

static bool is_simulated(const struct site_call *call, struct str cluster)
{
    for (size_t i = 0; call->board && i < call->board->n_clusters; i++)
        if (str_eq(call->board->cluster[i].name, cluster))
            return call->board->cluster[i].is_simulated;
    return false;
}

/* One that is in the queue only: as much as squeue tells. */
static void take_board_facts(struct site_call *call, const struct job_found *found,
                             struct job_facts *facts)
{
    job_facts_clear(facts);
    facts_take_row(facts, &call->arena, &found->row, call->now);
    facts->origin.is_simulated = is_simulated(call, found->row.key.cluster);
    facts->origin.why_no_series =
        call->why_no_store.n
            ? call->why_no_store
            : STR("it is in the queue, and nothing of it has been kept yet: look again in a "
                  "minute");
    facts_finish(facts);
}

static int take_kept_facts(struct site_call *call, const struct job_found *found, bool wants_plots,
                           struct job_facts *facts)
{
    struct gather gather;
    int code = site_gather(call, &gather);

    if (code)
        return code;
    gather.wants_plots = wants_plots;
    gather.deadline_ns = job_deadline(call);
    code = gather_run(&gather, &found->row.key, &call->arena, facts, &call->err);
    store_reader_deadline(call->reader, call->deadline_ns); /* the rest of the page has its own */
    return code == -ENOENT ? job_refused(call, 404) : code;
}

int job_make_report(struct site_call *call, const struct job_found *found, bool wants_plots,
                    struct job_report *ret)
{
    const struct check_settings *settings = site_checks(call);
    int code = 0;

    *ret = (struct job_report){ 0 };
    if (found->is_kept)
        code = take_kept_facts(call, found, wants_plots, &ret->facts);
    else
        take_board_facts(call, found, &ret->facts);
    if (code)
        return code;
    checks_run(settings, &ret->facts, &call->arena, &ret->finding, &ret->n_findings);
    ret->least_seconds = settings->least_seconds;
    advice_make(&ret->facts, (double)settings->least_seconds, &call->arena, &ret->advice);
    return 0;
}

/* "beluga:4711_7", the cluster only if there are several. */
static void put_name(struct buf *to, const struct site_call *call, const struct job_row *row)
{
    if ((!call->board || call->board->n_clusters > 1) && row->key.cluster.n) {
        buf_put(to, row->key.cluster);
        buf_byte(to, ':');
    }
    outline_put_id(to, &row->record);
}

struct str job_key(struct arena *arena, const struct run_key *key)
{
    struct buf text;
    struct str copy;

    if (key->submit_time <= 0)
        return STR("");
    buf_init(&text, API_KEY_MAX);
    api_key_put_run(&text, key);
    copy = text.over ? STR("") : arena_str(arena, buf_str(&text));
    buf_free(&text);
    return copy;
}

void job_put_link(struct buf *to, const struct site_call *call, const struct job_row *row,
                  bool with_key)
{
    struct html_address address = html_begin_link(to, "/job/");
    struct arena arena = { 0 };
    struct buf name;

    buf_init(&name, NAME_BYTES);
    put_name(&name, call, row);
    html_part(&address, buf_str(&name));
    if (with_key)
        html_argument(&address, "key", job_key(&arena, &row->key));
    buf_reset(&name);
    outline_put_id(&name, &row->record);
    html_end_link(&address, buf_str(&name));
    buf_free(&name);
    arena_clear(&arena);
}
