/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the body of a POST to /ingest. */
#include "http/ingest_body.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"
#include "base/quote.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_NAME = 255,  /* bytes of a node's name, or a cluster's */
    MOST_KEY = 64,    /* of a member's name in a document */
    MOST_TEXT = 4096, /* of a text in it */
    MOST_NUMBER = 40, /* digits */
    MOST_DEPTH = 8,   /* objects and arrays in one another, that of the record included */
};

static const uint64_t highest_id = 4294967293;       /* Slurm's NO_VAL and INFINITE are above it */
static const int64_t latest = INT64_C(253402300799); /* the end of the year 9999 */

struct reader {
    struct json *json;
    struct arena *arena;
    struct ingest_body body;
    size_t n_room;
    struct buf document;
    size_t base_depth; /* of the record's own members */
    bool has_records, has_cluster;
    bool is_in_record; /* what is wrong is a record's fault */
    struct err *err;
};

static int complain(struct reader *reader, const char *what)
{
    return err_set(reader->err, EBADMSG, "%s", what);
}

static bool is_name(struct str text)
{
    if (!text.n || text.n > MOST_NAME)
        return false;
    for (struct str rest = text; rest.n;) {
        size_t n = str_printable_len(rest);

        if (!n)
            return false;
        rest = str_skip(rest, n);
    }
    return true;
}

/* --- the document --- */

static void put_comma(struct buf *to)
{
    if (!strchr("{[:", to->p[to->n - 1]))
        buf_byte(to, ',');
}

static int copy_number(struct reader *reader)
{
    struct str text = json_text(reader->json);
    double value;

    if (text.n > MOST_NUMBER || !json_double(reader->json, &value) || !isfinite(value))
        return complain(reader, "a number is too long, or none that JSON knows");
    buf_put(&reader->document, text);
    return 0;
}

static int copy_text(struct reader *reader)
{
    if (json_text(reader->json).n > MOST_TEXT)
        return complain(reader, "a text is longer than 4096 bytes");
    buf_json(&reader->document, json_text(reader->json));
    return 0;
}

static int copy_key(struct reader *reader)
{
    struct str key = json_text(reader->json);

    if (!key.n || key.n > MOST_KEY)
        return complain(reader, "the name of a member must have from 1 to 64 bytes");
    put_comma(&reader->document);
    buf_json(&reader->document, key);
    buf_byte(&reader->document, ':');
    return 0;
}

static int open_bracket(struct reader *reader, char bracket)
{
    if (json_depth(reader->json) - reader->base_depth > MOST_DEPTH)
        return complain(reader, "it goes deeper than 8 levels");
    put_comma(&reader->document);
    buf_byte(&reader->document, bracket);
    return 0;
}

static int copy_event(struct reader *reader, enum json_event event)
{
    struct buf *to = &reader->document;

    switch (event) {
    case JSON_OBJECT:
        return open_bracket(reader, '{');
    case JSON_ARRAY:
        return open_bracket(reader, '[');
    case JSON_OBJECT_END:
        buf_byte(to, '}');
        return 0;
    case JSON_ARRAY_END:
        buf_byte(to, ']');
        return 0;
    case JSON_KEY:
        return copy_key(reader);
    default:
        break;
    }
    put_comma(to);
    if (event == JSON_STRING)
        return copy_text(reader);
    if (event == JSON_NUMBER)
        return copy_number(reader);
    buf_text(to, event == JSON_TRUE ? "true" : event == JSON_FALSE ? "false" : "null");
    return 0;
}

/* The value of the key at hand, to its end. */
static int copy_member(struct reader *reader)
{
    size_t depth = json_depth(reader->json);
    enum json_event event;
    int code = copy_key(reader);

    do {
        event = json_next(reader->json);
        if (event <= JSON_END)
            return 0; /* json_error knows why */
        if (code == 0)
            code = copy_event(reader, event);
        if (code == 0 && reader->document.over)
            code = complain(reader, "its document is longer than 64 KB");
    } while (code == 0 && json_depth(reader->json) > depth);
    return code;
}

/* --- the record --- */

static int read_id(struct reader *reader, struct final_record *record)
{
    uint64_t id;

    if (!json_u64(reader->json, &id) || !id || id > highest_id)
        return complain(reader, "job_id must be a whole number from 1 to 4294967293");
    record->job_id = (uint32_t)id;
    return 0;
}

static int read_node(struct reader *reader, struct final_record *record)
{
    if (!is_name(json_text(reader->json)))
        return complain(reader, "node must be a printable name of 1 to 255 bytes");
    record->node = arena_str(reader->arena, json_text(reader->json));
    return 0;
}

static int read_time(struct reader *reader, int64_t *ret)
{
    if (!json_i64(reader->json, ret) || *ret <= 0 || *ret > latest)
        return complain(reader, "begin_time and end_time must be whole seconds since 1970");
    return 0;
}

static int read_begin(struct reader *reader, struct final_record *record)
{
    return read_time(reader, &record->begin_time);
}

static int read_end(struct reader *reader, struct final_record *record)
{
    return read_time(reader, &record->end_time);
}

static const struct member {
    const char *name;
    enum json_event event;
    int (*read)(struct reader *reader, struct final_record *record);
} members[] = {
    { "job_id", JSON_NUMBER, read_id },
    { "node", JSON_STRING, read_node },
    { "begin_time", JSON_NUMBER, read_begin },
    { "end_time", JSON_NUMBER, read_end },
};

static const struct member *find_member(struct str name)
{
    for (size_t i = 0; i < COUNT(members); i++)
        if (str_eq(name, str_of(members[i].name)))
            return &members[i];
    return NULL;
}

static int read_member(struct reader *reader, const struct member *member, unsigned *seen,
                       struct final_record *record)
{
    unsigned bit = 1U << (member - members);
    enum json_event event = json_next(reader->json);

    if (event <= JSON_END)
        return 0;
    if (*seen & bit)
        return err_set(reader->err, EBADMSG, "%s is there twice", member->name);
    *seen |= bit;
    if (event != member->event)
        return err_set(reader->err, EBADMSG, "%s must be a %s", member->name,
                       member->event == JSON_NUMBER ? "number" : "text");
    return member->read(reader, record);
}

static int check_record(struct reader *reader, unsigned seen, const struct final_record *record)
{
    for (size_t i = 0; i < COUNT(members); i++)
        if (!(seen & 1U << i))
            return err_set(reader->err, EBADMSG, "%s is missing", members[i].name);
    if (record->end_time < record->begin_time)
        return complain(reader, "it ends before it begins");
    return 0;
}

/* Behind its opening bracket. */
static int read_record(struct reader *reader, struct final_record *record)
{
    enum json_event event = JSON_OBJECT;
    unsigned seen = 0;
    int code = 0;

    reader->base_depth = json_depth(reader->json) - 1;
    buf_reset(&reader->document);
    buf_byte(&reader->document, '{');
    while (code == 0 && (event = json_next(reader->json)) == JSON_KEY) {
        const struct member *member = find_member(json_text(reader->json));

        code = member ? read_member(reader, member, &seen, record) : copy_member(reader);
    }
    if (code < 0 || event != JSON_OBJECT_END)
        return code;
    code = check_record(reader, seen, record);
    if (code < 0)
        return code;
    buf_byte(&reader->document, '}');
    if (reader->document.over)
        return complain(reader, "its document is longer than 64 KB");
    record->document = arena_str(reader->arena, buf_str(&reader->document));
    return 0;
}

static int read_records(struct reader *reader)
{
    struct ingest_body *body = &reader->body;
    enum json_event event = json_next(reader->json);
    int code = 0;

    if (reader->has_records)
        return complain(reader, "records is there twice");
    reader->has_records = true;
    if (event != JSON_ARRAY)
        return event <= JSON_END ? 0 : complain(reader, "records must be an array");
    while (code == 0 && (event = json_next(reader->json)) > JSON_END && event != JSON_ARRAY_END) {
        if (body->n_records == INGEST_RECORDS_MAX)
            return complain(reader, "a post must not have more than 2000 records");
        reader->is_in_record = true;
        if (event != JSON_OBJECT)
            return complain(reader, "a record must be an object");
        body->records =
            heap_grow(body->records, body->n_records, &reader->n_room, sizeof(*body->records));
        body->records[body->n_records] = (struct final_record){ 0 };
        code = read_record(reader, &body->records[body->n_records]);
        if (code == 0 && json_error(reader->json, NULL) == 0) {
            body->n_records++;
            reader->is_in_record = false;
        }
    }
    return code;
}

static int read_cluster(struct reader *reader)
{
    enum json_event event = json_next(reader->json);

    if (event <= JSON_END)
        return 0;
    if (reader->has_cluster)
        return complain(reader, "cluster is there twice");
    reader->has_cluster = true;
    if (event != JSON_STRING || (json_text(reader->json).n && !is_name(json_text(reader->json))))
        return complain(reader, "cluster must be a printable name of at most 255 bytes");
    reader->body.cluster = arena_str(reader->arena, json_text(reader->json));
    return 0;
}

static int read_post(struct reader *reader)
{
    enum json_event event = json_next(reader->json);
    int code = 0;

    if (event != JSON_OBJECT)
        return event <= JSON_END
                   ? 0
                   : complain(reader, "a post must be an object, as {\"records\":[]}");
    while (code == 0 && (event = json_next(reader->json)) > JSON_END) {
        if (event != JSON_KEY)
            continue;
        if (str_eq(json_text(reader->json), STR("records")))
            code = read_records(reader);
        else if (str_eq(json_text(reader->json), STR("cluster")))
            code = read_cluster(reader);
        else
            json_skip(reader->json);
    }
    return code;
}

static int finish(struct reader *reader, int code)
{
    struct err why;

    if (code == 0 && json_error(reader->json, &why) < 0)
        code = err_set(reader->err, EBADMSG, "the post is no JSON: %s", why.text);
    if (code == 0 && !reader->has_records)
        code = complain(reader, "records is missing");
    if (code < 0 && reader->is_in_record)
        code = err_prefix(reader->err, "record %zu", reader->body.n_records);
    return code;
}

int ingest_body_read(struct str text, struct arena *arena, struct ingest_body *ret,
                     int64_t *ret_bad, struct err *err)
{
    struct reader reader = { .json = json_new(), .arena = arena, .err = err };
    int code;

    *ret_bad = -1;
    if (text.n > INGEST_BODY_MAX) {
        json_free(reader.json);
        return err_set(err, EBADMSG, "a post must not be longer than %d bytes", INGEST_BODY_MAX);
    }
    buf_init(&reader.document, INGEST_DOCUMENT_MAX);
    json_feed(reader.json, text);
    json_finish(reader.json);
    code = finish(&reader, read_post(&reader));
    if (code < 0 && reader.is_in_record)
        *ret_bad = (int64_t)reader.body.n_records;
    arena_adopt(arena, reader.body.records);
    if (code == 0)
        *ret = reader.body;
    buf_free(&reader.document);
    json_free(reader.json);
    return code;
}
