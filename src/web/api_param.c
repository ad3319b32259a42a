/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the API's query parameters, and their parsers. */
#include "web/api_param.h"

#include "base/num.h"
#include "base/quote.h"
#include "model/hostlist.h"
#include "web/api_key.h"
#include "web/api_time.h"

#include <math.h>

enum { FURTHEST_WORD = 4 }; /* as many edits make it another word */

/* One value on its way into the request. */
struct taking {
    struct api_request *request;
    const struct api_param *param;
    void *place;
    struct arena *arena;
    struct err *err;
};

void api_request_clear(struct api_request *request)
{
    *request = (struct api_request){ .limit = API_USUAL_ROWS, .sort = { QUEUE_BY_SUBMIT, true } };
    job_filter_clear(&request->filter);
}

void api_filter_limit(struct job_filter *filter, const struct viewer *viewer)
{
    if (viewer->is_staff)
        return;
    filter->visible_users = (struct words){ &viewer->user, 1 };
    filter->visible_accounts = viewer->accounts;
}

/* With room for a power of two of them, and twice as many when that is full. */
static void *grow(struct taking *taking, const void *array, size_t n, size_t size)
{
    char *larger;

    if (n & (n - 1))
        return (void *)array;
    larger = arena_array(taking->arena, n ? 2 * n : 1, size);
    if (n)
        memcpy(larger, array, n * size);
    return larger;
}

static int refuse_empty(const struct taking *taking)
{
    return err_set(taking->err, EINVAL, "%s has an empty value: leave it out, or write %s=%s",
                   taking->param->name, taking->param->name, api_param_value(taking->param));
}

static int add_word(struct taking *taking, struct str word)
{
    struct words *words = taking->place;
    struct str *array;

    if (!word.n)
        return refuse_empty(taking);
    if (words->n == API_MOST_WORDS)
        return err_set(taking->err, EINVAL, "%s has more than %d values: ask several times",
                       taking->param->name, API_MOST_WORDS);
    array = grow(taking, words->word, words->n, sizeof(*array));
    array[words->n++] = word;
    words->word = array;
    return 0;
}

static int take_text(struct taking *taking, struct str value)
{
    return add_word(taking, value);
}

/* Each part of "a,b" by itself. */
static int take_parts(struct taking *taking, struct str value,
                      int (*take)(struct taking *taking, struct str part))
{
    int code = 0;

    for (struct str part, rest = value; rest.p && code == 0;) {
        part = str_cut(&rest, ',');
        code = part.n ? take(taking, part) : refuse_empty(taking);
    }
    return code;
}

static int take_words(struct taking *taking, struct str value)
{
    return take_parts(taking, value, add_word);
}

static int take_hosts(struct taking *taking, struct str value)
{
    struct hostlist list;
    int code = 0;

    if (!value.n)
        return refuse_empty(taking);
    if (hostlist_expand(value, taking->arena, API_MOST_WORDS, &list, taking->err) < 0) {
        err_prefix(taking->err, "%s", taking->param->name);
        return -EINVAL;
    }
    for (size_t i = 0; i < list.n && code == 0; i++)
        code = add_word(taking, list.hosts[i]);
    return code;
}

static int refuse_word(struct taking *taking, struct str part, const struct str *words, size_t n)
{
    size_t nearest = n, best = FURTHEST_WORD;

    for (size_t i = 0; i < n; i++) {
        size_t distance = str_distance(words[i], part);

        if (distance < best) {
            best = distance;
            nearest = i;
        }
    }
    if (nearest < n)
        return err_set(taking->err, EINVAL, "%s: there is no \"%s\"; did you mean \"%.*s\"?",
                       taking->param->name, quote(part).text, STR_ARG(words[nearest]));
    return err_set(taking->err, EINVAL, "%s: there is no \"%s\"; write it as Slurm does, like %s",
                   taking->param->name, quote(part).text, api_param_value(taking->param));
}

/* Long or short, "COMPLETED" or "CD". */
static int take_job_state(struct taking *taking, struct str part)
{
    struct job_state state = JOB_STATE_NONE;

    if (job_state_add(&state, part) || str_eq(part, STR("UNKNOWN")))
        return add_word(taking, part);
    return refuse_word(taking, part, job_state_words, n_job_state_words);
}

static int take_job_states(struct taking *taking, struct str value)
{
    return take_parts(taking, value, take_job_state);
}

/* Of a base or a flag, as they stand in "idle+drain". */
static int take_node_state(struct taking *taking, struct str part)
{
    struct str words[NODE_BASES + NODE_FLAGS];
    size_t n = 0;

    for (unsigned base = 0; base < NODE_BASES; base++)
        words[n++] = node_base_word((enum node_base)base);
    for (unsigned flag = 0; flag < NODE_FLAGS; flag++)
        words[n++] = node_flag_word((enum node_flag)(1u << flag));
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(words[i], part))
            return add_word(taking, words[i]);
    return refuse_word(taking, part, words, n);
}

static int take_node_states(struct taking *taking, struct str value)
{
    return take_parts(taking, value, take_node_state);
}

static int refuse_job(const struct taking *taking, struct str part)
{
    return err_set(taking->err, EINVAL,
                   "%s: \"%s\" is no job: write 123, 123_7 for a task of an array, 123%%2B1 for a "
                   "component of a heterogeneous job",
                   taking->param->name, quote(part).text);
}

static bool read_u32(struct str text, uint32_t *ret)
{
    uint64_t number;

    if (!num_get_u64(text, &number) || number >= MODEL_UNKNOWN_U32)
        return false;
    *ret = (uint32_t)number;
    return true;
}

/* "123", "123_7", "123+1"; a plus that was not escaped comes as a space. */
static int take_job(struct taking *taking, struct str part)
{
    struct job_filter *filter = taking->place;
    size_t digits = 0;
    uint32_t *ids, id, task = MODEL_UNKNOWN_U32, offset = MODEL_UNKNOWN_U32;

    while (digits < part.n && part.p[digits] >= '0' && part.p[digits] <= '9')
        digits++;
    if (!read_u32(str_head(part, digits), &id) || id == 0)
        return refuse_job(taking, part);
    if (digits < part.n) {
        uint32_t *place = part.p[digits] == '_' ? &task : &offset;

        if (!memchr("_+ ", part.p[digits], 3) || !read_u32(str_skip(part, digits + 1), place))
            return refuse_job(taking, part);
    }
    if (filter->n_ids == API_MOST_WORDS)
        return err_set(taking->err, EINVAL, "%s has more than %d values: ask several times",
                       taking->param->name, API_MOST_WORDS);
    if (filter->n_ids && (digits < part.n || filter->array_task_id != MODEL_UNKNOWN_U32 ||
                          filter->het_offset != MODEL_UNKNOWN_U32))
        return err_set(taking->err, EINVAL,
                       "%s takes several jobs only by their plain ids: ask for \"%s\" by itself",
                       taking->param->name, quote(part).text);
    ids = grow(taking, filter->ids, filter->n_ids, sizeof(*ids));
    ids[filter->n_ids++] = id;
    filter->ids = ids;
    filter->array_task_id = task;
    filter->het_offset = offset;
    return 0;
}

static int take_jobs(struct taking *taking, struct str value)
{
    return take_parts(taking, value, take_job);
}

static int refuse_group(const struct taking *taking, struct str part)
{
    char list[200];
    size_t n = 0;

    for (size_t i = 0; i < USAGE_KEYS && n < sizeof(list); i++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%.*s", i ? ", " : "",
                              STR_ARG(usage_key_words[i]));
    return err_set(taking->err, EINVAL, "%s: \"%s\" is none of %s", taking->param->name,
                   quote(part).text, list);
}

static int take_group(struct taking *taking, struct str part)
{
    struct api_request *request = taking->request;
    enum usage_key key;

    if (!usage_key_find(part, &key))
        return refuse_group(taking, part);
    for (size_t i = 0; i < request->n_keys; i++)
        if (request->keys[i] == key)
            return err_set(taking->err, EINVAL, "%s has \"%s\" twice: leave one out",
                           taking->param->name, quote(part).text);
    request->keys[request->n_keys++] = key;
    return 0;
}

static int take_groups(struct taking *taking, struct str value)
{
    return take_parts(taking, value, take_group);
}

static int refuse_value(const struct taking *taking, struct str value, const char *what)
{
    return err_set(taking->err, EINVAL, "%s: \"%s\" is not %s", taking->param->name,
                   quote(value).text, what);
}

static int take_time(struct taking *taking, struct str value)
{
    if (api_time_read(value, taking->place))
        return 0;
    return refuse_value(taking, value,
                        "a time: write 2026-10-01 (a day in UTC), 2026-10-01T12:30:00Z, or UTC "
                        "seconds");
}

static int take_flag(struct taking *taking, struct str value)
{
    bool *flag = taking->place;

    *flag = str_eq(value, STR("true"));
    if (*flag || str_eq(value, STR("false")))
        return 0;
    return refuse_value(taking, value, "true or false");
}

static int take_count(struct taking *taking, struct str value)
{
    uint64_t *count = taking->place;

    if (num_get_u64(value, count) && *count <= INT64_MAX)
        return 0;
    return refuse_value(taking, value, "a whole number from 0");
}

static int take_seconds(struct taking *taking, struct str value)
{
    int64_t *seconds = taking->place;

    if (num_get_i64(value, seconds) && *seconds >= 0)
        return 0;
    return refuse_value(taking, value, "a number of whole seconds from 0");
}

static int take_ratio(struct taking *taking, struct str value)
{
    double *ratio = taking->place;

    if (num_get_double(value, ratio) && *ratio >= 0 && *ratio <= 1)
        return 0;
    return refuse_value(taking, value, "a number from 0 to 1, like 0.25");
}

static int take_limit(struct taking *taking, struct str value)
{
    size_t *limit = taking->place;
    uint64_t number;

    if (!num_get_u64(value, &number) || number < 1 || number > API_MOST_ROWS)
        return refuse_value(taking, value, "a number from 1 to 1000");
    *limit = number;
    return 0;
}

static int take_offset(struct taking *taking, struct str value)
{
    size_t *offset = taking->place;
    uint64_t number;

    if (!num_get_u64(value, &number) || number > UINT32_MAX)
        return refuse_value(taking, value, "a whole number from 0");
    *offset = number;
    return 0;
}

static int take_phrase(struct taking *taking, struct str value)
{
    if (value.n > API_PHRASE_MAX)
        return err_set(taking->err, EINVAL, "%s is longer than %d bytes: write less",
                       taking->param->name, API_PHRASE_MAX);
    *(struct str *)taking->place = value;
    return 0;
}

/* "cpus", or "-cpus" for the most first. */
static int take_sort(struct taking *taking, struct str value)
{
    struct api_sort *sort = taking->place;
    bool is_descending = str_starts(value, STR("-"));
    struct str words[QUEUE_SORTS], word = str_skip(value, is_descending);

    for (size_t i = 0; i < QUEUE_SORTS; i++) {
        words[i] = str_of(queue_sort_words[i]);
        if (!str_eq(words[i], word))
            continue;
        *sort = (struct api_sort){ (enum queue_sort)i, is_descending };
        return 0;
    }
    return refuse_word(taking, word, words, QUEUE_SORTS);
}

static int take_run(struct taking *taking, struct str value)
{
    if (api_key_read_run(value, taking->arena, taking->place))
        return 0;
    return refuse_value(taking, value, "a key: give the \"next\" of the page before");
}

static int take_node(struct taking *taking, struct str value)
{
    if (api_key_read_node(value, taking->arena, taking->place))
        return 0;
    return refuse_value(taking, value, "a key: give the \"next\" of the page before");
}

#define TEXTS_SCHEMA "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define TEXT_SCHEMA  "{\"type\":\"string\"}"
#define COUNT_SCHEMA "{\"type\":\"integer\",\"minimum\":0}"

static const struct type {
    int (*take)(struct taking *taking, struct str value);
    bool is_repeatable;
    const char *value, *schema;
} types[] = {
    [API_PARAM_WORDS] = { take_words, true, "NAME,…", TEXTS_SCHEMA },
    [API_PARAM_TEXTS] = { take_text, true, "TEXT", TEXTS_SCHEMA },
    [API_PARAM_HOSTS] = { take_hosts, true, "NODE[1-4],…", TEXTS_SCHEMA },
    [API_PARAM_JOB_STATES] = { take_job_states, true, "COMPLETED,FAILED,…", TEXTS_SCHEMA },
    [API_PARAM_NODE_STATES] = { take_node_states, true, "idle,drain,…", TEXTS_SCHEMA },
    [API_PARAM_JOBS] = { take_jobs, true, "123,… or 123_7 or 123%2B1", TEXTS_SCHEMA },
    [API_PARAM_GROUPS] = { take_groups, true, "KEY,…", TEXTS_SCHEMA },
    [API_PARAM_TIME] = { take_time, false, "TIME", TEXT_SCHEMA },
    [API_PARAM_FLAG] = { take_flag, false, "true", "{\"type\":\"boolean\"}" },
    [API_PARAM_COUNT] = { take_count, false, "N", COUNT_SCHEMA },
    [API_PARAM_SECONDS] = { take_seconds, false, "SECONDS", COUNT_SCHEMA },
    [API_PARAM_RATIO] = { take_ratio, false, "RATIO",
                          "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}" },
    [API_PARAM_LIMIT] = { take_limit, false, "N",
                          "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50}" },
    [API_PARAM_OFFSET] = { take_offset, false, "N",
                           "{\"type\":\"integer\",\"minimum\":0,\"default\":0}" },
    [API_PARAM_RUN] = { take_run, false, "KEY", TEXT_SCHEMA },
    [API_PARAM_NODE] = { take_node, false, "KEY", TEXT_SCHEMA },
    [API_PARAM_SORT] = { take_sort, false, "cpus or -cpus", TEXT_SCHEMA },
    [API_PARAM_PHRASE] = { take_phrase, false, "TEXT", "{\"type\":\"string\",\"maxLength\":200}" },
};

const char *api_param_schema(const struct api_param *param)
{
    return types[param->type].schema;
}

const char *api_param_value(const struct api_param *param)
{
    return types[param->type].value;
}

static int refuse_unknown(const struct api_param *params, size_t n, struct str name,
                          struct err *err)
{
    const struct api_param *nearest = NULL;
    size_t best = FURTHEST_WORD, length = 0;
    char list[300] = "";

    for (size_t i = 0; i < n; i++) {
        size_t distance = str_distance(str_of(params[i].name), name);

        if (distance < best) {
            best = distance;
            nearest = &params[i];
        }
        if (length < sizeof(list))
            length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i ? ", " : "",
                                       params[i].name);
    }
    if (nearest)
        return err_set(err, EINVAL, "there is no parameter \"%s\" here; did you mean \"%s\"?",
                       quote(name).text, nearest->name);
    if (n == 0)
        return err_set(err, EINVAL,
                       "there is no parameter \"%s\" here, nor any other: leave it out",
                       quote(name).text);
    return err_set(err, EINVAL, "there is no parameter \"%s\" here; there are %s", quote(name).text,
                   list);
}

int api_request_take(struct api_request *request, const struct api_param *params, size_t n,
                     uint64_t *seen, struct str name, struct str value, struct arena *arena,
                     struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct taking taking = { .request = request,
                                 .param = &params[i],
                                 .place = (char *)request + params[i].offset,
                                 .arena = arena,
                                 .err = err };
        const struct type *type = &types[params[i].type];

        if (!str_eq(str_of(params[i].name), name))
            continue;
        if (*seen & UINT64_C(1) << i && !type->is_repeatable)
            return err_set(err, EINVAL, "%s is given twice: leave one out", params[i].name);
        *seen |= UINT64_C(1) << i;
        return value.n ? type->take(&taking, value) : refuse_empty(&taking);
    }
    return refuse_unknown(params, n, name, err);
}
