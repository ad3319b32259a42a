/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An array: its tasks by state, how far they lie apart, and a page of them. Which runs are its
 * tasks, its page and reports decide likewise: gather_runs.h. */
#include "web/api_call.h"

#include "base/num.h"
#include "report/gather_runs.h"

enum { MOST_RUNS = 200000, MOST_STATES = 64, NAMES_BYTES = 400 };

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters,
              "On this cluster: several may have an array of this id."),
    API_PARAM("limit", API_PARAM_LIMIT, limit, "Rows of a page: 50 if not told, at most 1000."),
    API_PARAM("after", API_PARAM_RUN, after, "What follows this key: the \"next\" of a page."),
};

struct told_state {
    struct str state;
    uint64_t tasks;
};

static const struct api_field state_fields[] = {
    { "state", API_TEXT, offsetof(struct told_state, state) },
    { "tasks", API_U64, offsetof(struct told_state, tasks) },
};
static const struct api_shape state_shape = API_FIELDS(state_fields);

struct told_spread {
    double least, median, most;
};

static const struct api_field spread_fields[] = {
    { "least", API_NUMBER, offsetof(struct told_spread, least) },
    { "median", API_NUMBER, offsetof(struct told_spread, median) },
    { "most", API_NUMBER, offsetof(struct told_spread, most) },
};
static const struct api_shape spread_shape = API_FIELDS(spread_fields);

static double elapsed_of(const struct job_row *row)
{
    return row->elapsed_seconds < 0 ? NAN : (double)row->elapsed_seconds;
}

static double efficiency_of(const struct job_row *row)
{
    return row->cpu_efficiency;
}

static double memory_of(const struct job_row *row)
{
    uint64_t bytes = row->record.memory_peak_bytes;

    return bytes == MODEL_UNKNOWN_U64 ? NAN : (double)bytes;
}

/* What is compared. */
static const struct measure {
    const char *name;
    double (*of)(const struct job_row *row);
} measures[] = {
    { "elapsed_seconds", elapsed_of },
    { "cpu_efficiency", efficiency_of },
    { "memory_peak_bytes", memory_of },
};
enum { MEASURES = COUNT(measures) };

static const struct api_member members[] = {
    { "array_job_id", API_MEMBER_COUNT, false, "Its id.", NULL },
    { "tasks", API_MEMBER_COUNT, false, "How many it has, those that wait together included.",
      NULL },
    { "states", API_MEMBER_LIST, false, "Tasks by state.", &state_shape },
    { "elapsed_seconds", API_MEMBER_OBJECT, false, "Of those that ran.", &spread_shape },
    { "cpu_efficiency", API_MEMBER_OBJECT, false, "Of those of which it is known.", &spread_shape },
    { "memory_peak_bytes", API_MEMBER_OBJECT, false, "Likewise.", &spread_shape },
    { "jobs", API_MEMBER_LIST, false,
      "A page of them, as of /api/v1/jobs: of each task its newest run.", &api_row_shape },
    { "next", API_MEMBER_KEY, false, "The key of what follows.", NULL },
};
static const struct api_shape shape = API_MEMBERS(members);

/* What is kept of a run until it is known which are those of the array. */
struct told_run {
    struct run_place place;
    size_t cluster;
    struct job_state state;
    uint32_t tasks;
    bool may_see;
    double value[MEASURES];
};

/* All runs that have the id, requeued ones and those of an array of before included. */
struct found {
    struct api_call *call;
    uint32_t id;
    struct told_run *run;
    size_t n, room;
    struct str *cluster; /* their names */
    size_t n_clusters, cluster_room;
    struct run_place *task; /* those of the array that is meant, which may be seen */
    size_t n_tasks;
};

struct sums {
    uint64_t tasks;
    struct told_state state[MOST_STATES];
    size_t n_states;
    double *value[MEASURES];
    size_t n[MEASURES];
};

static size_t find_cluster(struct found *found, struct str name)
{
    for (size_t i = 0; i < found->n_clusters; i++)
        if (str_eq(found->cluster[i], name))
            return i;
    found->cluster =
        heap_grow(found->cluster, found->n_clusters, &found->cluster_room, sizeof(*found->cluster));
    found->cluster[found->n_clusters] = arena_str(&found->call->arena, name);
    return found->n_clusters++;
}

static int take_run(void *ctx, const struct job_row *row)
{
    struct found *found = ctx;
    struct told_run *run;

    if (row->record.array_job_id != found->id)
        return 0;
    if (found->n == MOST_RUNS)
        return -EFBIG;
    found->run = heap_grow(found->run, found->n, &found->room, sizeof(*run));
    run = &found->run[found->n];
    *run = (struct told_run){
        .place = runs_place(row, found->n),
        .cluster = find_cluster(found, row->key.cluster),
        .state = row->record.state,
        .tasks = row->record.tasks,
        .may_see = viewer_may_see(&found->call->viewer, row->record.user, row->record.account),
    };
    for (size_t i = 0; i < MEASURES; i++)
        run->value[i] = measures[i].of(row);
    found->n++;
    return 0;
}

/* The tasks of the array of this cluster that may be seen, in found->task. */
static void choose_tasks(struct found *found, size_t cluster)
{
    size_t n = 0;

    for (size_t i = 0; i < found->n; i++)
        if (found->run[i].cluster == cluster)
            found->task[n++] = found->run[i].place;
    n = runs_keep_newest(found->task, n);
    found->n_tasks = 0;
    for (size_t i = 0; i < n; i++)
        if (found->run[found->task[i].at].may_see)
            found->task[found->n_tasks++] = found->task[i];
}

static int refuse_many(struct found *found)
{
    struct buf names;
    int code;

    buf_init(&names, NAMES_BYTES);
    for (size_t i = 0; i < found->n_clusters && !names.over; i++) {
        choose_tasks(found, i);
        if (!found->n_tasks)
            continue;
        buf_text(&names, names.n ? " or ?cluster=" : "?cluster=");
        buf_url(&names, found->cluster[i]);
    }
    code = api_refuse(found->call, 400, "several clusters have an array %u: say which cluster: %s",
                      (unsigned)found->id, names.over ? "?cluster=NAME" : names.p);
    buf_free(&names);
    return code;
}

/* The one cluster whose array is meant. */
static int choose_cluster(struct found *found, size_t *ret)
{
    size_t n_seen = 0;

    found->task = heap_alloc(found->n * sizeof(*found->task));
    for (size_t i = 0; i < found->n_clusters; i++) {
        choose_tasks(found, i);
        if (found->n_tasks && n_seen++ == 0)
            *ret = i;
    }
    if (n_seen > 1)
        return refuse_many(found);
    if (!n_seen && found->n)
        return api_refuse(found->call, 403,
                          "this is another's array: you can see your own, and those of accounts "
                          "that you coordinate");
    return n_seen ? 0 : api_refuse(found->call, 404, "there is no array of this id");
}

static void count_state(struct sums *sums, const struct told_run *run)
{
    struct str word = job_state_word(run->state);
    size_t i = 0;

    while (i < sums->n_states && !str_eq(sums->state[i].state, word))
        i++;
    if (i == MOST_STATES)
        return;
    if (i == sums->n_states)
        sums->state[sums->n_states++].state = word;
    sums->state[i].tasks += run->tasks;
}

static void add_task(struct sums *sums, const struct told_run *run)
{
    sums->tasks += run->tasks;
    count_state(sums, run);
    for (size_t i = 0; i < MEASURES; i++)
        if (!isnan(run->value[i]))
            sums->value[i][sums->n[i]++] = run->value[i];
}

static int compare(const void *a, const void *b)
{
    double of_a = *(const double *)a, of_b = *(const double *)b;

    return (of_a > of_b) - (of_a < of_b);
}

static void put_spread(struct buf *out, const char *name, double *value, size_t n)
{
    struct told_spread spread = { NAN, NAN, NAN };

    if (n) {
        qsort(value, n, sizeof(*value), compare);
        spread =
            (struct told_spread){ value[0], (value[(n - 1) / 2] + value[n / 2]) / 2, value[n - 1] };
    }
    api_json_put(out, name, spread_fields, COUNT(spread_fields), &spread);
}

static void put_sums(const struct found *found)
{
    struct arena *arena = &found->call->arena;
    struct sums *sums = ARENA_NEW(arena, struct sums);
    struct buf *out = &found->call->out;

    for (size_t i = 0; i < MEASURES; i++)
        sums->value[i] = ARENA_ARRAY(arena, double, found->n_tasks);
    for (size_t i = 0; i < found->n_tasks; i++)
        add_task(sums, &found->run[found->task[i].at]);
    api_json_count(out, "array_job_id", found->id);
    api_json_count(out, "tasks", sums->tasks);
    api_json_list(out, "states", state_fields, COUNT(state_fields), sums->state, sums->n_states,
                  sizeof(sums->state[0]));
    for (size_t i = 0; i < MEASURES; i++)
        put_spread(out, measures[i].name, sums->value[i], sums->n[i]);
}

static int by_key(const void *a, const void *b)
{
    const struct run_place *left = a, *right = b;

    if (left->job_id != right->job_id)
        return left->job_id < right->job_id ? -1 : 1;
    return (left->submit_time > right->submit_time) - (left->submit_time < right->submit_time);
}

static bool is_task(void *ctx, const struct job_row *row)
{
    const struct found *found = ctx;
    const struct run_place sought = runs_place(row, 0);

    return bsearch(&sought, found->task, found->n_tasks, sizeof(sought), by_key);
}

static int put_array(struct found *found)
{
    struct api_call *call = found->call;
    struct job_filter filter = call->request.filter, every;
    const struct api_choice choice = { is_task, found };
    size_t cluster;
    int code;

    filter.ids = &found->id;
    filter.n_ids = 1;
    /* Also what may not be seen: another's is not the same as none. */
    every = filter;
    every.visible_users = every.visible_accounts = (struct words){ 0 };
    code = store_jobs(call->reader, &every, &(struct job_order){ 0 }, call->now, take_run, found,
                      &call->err);
    if (code == 0)
        code = choose_cluster(found, &cluster);
    if (code)
        return code;
    choose_tasks(found, cluster);
    put_sums(found);
    qsort(found->task, found->n_tasks, sizeof(*found->task), by_key);
    filter.clusters = (struct words){ &found->cluster[cluster], 1 };
    return api_put_jobs(call, &filter, &choice);
}

static int answer_array(struct api_call *call)
{
    struct found found = { .call = call };
    uint64_t id;
    int code;

    if (!num_get_u64(call->rest, &id) || id == 0 || id >= MODEL_UNKNOWN_U32)
        return api_refuse(call, 404, "this is no id of an array: write /api/v1/arrays/4711");
    found.id = (uint32_t)id;
    code = put_array(&found);
    free(found.run);
    free(found.cluster);
    free(found.task);
    return code;
}

const struct api_resource api_array = {
    .path = "/api/v1/arrays/*",
    .shown = "/api/v1/arrays/ID",
    .summary = "An array: its tasks by state, how far they lie apart, and a page of them.",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_STORE,
    .shape = &shape,
    .answer = answer_array,
};
