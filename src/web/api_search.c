/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody may mean by a few letters: a job by its id, users, accounts, nodes, partitions,
 * reservations, clusters. */
#include "web/api_call.h"

#include "model/job_name.h"
#include "web/site_names.h"

enum { PATH_BYTES = 4096 };

static const struct api_param params[] = {
    API_PARAM("q", API_PARAM_PHRASE, phrase, "A job's id, or a part of a name, whatever its case."),
    API_PARAM("limit", API_PARAM_LIMIT, limit, "How many at most: 50 if not told."),
};

struct told {
    struct str kind, name, cluster, path;
};

#define TOLD(name, type, member)                                                                   \
    {                                                                                              \
        name, type, offsetof(struct told, member)                                                  \
    }

static const struct api_field fields[] = {
    TOLD("kind", API_TEXT, kind),
    TOLD("name", API_TEXT, name),
    TOLD("cluster", API_TEXT, cluster),
    TOLD("path", API_TEXT, path),
};

static const struct api_shape result_shape = API_FIELDS(fields);
static const struct api_member members[] = {
    { "results", API_MEMBER_LIST, false, "What is called so, then what begins or goes on so.",
      &result_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

/* How well a name fits. */
enum fit { FIT_WHOLE, FIT_BEGIN, FIT_INSIDE, FITS };

struct search {
    struct api_call *call;
    struct str phrase;
    enum fit fit; /* that is looked for */
    const struct site_kind *kind;
    const struct board_cluster *cluster;
    size_t n;
};

static enum fit fit_of(struct str name, struct str phrase)
{
    if (name.n < phrase.n)
        return FITS;
    if (str_eq_nocase(str_head(name, phrase.n), phrase))
        return name.n == phrase.n ? FIT_WHOLE : FIT_BEGIN;
    for (size_t i = 1; i + phrase.n <= name.n; i++)
        if (str_eq_nocase(str_head(str_skip(name, i), phrase.n), phrase))
            return FIT_INSIDE;
    return FITS;
}

static void put_result(struct search *search, const struct told *told)
{
    if (search->n == search->call->request.limit)
        return;
    search->n++;
    api_json_put(&search->call->out, NULL, fields, COUNT(fields), told);
}

/* It is said where there are several. */
static struct str shown_cluster(const struct search *search)
{
    return search->call->board->n_clusters > 1 ? search->cluster->name : STR("");
}

static bool try_name(void *ctx, struct str name)
{
    struct search *search = ctx;
    struct told told = { str_of(search->kind->what), name, shown_cluster(search), STR("") };
    struct buf path;

    if (fit_of(name, search->phrase) != search->fit)
        return true;
    buf_init(&path, PATH_BYTES);
    site_kind_address(search->kind, name, told.cluster, &path);
    told.path = buf_str(&path);
    if (!path.over)
        put_result(search, &told);
    buf_free(&path);
    return search->n < search->call->request.limit;
}

/* The names are those that the site's own search finds. */
static void try_names(struct search *search)
{
    const struct site_call site = { .viewer = search->call->viewer, .board = search->call->board };

    for (search->fit = FIT_WHOLE; search->fit < FITS; search->fit++)
        for (size_t k = 0; k < SITE_KINDS; k++)
            for (size_t i = 0; i < site.board->n_clusters; i++) {
                search->kind = &site_kinds[k];
                search->cluster = &site.board->cluster[i];
                search->kind->each(&site, search->cluster, try_name, search);
            }
}

static bool is_of(const struct job *job, const struct job_name *name)
{
    if (name->task != MODEL_UNKNOWN_U32)
        return job->array_job_id == name->id && job->array_task_id == name->task;
    if (name->offset != MODEL_UNKNOWN_U32)
        return job->het_job_id == name->id && job->het_offset == name->offset;
    return job->id == name->id || job->array_job_id == name->id || job->het_job_id == name->id;
}

/* Whether the queue has it, and who asks may see it. */
static bool is_queued(const struct search *search, const struct job_name *name)
{
    const struct section *section = search->cluster->section[KIND_JOBS];

    for (size_t i = 0; section && i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        if (is_of(job, name) &&
            viewer_may_see(&search->call->viewer, section_text(section, job->user),
                           section_text(section, job->account)))
            return true;
    }
    return false;
}

static int note_run(void *ctx, const struct job_row *row)
{
    (void)row;
    *(bool *)ctx = true;
    return -ECANCELED;
}

static int is_kept(const struct search *search, const struct job_name *name, struct str cluster,
                   bool *ret)
{
    struct api_call *call = search->call;
    struct job_filter filter = call->request.filter;
    int code;

    *ret = false;
    filter.ids = &name->id;
    filter.n_ids = 1;
    filter.array_task_id = name->task;
    filter.het_offset = name->offset;
    if (cluster.n)
        filter.clusters = (struct words){ &cluster, 1 };
    code = store_jobs(call->reader, &filter, &(struct job_order){ .limit = 1 }, call->now, note_run,
                      ret, &call->err);
    return code == -ECANCELED ? 0 : code;
}

static void put_job(struct search *search, const struct job_name *name)
{
    const struct job_name plain = { .id = name->id, .task = name->task, .offset = name->offset };
    struct job_name whole = plain;
    struct told told = { .kind = STR("job"), .cluster = shown_cluster(search) };
    struct buf text, path;

    whole.cluster = told.cluster;
    buf_init(&text, PATH_BYTES);
    buf_init(&path, PATH_BYTES);
    job_name_put(&text, &whole);
    buf_text(&path, "/job/");
    buf_url(&path, buf_str(&text));
    buf_reset(&text);
    job_name_put(&text, &plain);
    told.name = buf_str(&text);
    told.path = buf_str(&path);
    put_result(search, &told);
    buf_free(&text);
    buf_free(&path);
}

static int try_job_of(struct search *search, const struct job_name *name)
{
    struct str cluster = search->cluster->name;
    bool is_there = is_queued(search, name);
    int code = 0;

    if (name->cluster.n && !str_eq(name->cluster, cluster))
        return 0;
    if (!is_there && search->call->reader)
        code = is_kept(search, name, cluster, &is_there);
    if (code == 0 && is_there)
        put_job(search, name);
    return code;
}

static int try_jobs(struct search *search)
{
    const struct board *board = search->call->board;
    struct job_name name;
    struct err none;
    int code = 0;

    if (job_name_read(search->phrase, &name, &none) < 0)
        return 0;
    for (size_t i = 0; i < board->n_clusters && code == 0; i++) {
        search->cluster = &board->cluster[i];
        code = try_job_of(search, &name);
    }
    return code;
}

static int answer_search(struct api_call *call)
{
    struct search search = { .call = call, .phrase = str_trim(call->request.phrase) };
    int code;

    if (!search.phrase.n)
        return api_refuse(call, 400, "what is looked for? Write q=TEXT");
    api_json_begin(&call->out, "results", '[');
    code = try_jobs(&search);
    try_names(&search);
    buf_byte(&call->out, ']');
    return code;
}

const struct api_resource api_search = {
    .path = "/api/v1/search",
    .shown = "/api/v1/search",
    .summary = "What is called so: jobs by id, users, accounts, nodes, partitions.",
    .example = "?q=a&limit=10",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_BOARD | API_MAY_STORE,
    .shape = &shape,
    .answer = answer_search,
};
