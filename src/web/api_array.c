/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An array: its tasks by state, how far they lie apart, and a page of them. */
#include "web/api_call.h"

#include "base/num.h"

enum { MOST_TASKS = 200000, MOST_STATES = 64 };

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "On any of these clusters."),
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

struct spread {
    double least, median, most;
};

static const struct api_field spread_fields[] = {
    { "least", API_NUMBER, offsetof(struct spread, least) },
    { "median", API_NUMBER, offsetof(struct spread, median) },
    { "most", API_NUMBER, offsetof(struct spread, most) },
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
    { "jobs", API_MEMBER_LIST, false, "A page of them, as of /api/v1/jobs.", &api_row_shape },
    { "next", API_MEMBER_KEY, false, "The key of what follows.", NULL },
};
static const struct api_shape shape = API_MEMBERS(members);

/* All tasks, on their way past. */
struct sums {
    struct api_call *call;
    uint32_t id;
    uint64_t tasks;
    bool is_hidden; /* those that there are are another's */
    struct told_state state[MOST_STATES];
    size_t n_states;
    double *value[MEASURES];
    size_t n[MEASURES], room[MEASURES];
};

static void count_state(struct sums *sums, const struct job_record *record)
{
    struct str word = job_state_word(record->state);
    size_t i = 0;

    while (i < sums->n_states && !str_eq(sums->state[i].state, word))
        i++;
    if (i == MOST_STATES)
        return;
    if (i == sums->n_states)
        sums->state[sums->n_states++].state = word;
    sums->state[i].tasks += record->tasks;
}

static int add_task(void *ctx, const struct job_row *row)
{
    struct sums *sums = ctx;

    if (row->record.array_job_id != sums->id)
        return 0;
    if (!viewer_may_see(&sums->call->viewer, row->record.user, row->record.account)) {
        sums->is_hidden = true;
        return 0;
    }
    if (sums->tasks >= MOST_TASKS)
        return -EFBIG;
    sums->tasks += row->record.tasks;
    count_state(sums, &row->record);
    for (size_t i = 0; i < MEASURES; i++) {
        double value = measures[i].of(row);

        if (isnan(value))
            continue;
        sums->value[i] =
            heap_grow(sums->value[i], sums->n[i], &sums->room[i], sizeof(*sums->value[i]));
        sums->value[i][sums->n[i]++] = value;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    double of_a = *(const double *)a, of_b = *(const double *)b;

    return (of_a > of_b) - (of_a < of_b);
}

static void put_spread(struct buf *out, const char *name, double *value, size_t n)
{
    struct spread spread = { NAN, NAN, NAN };

    if (n) {
        qsort(value, n, sizeof(*value), compare);
        spread = (struct spread){ value[0], (value[(n - 1) / 2] + value[n / 2]) / 2, value[n - 1] };
    }
    api_json_put(out, name, spread_fields, COUNT(spread_fields), &spread);
}

static void put_sums(struct sums *sums)
{
    struct buf *out = &sums->call->out;

    api_json_count(out, "array_job_id", sums->id);
    api_json_count(out, "tasks", sums->tasks);
    api_json_list(out, "states", state_fields, COUNT(state_fields), sums->state, sums->n_states,
                  sizeof(sums->state[0]));
    for (size_t i = 0; i < MEASURES; i++)
        put_spread(out, measures[i].name, sums->value[i], sums->n[i]);
}

static int put_array(struct sums *sums)
{
    struct api_call *call = sums->call;
    struct job_filter filter, every;
    int code;

    filter = call->request.filter;
    filter.ids = &sums->id;
    filter.n_ids = 1;
    /* Also what may not be seen: another's is not the same as none. */
    every = filter;
    every.visible_users = every.visible_accounts = (struct words){ 0 };
    code = store_jobs(call->reader, &every, &(struct job_order){ 0 }, call->now, add_task, sums,
                      &call->err);
    if (code < 0)
        return code;
    if (!sums->tasks && sums->is_hidden)
        return api_refuse(call, 403,
                          "this is another's array: you can see your own, and those of accounts "
                          "that you coordinate");
    if (!sums->tasks)
        return api_refuse(call, 404, "there is no array of this id");
    put_sums(sums);
    return api_put_jobs(call, &filter);
}

static int answer_array(struct api_call *call)
{
    struct sums *sums;
    uint64_t id;
    int code;

    if (!num_get_u64(call->rest, &id) || id == 0 || id >= MODEL_UNKNOWN_U32)
        return api_refuse(call, 404, "this is no id of an array: write /api/v1/arrays/4711");
    sums = heap_alloc(sizeof(*sums));
    sums->call = call;
    sums->id = (uint32_t)id;
    code = put_array(sums);
    for (size_t i = 0; i < MEASURES; i++)
        free(sums->value[i]);
    free(sums);
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
