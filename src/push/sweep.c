/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer of /api/v1/metrics, which Pushgateways have since 1.0:
 *     {"status":"success","data":[GROUP,…]}
 * where GROUP has the members "labels", "last_push_successful", and one for each metric name, such
 * as "push_time_seconds": {"type":…,"metrics":[{"labels":{…},"value":"1.7e+09"},…]}. A metric that
 * somebody has called "labels" stands in the place of the group's labels. */
#include "push/sweep.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/num.h"
#include "model/profile.h"

#include <math.h>

enum { LONGEST_PATH = 8 * SWEEP_NODE }; /* of a group, behind the base URL */

enum place {
    OUTSIDE,
    DOCUMENT,
    GROUPS,
    GROUP,
    LABELS,
    FAMILY,
    METRICS,
    METRIC,
    METRIC_LABELS,
    PLACES,
};

static const enum place around[PLACES] = {
    [DOCUMENT] = OUTSIDE, [GROUPS] = DOCUMENT, [GROUP] = GROUPS,   [LABELS] = GROUP,
    [FAMILY] = GROUP,     [METRICS] = FAMILY,  [METRIC] = METRICS, [METRIC_LABELS] = METRIC,
};

/* What an object that is no member's value is, where it stands. */
static const enum place item[PLACES] = {
    [OUTSIDE] = DOCUMENT, [GROUPS] = GROUP, [METRICS] = METRIC
};

enum text { NO_TEXT, STATUS, JOB, INSTANCE, STEP, VALUE, CLUSTER };

static const struct member {
    enum place in;
    struct str key;
    enum json_event shape; /* what its value must be, */
    enum place place;      /* and where that leads, */
    enum text text;        /* or what it is */
} members[] = {
    { DOCUMENT, STR_INIT("status"), JSON_STRING, OUTSIDE, STATUS },
    { DOCUMENT, STR_INIT("data"), JSON_ARRAY, GROUPS, NO_TEXT },
    { GROUP, STR_INIT("labels"), JSON_OBJECT, LABELS, NO_TEXT },
    { GROUP, STR_INIT("push_time_seconds"), JSON_OBJECT, FAMILY, NO_TEXT },
    { LABELS, STR_INIT("job"), JSON_STRING, OUTSIDE, JOB },
    { LABELS, STR_INIT("instance"), JSON_STRING, OUTSIDE, INSTANCE },
    { LABELS, STR_INIT("step"), JSON_STRING, OUTSIDE, STEP },
    { FAMILY, STR_INIT("metrics"), JSON_ARRAY, METRICS, NO_TEXT },
    { METRIC, STR_INIT("value"), JSON_STRING, OUTSIDE, VALUE },
    { METRIC, STR_INIT("labels"), JSON_OBJECT, METRIC_LABELS, NO_TEXT },
    { METRIC_LABELS, STR_INIT("cluster"), JSON_STRING, OUTSIDE, CLUSTER },
};

static const struct member profile_member = { GROUP, STR_INIT(""), JSON_OBJECT, FAMILY, NO_TEXT };

struct sweep_reader {
    struct sweep_wishes wishes;
    struct sweep_list *list;
    struct json *json;
    enum place place;
    const struct member *member; /* whose value comes next; NULL: none is waited for */
    bool has_succeeded, has_groups;

    struct sweep_group group; /* the one at hand */
    bool is_strange;          /* and not the plugin's */
    bool has_labels, has_profile, has_original;
    bool is_profile; /* the family at hand; else it is push_time_seconds */
};

static void begin_group(struct sweep_reader *reader)
{
    reader->group = (struct sweep_group){ 0 };
    reader->is_strange = reader->has_labels = reader->has_profile = reader->has_original = false;
}

static void end_group(struct sweep_reader *reader)
{
    const struct sweep_group *group = &reader->group;
    struct sweep_list *list = reader->list;

    list->n_all++;
    if (reader->is_strange || !group->job_id || !group->node[0] || !(group->pushed_seconds > 0) ||
        !(group->step[0] ? reader->has_profile : reader->has_original) ||
        !reader->wishes.is_wanted(reader->wishes.ctx, group))
        return;
    if (list->n == reader->wishes.most) {
        list->n_left_out++;
        return;
    }
    list->groups = heap_grow(list->groups, list->n, &list->room, sizeof(*list->groups));
    list->groups[list->n++] = *group;
}

/* False: it cannot be what the plugin has written, which is never empty nor longer. */
static bool keep(char *to, size_t room, struct str text)
{
    if (!text.n || text.n >= room || memchr(text.p, '\0', text.n))
        return false;
    memcpy(to, text.p, text.n);
    to[text.n] = '\0';
    return true;
}

static bool read_job(struct str text, uint32_t *ret)
{
    uint64_t number;

    if (!text.n || text.p[0] == '0' || !num_get_u64(text, &number) || number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

static bool is_step(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!(text.p[i] >= 'a' && text.p[i] <= 'z') && !(text.p[i] >= '0' && text.p[i] <= '9') &&
            text.p[i] != '+') /* "0+1": of a heterogeneous job */
            return false;
    return true;
}

/* All metrics of a step say the same. */
static bool keep_cluster(struct sweep_group *group, struct str text)
{
    if (group->cluster[0])
        return str_eq(str_of(group->cluster), text);
    return keep(group->cluster, sizeof(group->cluster), text);
}

static void take_text(struct sweep_reader *reader, enum text what, struct str text)
{
    struct sweep_group *group = &reader->group;
    bool ok = true;

    if (what == STATUS)
        reader->has_succeeded = str_eq(text, STR("success"));
    else if (what == JOB)
        ok = read_job(text, &group->job_id);
    else if (what == INSTANCE)
        ok = keep(group->node, sizeof(group->node), text);
    else if (what == STEP)
        ok = is_step(text) && keep(group->step, sizeof(group->step), text);
    else if (what == CLUSTER && reader->is_profile)
        ok = keep_cluster(group, text);
    else if (what == VALUE && !reader->is_profile)
        ok = num_get_double(text, &group->pushed_seconds) && isfinite(group->pushed_seconds);
    reader->is_strange |= !ok;
}

static const struct member *find_member(enum place place, struct str key)
{
    for (size_t i = 0; i < COUNT(members); i++)
        if (members[i].in == place && str_eq(members[i].key, key))
            return &members[i];
    return NULL;
}

static void take_family(struct sweep_reader *reader, struct str name)
{
    const struct profile_metric *metric = profile_metric_find(name);

    reader->is_profile = metric != NULL;
    reader->has_profile |= metric != NULL;
    reader->has_original |= metric && metric->is_original;
    if (metric)
        reader->member = &profile_member;
}

static void take_key(struct sweep_reader *reader, struct str key)
{
    reader->member = find_member(reader->place, key);
    if (reader->place == GROUP) {
        /* Twice in one group: nothing that a Pushgateway writes. */
        bool is_labels = reader->member && reader->member->place == LABELS;

        reader->is_strange |= is_labels && reader->has_labels;
        reader->has_labels |= is_labels;
        reader->is_profile = false;
        if (!reader->member)
            take_family(reader, key);
    } else if (reader->place == LABELS) {
        reader->is_strange |= !reader->member;
    }
    if (!reader->member)
        json_skip(reader->json);
}

static void take_value(struct sweep_reader *reader, enum json_event event)
{
    const struct member *member = reader->member;

    reader->member = NULL;
    if (event != member->shape) {
        reader->is_strange = true;
        json_skip(reader->json);
    } else if (member->text) {
        take_text(reader, member->text, json_text(reader->json));
    } else {
        reader->place = member->place;
        reader->has_groups |= member->place == GROUPS;
    }
}

static void take(struct sweep_reader *reader, enum json_event event)
{
    if (event == JSON_OBJECT_END || event == JSON_ARRAY_END) {
        if (reader->place == GROUP)
            end_group(reader);
        reader->place = around[reader->place];
    } else if (event == JSON_KEY) {
        take_key(reader, json_text(reader->json));
    } else if (reader->member) {
        take_value(reader, event);
    } else if (event == JSON_OBJECT && item[reader->place]) {
        reader->place = item[reader->place];
        if (reader->place == GROUP)
            begin_group(reader);
    } else {
        json_skip(reader->json);
    }
}

struct sweep_reader *sweep_reader_new(const struct sweep_wishes *wishes, struct sweep_list *list)
{
    struct sweep_reader *reader = heap_alloc(sizeof(*reader));

    reader->wishes = *wishes;
    reader->list = list;
    reader->json = json_new();
    return reader;
}

struct sweep_reader *sweep_reader_free(struct sweep_reader *reader)
{
    if (reader)
        json_free(reader->json);
    free(reader);
    return NULL;
}

static int take_all(struct sweep_reader *reader, struct err *err)
{
    enum json_event event;

    while ((event = json_next(reader->json)) > JSON_END)
        take(reader, event);
    return event == JSON_ERROR ? json_error(reader->json, err) : 0;
}

int sweep_reader_add(struct sweep_reader *reader, struct str piece, struct err *err)
{
    json_feed(reader->json, piece);
    return take_all(reader, err);
}

int sweep_reader_end(struct sweep_reader *reader, struct err *err)
{
    int code;

    json_finish(reader->json);
    code = take_all(reader, err);
    if (code == 0 && (!reader->has_succeeded || !reader->has_groups))
        return err_set(err, EBADMSG, "there is no list of groups in the answer");
    return code;
}

void sweep_list_clear(struct sweep_list *list)
{
    free(list->groups);
    *list = (struct sweep_list){ 0 };
}

struct answer {
    struct sweep_reader *reader;
    bool is_list; /* otherwise it is what somebody says who has none */
};

static int begin_answer(void *ctx, const struct fetch_result *so_far, struct err *err)
{
    (void)err;
    ((struct answer *)ctx)->is_list = so_far->status / 100 == 2;
    return 0;
}

static int take_answer(void *ctx, struct str piece, struct err *err)
{
    const struct answer *answer = ctx;

    return answer->is_list ? sweep_reader_add(answer->reader, piece, err) : 0;
}

static int read_answer(const struct gateway *gateway, struct fetch *fetch, struct answer *answer,
                       struct err *err)
{
    struct fetch_result result;
    int code = gateway_fetch(gateway, fetch, &result, err);

    if (code == 0 && gateway_judge(gateway, result.status, err) != GATEWAY_TAKEN)
        return -EREMOTEIO;
    if (code == 0)
        code = sweep_reader_end(answer->reader, err);
    if (code == -EBADMSG)
        err_prefix(err, "what %s has answered is not a Pushgateway's", gateway->base.origin);
    return code;
}

int sweep_read(const struct gateway *gateway, const struct sweep_limits *limits,
               const struct sweep_wishes *wishes, struct sweep_list *list, struct err *err)
{
    struct answer answer = { .reader = sweep_reader_new(wishes, list) };
    struct buf url;
    struct fetch fetch = {
        .timeout_ms = limits->timeout_ms,
        .max_answer = limits->max_answer,
        .cancelled = limits->cancelled,
        .begin = begin_answer,
        .sink = take_answer,
        .ctx = &answer,
    };
    int code;

    buf_init(&url, GATEWAY_URL + LONGEST_PATH);
    buf_printf(&url, "%s/api/v1/metrics", gateway->base.url);
    fetch.url = url.p;
    code = read_answer(gateway, &fetch, &answer, err);
    buf_free(&url);
    sweep_reader_free(answer.reader);
    return code;
}

int sweep_delete(const struct gateway *gateway, const struct sweep_group *group,
                 const struct sweep_limits *limits, struct err *err)
{
    char job[NUM_U64_MAX];
    struct gateway_words words;
    struct fetch fetch = {
        .method = "DELETE",
        .timeout_ms = limits->timeout_ms,
        .cancelled = limits->cancelled,
    };
    struct buf url;
    long status = 0;
    int code;

    buf_init(&url, GATEWAY_URL + LONGEST_PATH);
    buf_printf(&url, "%s/metrics", gateway->base.url);
    gateway_put_label(&url, "job", (struct str){ job, num_put_u64(job, group->job_id) });
    gateway_put_label(&url, "instance", str_of(group->node));
    if (group->step[0])
        gateway_put_label(&url, "step", str_of(group->step));
    fetch.url = url.p;
    code = gateway_request(gateway, &fetch, &words, &status, err);
    buf_free(&url);
    if (code == 0 && gateway_judge(gateway, status, err) != GATEWAY_TAKEN)
        code = -EREMOTEIO;
    return code;
}
