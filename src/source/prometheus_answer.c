/* SPDX-License-Identifier: GPL-2.0-or-later */
/* {"status", "data": {"resultType", "result": [{"metric": {LABEL: VALUE, …}, "value": [TIME,
 * "NUMBER"]}, …]}, "errorType", "error", "warnings": […], "isPartial"}. A matrix has instead of
 * "value" "values": [[TIME, "NUMBER"], …]. Keys come in any order, and others among them. */
#include "source/prometheus_answer.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"

#include <math.h>

enum { LONGEST_LABEL = 1 << 20 }; /* as base/json */

/* Where in the document the next event is: among the keys or items of something, or at the value of
 * a key that is known. */
enum place {
    AT_TOP,
    IN_DOCUMENT,
    AT_STATUS,
    AT_ERROR_TYPE,
    AT_ERROR,
    AT_PARTIAL,
    AT_WARNINGS,
    IN_WARNINGS,
    AT_DATA,
    IN_DATA,
    AT_RESULT_TYPE,
    AT_RESULT,
    IN_RESULT,
    IN_ELEMENT, /* of a vector */
    IN_SERIES,  /* of a matrix */
    AT_METRIC,
    IN_METRIC,
    AT_LABEL,
    AT_VALUE,
    AT_VALUES,
    IN_VALUES,
    IN_POINT,
    PLACES,
};

struct prometheus_answer {
    struct json *json;
    enum place place;
    const struct prometheus_query *query; /* one of these two; the other is NULL */
    const struct prometheus_range *range;
    size_t most_points;                  /* of an element; of a vector's, one */
    struct str names[PROMETHEUS_LABELS]; /* of labels; empty: none is wanted there */

    struct { /* the one at hand */
        struct buf labels[PROMETHEUS_LABELS];
        size_t label; /* whose value comes next */
        struct prometheus_point *point;
        size_t n_points, room;
        bool has_metric, is_odd;
    } element;

    struct { /* the one at hand */
        struct prometheus_point point;
        size_t items;
        bool has_time, has_number;
    } pair;

    size_t n_items;       /* of the result, whatever they are */
    char result_type[40]; /* empty: not told */
    bool has_result;
    struct prometheus_said said;
};

static const struct key {
    enum place in;
    struct str name;
    enum place at;
} keys[] = {
    { IN_ELEMENT, STR_INIT("metric"), AT_METRIC },
    { IN_ELEMENT, STR_INIT("value"), AT_VALUE },
    { IN_SERIES, STR_INIT("metric"), AT_METRIC },
    { IN_SERIES, STR_INIT("values"), AT_VALUES },
    { IN_DATA, STR_INIT("resultType"), AT_RESULT_TYPE },
    { IN_DATA, STR_INIT("result"), AT_RESULT },
    { IN_DOCUMENT, STR_INIT("status"), AT_STATUS },
    { IN_DOCUMENT, STR_INIT("data"), AT_DATA },
    { IN_DOCUMENT, STR_INIT("errorType"), AT_ERROR_TYPE },
    { IN_DOCUMENT, STR_INIT("error"), AT_ERROR },
    { IN_DOCUMENT, STR_INIT("warnings"), AT_WARNINGS },
    { IN_DOCUMENT, STR_INIT("isPartial"), AT_PARTIAL },
};

static void take_key(struct prometheus_answer *answer)
{
    struct str name = json_text(answer->json);

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (keys[i].in == answer->place && str_eq(keys[i].name, name)) {
            answer->place = keys[i].at;
            return;
        }
    }
    json_skip(answer->json);
}

/* Of one kind only, and nobody wants the other's. */
static bool enters(struct prometheus_answer *answer, enum json_event event, enum json_event wanted)
{
    if (event == wanted)
        return true;
    json_skip(answer->json);
    return false;
}

static void keep_text(const struct prometheus_answer *answer, enum json_event event, char *to,
                      size_t size)
{
    if (event == JSON_STRING)
        to[str_copy_printable(to, size - 1, json_text(answer->json))] = '\0';
    else
        json_skip(answer->json);
}

static void take_at_top(struct prometheus_answer *answer, enum json_event event)
{
    if (enters(answer, event, JSON_OBJECT))
        answer->place = IN_DOCUMENT;
}

static void take_in_document(struct prometheus_answer *answer, enum json_event event)
{
    if (event == JSON_KEY)
        take_key(answer);
    else
        answer->place = AT_TOP;
}

static void take_status(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = IN_DOCUMENT;
    answer->said.status = PROMETHEUS_SILENT;
    if (!enters(answer, event, JSON_STRING))
        return;
    if (str_eq(json_text(answer->json), STR("success")))
        answer->said.status = PROMETHEUS_SUCCESS;
    else if (str_eq(json_text(answer->json), STR("error")))
        answer->said.status = PROMETHEUS_ERROR;
}

static void take_error_type(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = IN_DOCUMENT;
    keep_text(answer, event, answer->said.error_type, sizeof(answer->said.error_type));
}

static void take_error(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = IN_DOCUMENT;
    keep_text(answer, event, answer->said.error, sizeof(answer->said.error));
}

static void take_partial(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = IN_DOCUMENT;
    answer->said.is_partial = enters(answer, event, JSON_TRUE);
}

static void take_warnings(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = enters(answer, event, JSON_ARRAY) ? IN_WARNINGS : IN_DOCUMENT;
}

static void take_warning(struct prometheus_answer *answer, enum json_event event)
{
    if (event == JSON_ARRAY_END)
        answer->place = IN_DOCUMENT;
    else if (answer->said.warning[0])
        json_skip(answer->json);
    else
        keep_text(answer, event, answer->said.warning, sizeof(answer->said.warning));
}

static void take_data(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = enters(answer, event, JSON_OBJECT) ? IN_DATA : IN_DOCUMENT;
}

static void take_in_data(struct prometheus_answer *answer, enum json_event event)
{
    if (event == JSON_KEY)
        take_key(answer);
    else
        answer->place = IN_DOCUMENT;
}

static void take_result_type(struct prometheus_answer *answer, enum json_event event)
{
    answer->place = IN_DATA;
    keep_text(answer, event, answer->result_type, sizeof(answer->result_type));
}

/* Go writes an empty list as null where nobody has made one. */
static void take_result(struct prometheus_answer *answer, enum json_event event)
{
    answer->has_result |= event == JSON_ARRAY || event == JSON_NULL;
    answer->place = enters(answer, event, JSON_ARRAY) ? IN_RESULT : IN_DATA;
}

/* Among the keys of the element at hand. */
static enum place element_place(const struct prometheus_answer *answer)
{
    return answer->range ? IN_SERIES : IN_ELEMENT;
}

static void begin_element(struct prometheus_answer *answer)
{
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++)
        buf_reset(&answer->element.labels[i]);
    answer->element.has_metric = answer->element.is_odd = false;
    answer->element.n_points = 0;
    answer->place = element_place(answer);
}

static void take_in_result(struct prometheus_answer *answer, enum json_event event)
{
    if (event == JSON_ARRAY_END) {
        answer->place = IN_DATA;
        return;
    }
    answer->n_items++;
    if (enters(answer, event, JSON_OBJECT))
        begin_element(answer);
    else
        answer->said.skipped++;
}

static void give_sample(const struct prometheus_answer *answer)
{
    struct prometheus_sample sample = { .value = answer->element.point[0].value };

    for (size_t i = 0; i < PROMETHEUS_LABELS; i++)
        sample.label[i] = buf_str(&answer->element.labels[i]);
    answer->query->sink(answer->query->ctx, &sample);
}

static void give_series(const struct prometheus_answer *answer)
{
    struct prometheus_series series = { .point = answer->element.point,
                                        .n_points = answer->element.n_points };

    for (size_t i = 0; i < PROMETHEUS_LABELS; i++)
        series.label[i] = buf_str(&answer->element.labels[i]);
    answer->range->sink(answer->range->ctx, &series);
}

static void end_element(struct prometheus_answer *answer)
{
    answer->place = IN_RESULT;
    if (!answer->element.has_metric || !answer->element.n_points || answer->element.is_odd) {
        answer->said.skipped++;
        return;
    }
    answer->said.samples++;
    if (answer->range)
        give_series(answer);
    else
        give_sample(answer);
}

static void take_in_element(struct prometheus_answer *answer, enum json_event event)
{
    if (event == JSON_KEY)
        take_key(answer);
    else
        end_element(answer);
}

static void take_metric(struct prometheus_answer *answer, enum json_event event)
{
    answer->element.has_metric = enters(answer, event, JSON_OBJECT);
    answer->place = answer->element.has_metric ? IN_METRIC : element_place(answer);
}

static void take_in_metric(struct prometheus_answer *answer, enum json_event event)
{
    struct str name = json_text(answer->json);

    if (event == JSON_OBJECT_END) {
        answer->place = element_place(answer);
        return;
    }
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++) {
        if (name.n && str_eq(answer->names[i], name)) {
            answer->element.label = i;
            answer->place = AT_LABEL;
            return;
        }
    }
    json_skip(answer->json);
}

static void take_label(struct prometheus_answer *answer, enum json_event event)
{
    struct buf *label = &answer->element.labels[answer->element.label];

    answer->place = IN_METRIC;
    buf_reset(label);
    if (enters(answer, event, JSON_STRING))
        buf_put(label, json_text(answer->json));
    else
        answer->element.is_odd = true;
}

static void begin_pair(struct prometheus_answer *answer)
{
    answer->pair.items = 0;
    answer->pair.has_time = answer->pair.has_number = false;
    answer->place = IN_POINT;
}

static void take_value(struct prometheus_answer *answer, enum json_event event)
{
    answer->element.n_points = 0;
    answer->place = IN_ELEMENT;
    if (enters(answer, event, JSON_ARRAY))
        begin_pair(answer);
}

static void take_values(struct prometheus_answer *answer, enum json_event event)
{
    answer->element.n_points = 0;
    answer->place = enters(answer, event, JSON_ARRAY) ? IN_VALUES : IN_SERIES;
}

static void take_in_values(struct prometheus_answer *answer, enum json_event event)
{
    if (event == JSON_ARRAY_END)
        answer->place = IN_SERIES;
    else if (enters(answer, event, JSON_ARRAY))
        begin_pair(answer);
    else
        answer->element.is_odd = true;
}

static void add_point(struct prometheus_answer *answer)
{
    size_t n = answer->element.n_points;

    if (n == answer->most_points) {
        answer->element.is_odd = true;
        return;
    }
    answer->element.point =
        heap_grow(answer->element.point, n, &answer->element.room, sizeof(answer->pair.point));
    answer->element.point[answer->element.n_points++] = answer->pair.point;
}

/* Of a sample nobody wants the time: it need not be one. */
static void end_pair(struct prometheus_answer *answer)
{
    bool is_whole = answer->pair.items == 2 && answer->pair.has_number;

    answer->place = answer->range ? IN_VALUES : IN_ELEMENT;
    if (is_whole && (answer->pair.has_time || !answer->range))
        add_point(answer);
    else if (answer->range)
        answer->element.is_odd = true;
}

static void take_in_point(struct prometheus_answer *answer, enum json_event event)
{
    bool is_number = event == JSON_STRING || event == JSON_NUMBER;
    struct str text = json_text(answer->json);

    if (event == JSON_ARRAY_END) {
        end_pair(answer);
        return;
    }
    switch (answer->pair.items++) {
    case 0:
        answer->pair.has_time = is_number && num_get_double(text, &answer->pair.point.time) &&
                                isfinite(answer->pair.point.time);
        break;
    case 1:
        answer->pair.has_number = is_number && num_get_double(text, &answer->pair.point.value);
        break;
    }
    json_skip(answer->json);
}

static int take_all(struct prometheus_answer *answer, struct err *err)
{
    static void (*const take[PLACES])(struct prometheus_answer *, enum json_event) = {
        [AT_TOP] = take_at_top,
        [IN_DOCUMENT] = take_in_document,
        [AT_STATUS] = take_status,
        [AT_ERROR_TYPE] = take_error_type,
        [AT_ERROR] = take_error,
        [AT_PARTIAL] = take_partial,
        [AT_WARNINGS] = take_warnings,
        [IN_WARNINGS] = take_warning,
        [AT_DATA] = take_data,
        [IN_DATA] = take_in_data,
        [AT_RESULT_TYPE] = take_result_type,
        [AT_RESULT] = take_result,
        [IN_RESULT] = take_in_result,
        [IN_ELEMENT] = take_in_element,
        [IN_SERIES] = take_in_element,
        [AT_METRIC] = take_metric,
        [IN_METRIC] = take_in_metric,
        [AT_LABEL] = take_label,
        [AT_VALUE] = take_value,
        [AT_VALUES] = take_values,
        [IN_VALUES] = take_in_values,
        [IN_POINT] = take_in_point,
    };
    enum json_event event;

    while ((event = json_next(answer->json)) > JSON_END)
        take[answer->place](answer, event);
    return event == JSON_ERROR ? json_error(answer->json, err) : 0;
}

static struct prometheus_answer *answer_new(const char *const labels[PROMETHEUS_LABELS])
{
    struct prometheus_answer *answer = heap_alloc(sizeof(*answer));

    answer->json = json_new();
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++) {
        answer->names[i] = str_of(labels[i]);
        buf_init(&answer->element.labels[i], LONGEST_LABEL);
    }
    return answer;
}

struct prometheus_answer *prometheus_answer_of_query(const struct prometheus_query *query)
{
    struct prometheus_answer *answer = answer_new(query->labels);

    answer->query = query;
    answer->most_points = 1;
    return answer;
}

struct prometheus_answer *prometheus_answer_of_range(const struct prometheus_range *range)
{
    struct prometheus_answer *answer = answer_new(range->labels);

    answer->range = range;
    answer->most_points = (size_t)((range->end - range->begin) / range->step_seconds) + 1;
    return answer;
}

struct prometheus_answer *prometheus_answer_free(struct prometheus_answer *answer)
{
    if (!answer)
        return NULL;
    json_free(answer->json);
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++)
        buf_free(&answer->element.labels[i]);
    free(answer->element.point);
    free(answer);
    return NULL;
}

int prometheus_answer_feed(struct prometheus_answer *answer, struct str piece, struct err *err)
{
    json_feed(answer->json, piece);
    return take_all(answer, err);
}

static const char *wanted_type(const struct prometheus_answer *answer)
{
    return answer->range ? "matrix" : "vector";
}

static bool has_wanted_type(const struct prometheus_answer *answer)
{
    struct str type = str_of(answer->result_type);

    /* An empty list is the same of any type. */
    return !answer->n_items || !type.n || str_eq(type, str_of(wanted_type(answer)));
}

int prometheus_answer_end(struct prometheus_answer *answer, struct err *err)
{
    int code;

    json_finish(answer->json);
    code = take_all(answer, err);
    if (code < 0 || answer->said.status == PROMETHEUS_ERROR)
        return code;
    if (answer->said.status != PROMETHEUS_SUCCESS)
        return err_set(err, EBADMSG, "it says neither \"status\":\"success\" nor \"error\"");
    if (!answer->has_result)
        return err_set(err, EBADMSG, "it says success, but has no list of results");
    if (!has_wanted_type(answer))
        return err_set(err, EBADMSG, "the query gives a %s where a %s is expected",
                       answer->result_type, wanted_type(answer));
    return 0;
}

const struct prometheus_said *prometheus_answer_said(const struct prometheus_answer *answer)
{
    return &answer->said;
}
