/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes structs of amounts as JSON objects and reads them back. */
#include "report/facts_json.h"

#include "base/json.h"

/* No amount of anything is larger: sums of many stay finite. */
static const double most = 1e24;

static void put_comma(struct buf *to)
{
    if (to->n && !strchr("{[:", to->p[to->n - 1]))
        buf_byte(to, ',');
}

void fact_put_name(struct buf *to, const char *name)
{
    put_comma(to);
    buf_json(to, str_of(name));
    buf_byte(to, ':');
}

static void put_amount(struct buf *to, const struct fact_member *member, double value)
{
    if (!(value >= 0 && value <= most))
        return;
    fact_put_name(to, member->name);
    if (member->kind == FACT_TRUTH)
        buf_text(to, value > 0 ? "true" : "false");
    else
        buf_double(to, value);
}

static void put_object(struct buf *to, const struct fact_member *member, const void *from)
{
    size_t before = to->n, empty;

    fact_put_name(to, member->name);
    buf_byte(to, '{');
    empty = to->n;
    fact_put(to, member->table, from);
    buf_byte(to, '}');
    if (to->n > empty + 1 || to->over)
        return;
    to->n = before;
    buf_end(to);
}

void fact_put(struct buf *to, const struct fact_table *table, const void *from)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct fact_member *member = &table->member[i];
        const void *place = (const char *)from + member->offset;

        if (member->kind == FACT_OBJECT) {
            put_object(to, member, place);
        } else if (member->kind == FACT_TEXT) {
            if (((const struct str *)place)->n) {
                fact_put_name(to, member->name);
                buf_json(to, *(const struct str *)place);
            }
        } else if (member->kind != FACT_LIST) {
            put_amount(to, member, *(const double *)place);
        }
    }
}

struct reader {
    struct json *json;
    struct arena *arena;
    void *ctx;
    struct err *err;
};

static int refuse(struct reader *reader, const struct fact_member *member, const char *what)
{
    return err_set(reader->err, EBADMSG, "%s must be %s", member->name, what);
}

static int read_amount(struct reader *reader, const struct fact_member *member, double *to)
{
    double value;

    if (!json_double(reader->json, &value) || !(value >= 0 && value <= most))
        return refuse(reader, member, "a number from 0 to 1e24");
    *to = value;
    return 0;
}

static int read_text(struct reader *reader, const struct fact_member *member, struct str *to)
{
    struct str text = json_text(reader->json);

    if (text.n > FACTS_TEXT_MAX)
        return refuse(reader, member, "a text of at most 4096 bytes");
    *to = arena_str(reader->arena, text);
    return 0;
}

static int read_members(struct reader *reader, const struct fact_table *table, void *to);

static int read_list(struct reader *reader, const struct fact_member *member)
{
    enum json_event event;
    int code = 0;

    while (code == 0 && (event = json_next(reader->json)) > JSON_END && event != JSON_ARRAY_END) {
        void *place = event == JSON_OBJECT ? member->begin(reader->ctx) : NULL;

        if (event != JSON_OBJECT)
            return refuse(reader, member, "a list of objects");
        if (place)
            code = read_members(reader, member->table, place);
        else
            json_skip(reader->json);
    }
    return code;
}

/* The value of the key at hand. */
static int read_value(struct reader *reader, const struct fact_member *member, void *to)
{
    enum json_event event = json_next(reader->json);

    if (event <= JSON_END || event == JSON_NULL)
        return 0; /* fact_read tells what is wrong */
    switch (member->kind) {
    case FACT_AMOUNT:
        return read_amount(reader, member, to);
    case FACT_TRUTH:
        if (event != JSON_TRUE && event != JSON_FALSE)
            return refuse(reader, member, "true or false");
        *(double *)to = event == JSON_TRUE;
        return 0;
    case FACT_TEXT:
        return event == JSON_STRING ? read_text(reader, member, to)
                                    : refuse(reader, member, "a text");
    case FACT_OBJECT:
        return event == JSON_OBJECT ? read_members(reader, member->table, to)
                                    : refuse(reader, member, "an object");
    case FACT_LIST:
        return event == JSON_ARRAY ? read_list(reader, member) : refuse(reader, member, "a list");
    }
    return 0;
}

static const struct fact_member *find_member(const struct fact_table *table, struct str name)
{
    for (size_t i = 0; i < table->n; i++)
        if (str_eq(name, str_of(table->member[i].name)))
            return &table->member[i];
    return NULL;
}

/* Behind its opening bracket, to its end. */
static int read_members(struct reader *reader, const struct fact_table *table, void *to)
{
    int code = 0;

    while (code == 0 && json_next(reader->json) == JSON_KEY) {
        const struct fact_member *member = find_member(table, json_text(reader->json));

        if (member)
            code = read_value(reader, member, (char *)to + member->offset);
        else
            json_skip(reader->json);
    }
    return code;
}

static int read_document(struct reader *reader, const struct fact_table *table, void *to)
{
    struct err why;
    int code = 0;

    if (json_next(reader->json) == JSON_OBJECT)
        code = read_members(reader, table, to);
    else if (json_error(reader->json, NULL) == 0)
        return err_set(reader->err, EBADMSG, "it is no object");
    while (code == 0 && json_next(reader->json) > JSON_END)
        continue;
    if (code == 0 && json_error(reader->json, &why) < 0)
        code = err_set(reader->err, EBADMSG, "it is no JSON: %s", why.text);
    return code;
}

int fact_read(struct str document, const struct fact_table *table, void *to, void *ctx,
              struct arena *arena, struct err *err)
{
    struct reader reader = { NULL, arena, ctx, err };
    int code;

    if (document.n > FACTS_DOCUMENT_MAX)
        return err_set(err, EBADMSG, "it is longer than %d KB", FACTS_DOCUMENT_MAX / 1024);
    reader.json = json_new();
    json_feed(reader.json, document);
    json_finish(reader.json);
    code = read_document(&reader, table, to);
    json_free(reader.json);
    return code;
}
