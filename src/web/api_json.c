/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes tables of fields as JSON. */
#include "web/api_json.h"

#include "base/json.h"
#include "base/num.h"
#include "store/query.h"
#include "web/api_key.h"

#include <math.h>

void api_json_next(struct buf *out)
{
    /* A text ends with its quotation mark: a bracket is ours. */
    if (out->n && !memchr("{[:", out->p[out->n - 1], 3))
        buf_byte(out, ',');
}

void api_json_name(struct buf *out, const char *name)
{
    api_json_next(out);
    buf_byte(out, '"');
    buf_text(out, name);
    buf_text(out, "\":");
}

void api_json_undo(struct buf *out, size_t n)
{
    if (out->n == n)
        return;
    out->n = n;
    buf_end(out);
}

void api_json_count(struct buf *out, const char *name, uint64_t count)
{
    api_json_name(out, name);
    buf_u64(out, count);
}

void api_json_text(struct buf *out, const char *name, struct str text)
{
    if (!text.n)
        return;
    api_json_name(out, name);
    buf_json(out, text);
}

static void put_text(struct buf *out, const char *name, const void *value)
{
    api_json_text(out, name, *(const struct str *)value);
}

static void put_number_unless(struct buf *out, const char *name, uint64_t number, uint64_t unknown)
{
    if (number == unknown)
        return;
    api_json_name(out, name);
    buf_u64(out, number);
}

static void put_id(struct buf *out, const char *name, const void *value)
{
    put_number_unless(out, name, *(const uint32_t *)value, 0);
}

static void put_u32(struct buf *out, const char *name, const void *value)
{
    put_number_unless(out, name, *(const uint32_t *)value, MODEL_UNKNOWN_U32);
}

static void put_u64(struct buf *out, const char *name, const void *value)
{
    put_number_unless(out, name, *(const uint64_t *)value, MODEL_UNKNOWN_U64);
}

static void put_signed_unless(struct buf *out, const char *name, int64_t number, int64_t unknown)
{
    if (number == unknown)
        return;
    api_json_name(out, name);
    buf_i64(out, number);
}

static void put_time(struct buf *out, const char *name, const void *value)
{
    put_signed_unless(out, name, *(const int64_t *)value, 0);
}

static void put_span(struct buf *out, const char *name, const void *value)
{
    put_signed_unless(out, name, *(const int64_t *)value, -1);
}

static void put_minutes(struct buf *out, const char *name, const void *value)
{
    uint32_t minutes = *(const uint32_t *)value;

    put_number_unless(out, name, minutes == MODEL_UNKNOWN_U32 ? 0 : (uint64_t)minutes * 60, 0);
}

static void put_double(struct buf *out, const char *name, const void *value)
{
    double number = *(const double *)value;

    if (!isfinite(number))
        return;
    api_json_name(out, name);
    buf_double(out, number);
}

static void put_state(struct buf *out, const char *name, const void *value)
{
    api_json_name(out, name);
    buf_byte(out, '"');
    job_state_put(out, *(const struct job_state *)value);
    buf_byte(out, '"');
}

static void put_origin(struct buf *out, const char *name, const void *value)
{
    enum record_origin origin = *(const enum record_origin *)value;

    api_json_name(out, name);
    buf_text(out, origin == RECORD_ACCOUNTED ? "\"accounted\"" : "\"seen\"");
}

/* "a100" or "a100=2,v100=1", see tres_gpu_types. */
static void put_gpu_types(struct buf *out, const char *name, const void *value)
{
    const struct job_row *row = value;

    if (!row->gpu_types.n)
        return;
    api_json_name(out, name);
    buf_byte(out, '{');
    for (struct str part, rest = row->gpu_types; rest.p;) {
        struct str type;
        uint64_t gpus = row->gpus;

        part = str_cut(&rest, ',');
        type = str_cut(&part, '=');
        if ((part.p && !num_get_u64(part, &gpus)) || gpus == MODEL_UNKNOWN_U64)
            continue;
        api_json_next(out);
        buf_json(out, type);
        buf_byte(out, ':');
        buf_u64(out, gpus);
    }
    buf_byte(out, '}');
}

static void put_run_key(struct buf *out, const char *name, const void *value)
{
    const struct run_key *key = value;

    if (!key->submit_time || !key->cluster.n)
        return;
    api_json_name(out, name);
    buf_byte(out, '"');
    api_key_put_run(out, value);
    buf_byte(out, '"');
}

static void put_flag(struct buf *out, const char *name, const void *value)
{
    api_json_name(out, name);
    buf_text(out, *(const bool *)value ? "true" : "false");
}

/* 0 is the first component: a job that has none has no offset either. */
static void put_het_offset(struct buf *out, const char *name, const void *value)
{
    const struct job_record *record = value;

    if (record->het_job_id)
        put_u32(out, name, &record->het_offset);
}

static void (*const put[])(struct buf *out, const char *name, const void *value) = {
    [API_TEXT] = put_text,       [API_ID] = put_id,           [API_U32] = put_u32,
    [API_U64] = put_u64,         [API_TIME] = put_time,       [API_SPAN] = put_span,
    [API_MINUTES] = put_minutes, [API_NUMBER] = put_double,   [API_STATE] = put_state,
    [API_ORIGIN] = put_origin,   [API_RUN_KEY] = put_run_key, [API_GPU_TYPES] = put_gpu_types,
    [API_HET] = put_het_offset,  [API_FLAG] = put_flag,
};

void api_json_fields(struct buf *out, const struct api_field *fields, size_t n, const void *from)
{
    for (size_t i = 0; i < n; i++)
        put[fields[i].type](out, fields[i].name, (const char *)from + fields[i].offset);
}

void api_json_begin(struct buf *out, const char *name, char bracket)
{
    if (name)
        api_json_name(out, name);
    else
        api_json_next(out);
    buf_byte(out, bracket);
}

void api_json_put(struct buf *out, const char *name, const struct api_field *fields, size_t n,
                  const void *from)
{
    api_json_begin(out, name, '{');
    api_json_fields(out, fields, n, from);
    buf_byte(out, '}');
}

void api_json_list(struct buf *out, const char *name, const struct api_field *fields,
                   size_t n_fields, const void *from, size_t n, size_t size)
{
    api_json_begin(out, name, '[');
    for (size_t i = 0; i < n && !out->over; i++)
        api_json_put(out, NULL, fields, n_fields, (const char *)from + i * size);
    buf_byte(out, ']');
}

/* Infinity and NaN, which the scanner takes, are no JSON. */
static void put_scanned_number(struct buf *out, struct str text)
{
    char last = text.n ? text.p[text.n - 1] : 'N';

    if (last >= '0' && last <= '9')
        buf_put(out, text);
    else
        buf_text(out, "null");
}

static void put_event(struct buf *out, const struct json *json, enum json_event event)
{
    if (event != JSON_OBJECT_END && event != JSON_ARRAY_END)
        api_json_next(out);
    switch (event) {
    case JSON_OBJECT:
        buf_byte(out, '{');
        break;
    case JSON_OBJECT_END:
        buf_byte(out, '}');
        break;
    case JSON_ARRAY:
        buf_byte(out, '[');
        break;
    case JSON_ARRAY_END:
        buf_byte(out, ']');
        break;
    case JSON_KEY:
        buf_json(out, json_text(json));
        buf_byte(out, ':');
        break;
    case JSON_STRING:
        buf_json(out, json_text(json));
        break;
    case JSON_NUMBER:
        put_scanned_number(out, json_text(json));
        break;
    case JSON_TRUE:
        buf_text(out, "true");
        break;
    case JSON_FALSE:
        buf_text(out, "false");
        break;
    default:
        buf_text(out, "null");
    }
}

bool api_json_object(struct buf *out, struct str document)
{
    struct json *json = json_new();
    size_t before = out->n;
    bool is_object = false, is_finished = false;
    enum json_event event;

    json_feed(json, document);
    for (;;) {
        event = json_next(json);
        if (event == JSON_MORE && !is_finished) {
            is_finished = true;
            json_finish(json);
            continue;
        }
        if (event <= JSON_END)
            break;
        if (out->n == before)
            is_object = event == JSON_OBJECT;
        if (!is_object)
            break;
        put_event(out, json, event);
    }
    json_free(json);
    if (is_object && event == JSON_END)
        return true;
    api_json_undo(out, before);
    return false;
}
