/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shapes that Slurm's data_parser plugins, v0.0.37 to v0.0.45 with and without +complex, give
 * to numbers and lists: their parsers.c. */
#include "source/json_table.h"

#include "base/num.h"
#include "base/quote.h"

#include <assert.h>
#include <math.h>

/* Slurm's words for "not set" and "infinite" in plain numbers are the two largest ones. */
#define NO_VAL32 (UINT32_MAX - 1)
#define NO_VAL64 (UINT64_MAX - 1)

/* Where in the document the next event stands. */
enum state { AT_TOP, IN_OBJECT, AT_VALUE, IN_NUMBER, IN_WORDS, IN_LIST, STATES };

enum part { PART_OTHER, PART_SET, PART_INFINITE, PART_NUMBER };

/* The members are few and known: three bytes and the length tell nearly all keys apart. */
static size_t slot_of(struct str key)
{
    if (!key.n)
        return 0;
    return (key.n * 37 + (unsigned char)key.p[0] * 5 + (unsigned char)key.p[key.n / 2] * 11 +
            (unsigned char)key.p[key.n - 1]) %
           JSON_SLOTS;
}

static const struct json_index *find_index(struct json_answer *json, const struct json_table *table)
{
    for (size_t i = 0; i < json->n_indexes; i++)
        if (json->indexes[i].table == table)
            return &json->indexes[i];
    return NULL;
}

/* The member of that key, or one whose path begins with it. */
static const struct json_member *find_member(const struct json_index *index, struct str key)
{
    for (size_t slot = slot_of(key); index->slots[slot]; slot = (slot + 1) % JSON_SLOTS) {
        const struct json_member *member = &index->table->members[index->slots[slot] - 1];

        if (str_eq(member->key, key) ||
            (member->key.n > key.n && member->key.p[key.n] == '/' && str_starts(member->key, key)))
            return member;
    }
    return NULL;
}

static void add_key(struct json_index *index, struct str key, size_t i)
{
    size_t slot = slot_of(key);

    while (index->slots[slot])
        slot = (slot + 1) % JSON_SLOTS;
    index->slots[slot] = (unsigned char)(i + 1);
}

static void add_member(struct json_index *index, size_t i)
{
    struct str key = index->table->members[i].key;

    assert(key.n <= JSON_PATH);
    for (size_t n = 0; n < key.n; n++)
        if (key.p[n] == '/' && !find_member(index, str_head(key, n)))
            add_key(index, str_head(key, n), i);
    add_key(index, key, i);
}

static void add_index(struct json_answer *json, const struct json_table *table)
{
    struct json_index *index = &json->indexes[json->n_indexes];

    assert(json->n_indexes < JSON_TABLES && table->n < JSON_SLOTS / 4);
    json->n_indexes++;
    index->table = table;
    for (size_t i = 0; i < table->n; i++) {
        add_member(index, i);
        if (table->members[i].table && !find_index(json, table->members[i].table))
            add_index(json, table->members[i].table);
    }
}

static struct json_frame *frame_of(struct json_answer *json)
{
    return &json->frames[json->n_frames - 1];
}

static void *field_of(struct json_answer *json)
{
    return (char *)frame_of(json)->record + json->member->offset;
}

static void set_number(struct json_answer *json, uint64_t value)
{
    void *field = field_of(json);

    switch (json->member->shape) {
    case SHAPE_U32:
        *(uint32_t *)field = value < NO_VAL32 ? (uint32_t)value : MODEL_UNKNOWN_U32;
        break;
    case SHAPE_U64:
        *(uint64_t *)field = value < NO_VAL64 ? value : MODEL_UNKNOWN_U64;
        break;
    case SHAPE_MEBIBYTES:
        *(uint64_t *)field = value < NO_VAL64 >> 20 ? value << 20 : MODEL_UNKNOWN_U64;
        break;
    case SHAPE_TIME:
        *(int64_t *)field = value < NO_VAL32 ? (int64_t)value : 0;
        break;
    case SHAPE_HUNDREDTHS:
        if (value < NO_VAL32)
            *(double *)field = (double)value / 100;
        break;
    default:
        break;
    }
}

static void set_infinite(struct json_answer *json)
{
    if (json->member->shape == SHAPE_REAL)
        *(double *)field_of(json) = INFINITY;
    else
        set_number(json, UINT64_MAX);
}

/* Some numbers are texts. */
static void set_number_text(struct json_answer *json, struct str text)
{
    uint64_t value;

    if (str_eq_nocase(text, STR("Infinity")) || str_eq_nocase(text, STR("INFINITE")) ||
        str_eq_nocase(text, STR("UNLIMITED")))
        set_infinite(json);
    else if (json->member->shape == SHAPE_REAL)
        num_get_double(text, field_of(json));
    else if (num_get_u64(text, &value))
        set_number(json, value);
}

static void set_text(struct json_answer *json, struct str text)
{
    const struct json_frame *frame = frame_of(json);
    symbol *field = field_of(json);

    switch (json->member->shape) {
    case SHAPE_TEXT:
        *field = answer_text(&json->answer, text);
        break;
    case SHAPE_NAME:
        *field = answer_name(&json->answer, text);
        break;
    case SHAPE_AS_IS:
        *field = symbols_put(&json->answer.section->symbols, text);
        break;
    case SHAPE_WORDS:
    case SHAPE_TEXTS:
        frame->index->table->word(&json->answer, frame->record, json->member, text);
        break;
    default:
        set_number_text(json, text);
        break;
    }
}

/* The NUMBER at hand. Whole ones may be written with a fraction: 4.0. */
static bool get_number(const struct json_answer *json, uint64_t *ret)
{
    double value;

    if (json_u64(json->json, ret))
        return true;
    if (!json_double(json->json, &value) || !(value >= 0 && value < 0x1p53) ||
        value != (double)(uint64_t)value)
        return false;
    *ret = (uint64_t)value;
    return true;
}

/* … of the member at hand, into its place. */
static bool take_number(struct json_answer *json)
{
    if (json->member->shape == SHAPE_REAL)
        return json_double(json->json, &json->real);
    return get_number(json, &json->number);
}

static void put_number(struct json_answer *json)
{
    if (json->member->shape == SHAPE_REAL)
        *(double *)field_of(json) = json->real;
    else
        set_number(json, json->number);
}

static void open_object(struct json_answer *json, const struct json_table *table, void *field)
{
    if (json->n_frames == JSON_FRAMES) {
        json_skip(json->json);
        return;
    }
    json->has_records |= table == json->indexes[0].table->members[0].table;
    /* While the list that it stands in is still the innermost: json_answer_list(). */
    if (table->begin)
        field = table->begin(&json->answer);
    json->frames[json->n_frames++] =
        (struct json_frame){ .index = find_index(json, table), .record = field };
    json->state = IN_OBJECT;
}

/* An object on the way to the member at hand. */
static void open_path(struct json_answer *json)
{
    const struct json_frame *frame = frame_of(json);

    json->state = IN_OBJECT;
    if (json->n_frames == JSON_FRAMES) {
        json_skip(json->json);
        return;
    }
    json->frames[json->n_frames++] =
        (struct json_frame){ .index = frame->index,
                             .record = frame->record,
                             .path = str_head(json->member->key, json->n_path) };
}

static void close_object(struct json_answer *json)
{
    const struct json_frame *frame = frame_of(json);
    const struct json_table *table = frame->index->table;

    if (table->end && !frame->path.n)
        table->end(&json->answer, frame->record);
    json->n_frames--;
    json->state = !json->n_frames ? AT_TOP : frame_of(json)->list ? IN_LIST : IN_OBJECT;
}

static void take_at_top(struct json_answer *json, enum json_event event)
{
    if (event == JSON_OBJECT)
        open_object(json, json->indexes[0].table, json);
    else
        json_skip(json->json);
}

/* The key at hand as its table has it: behind the path to the object that it is in. */
static const struct json_member *find_here(struct json_answer *json)
{
    const struct json_frame *frame = frame_of(json);
    struct str key = json_text(json->json), path = frame->path;
    char whole[JSON_PATH];

    json->n_path = key.n;
    if (!path.n)
        return find_member(frame->index, key);
    json->n_path = path.n + 1 + key.n;
    if (json->n_path > sizeof(whole))
        return NULL;
    memcpy(whole, path.p, path.n);
    whole[path.n] = '/';
    memcpy(whole + path.n + 1, key.p, key.n);
    return find_member(frame->index, (struct str){ whole, json->n_path });
}

static void take_in_object(struct json_answer *json, enum json_event event)
{
    if (event == JSON_OBJECT_END) {
        close_object(json);
        return;
    }
    json->member = find_here(json);
    if (json->member)
        json->state = AT_VALUE;
    else
        json_skip(json->json);
}

static void begin_list(struct json_answer *json)
{
    frame_of(json)->list = json->member;
    json->state = IN_LIST;
}

static void begin_number(struct json_answer *json)
{
    json->is_set = json->is_infinite = json->has_number = false;
    json->state = IN_NUMBER;
}

static bool is_number(enum json_shape shape)
{
    return shape <= SHAPE_REAL;
}

/* Some releases call it by another name. */
static bool is_content(const struct json_answer *json, const struct json_member *member)
{
    return member->table && member->table == json->indexes[0].table->members[0].table;
}

static void take_at_value(struct json_answer *json, enum json_event event)
{
    const struct json_member *member = json->member;
    bool is_whole = json->n_path == member->key.n;

    json->state = IN_OBJECT;
    if (is_whole && is_content(json, member))
        json->has_content |= event == (member->shape == SHAPE_LIST ? JSON_ARRAY : JSON_OBJECT);
    if (!is_whole && event == JSON_OBJECT)
        open_path(json);
    else if (!is_whole)
        json_skip(json->json);
    else if (event == JSON_OBJECT && member->shape == SHAPE_OBJECT)
        open_object(json, member->table, field_of(json));
    else if (event == JSON_ARRAY && member->shape == SHAPE_LIST)
        begin_list(json);
    else if (event == JSON_OBJECT && is_number(member->shape))
        begin_number(json);
    else if (event == JSON_ARRAY && (member->shape == SHAPE_WORDS || member->shape == SHAPE_TEXTS))
        json->state = IN_WORDS;
    else if (event == JSON_STRING)
        set_text(json, json_text(json->json));
    else if (event == JSON_NUMBER && take_number(json))
        put_number(json);
    else if (member->shape == SHAPE_TRUTH && (event == JSON_TRUE || event == JSON_FALSE))
        *(bool *)field_of(json) = event == JSON_TRUE;
    else
        json_skip(json->json);
}

static enum part part_of(struct str key)
{
    static const struct str parts[] = {
        [PART_SET] = STR_INIT("set"),
        [PART_INFINITE] = STR_INIT("infinite"),
        [PART_NUMBER] = STR_INIT("number"),
    };

    for (enum part part = PART_SET; part <= PART_NUMBER; part++)
        if (str_eq(parts[part], key))
            return part;
    return PART_OTHER;
}

static void end_number(struct json_answer *json)
{
    if (json->is_infinite)
        set_infinite(json);
    else if (json->is_set && json->has_number)
        put_number(json);
    json->state = IN_OBJECT;
}

static void take_in_number(struct json_answer *json, enum json_event event)
{
    if (event == JSON_OBJECT_END)
        end_number(json);
    else if (event == JSON_KEY)
        json->part = part_of(json_text(json->json));
    else if (json->part == PART_SET)
        json->is_set = event == JSON_TRUE;
    else if (json->part == PART_INFINITE)
        json->is_infinite = event == JSON_TRUE;
    else if (json->part == PART_NUMBER)
        json->has_number = event == JSON_NUMBER && take_number(json);
    if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(json->json);
}

static void take_in_words(struct json_answer *json, enum json_event event)
{
    if (event == JSON_STRING)
        set_text(json, json_text(json->json));
    else if (event == JSON_NULL && json->member->shape == SHAPE_TEXTS)
        set_text(json, STR(""));
    else if (event == JSON_ARRAY_END)
        json->state = IN_OBJECT;
    else
        json_skip(json->json);
}

/* Some wrappers tell errors as texts instead of objects. */
static void note_error(struct json_answer *json, enum json_event event)
{
    json->has_errors = true;
    if (event == JSON_STRING && !json->refusal)
        json->refusal = answer_text(&json->answer, json_text(json->json));
}

static void take_in_list(struct json_answer *json, enum json_event event)
{
    struct json_frame *frame = frame_of(json);

    if (frame->list->table == &json_errors && event != JSON_ARRAY_END)
        note_error(json, event);
    if (event == JSON_OBJECT) {
        open_object(json, frame->list->table, frame->record);
    } else if (event == JSON_ARRAY_END) {
        frame->list = NULL;
        json->state = IN_OBJECT;
    } else {
        json_skip(json->json);
    }
}

static int take_all(struct json_answer *json, struct err *err)
{
    static void (*const take[STATES])(struct json_answer *, enum json_event) = {
        [AT_TOP] = take_at_top,       [IN_OBJECT] = take_in_object, [AT_VALUE] = take_at_value,
        [IN_NUMBER] = take_in_number, [IN_WORDS] = take_in_words,   [IN_LIST] = take_in_list,
    };
    enum json_event event;

    while ((event = json_next(json->json)) > JSON_END)
        take[json->state](json, event);
    return event == JSON_ERROR ? json_error(json->json, err) : 0;
}

void json_answer_begin(struct answer *answer, const struct json_table *document)
{
    struct json_answer *json = (struct json_answer *)answer;

    json->json = json_new();
    add_index(json, document);
}

int json_answer_feed(struct answer *answer, struct str piece, struct err *err)
{
    struct json_answer *json = (struct json_answer *)answer;

    json_feed(json->json, piece);
    return take_all(json, err);
}

/* Up to 22.05 Slurm says no more than that when slurmctld does not answer. */
static int refuse(struct str words, struct err *err)
{
    bool is_unspecified = !words.n || str_eq(words, STR("Unspecified error"));

    return err_set(err, EREMOTEIO, "Slurm says in its JSON: %s%s",
                   words.n ? quote(words).text : "an error that it does not describe",
                   is_unspecified ? "; is slurmctld running?" : "");
}

int json_answer_end(struct answer *answer, struct err *err)
{
    struct json_answer *json = (struct json_answer *)answer;
    int code;

    json_finish(json->json);
    code = take_all(json, err);
    if (code < 0)
        return code;
    if (json->has_errors && !json->has_records)
        return refuse(section_text(answer->section, json->refusal), err);
    if (!json->has_content)
        return err_set(err, EBADMSG, "the document has no \"%s\"",
                       json->indexes[0].table->members[0].key.p);
    return 0;
}

void json_answer_free(struct answer *answer)
{
    struct json_answer *json = (struct json_answer *)answer;

    json_free(json->json);
}

const struct json_member *json_answer_list(const struct answer *answer)
{
    const struct json_answer *json = (const struct json_answer *)answer;

    return json->frames[json->n_frames - 1].list;
}

static void *begin_error(struct answer *answer)
{
    struct json_answer *json = (struct json_answer *)answer;

    json->error = (struct json_error){ 0 };
    return &json->error;
}

static void end_error(struct answer *answer, void *record)
{
    struct json_answer *json = (struct json_answer *)answer;
    const struct json_error *error = record;

    if (!json->refusal)
        json->refusal = error->description ? error->description : error->words;
}

static const struct json_member error_members[] = {
    MEMBER(struct json_error, "description", SHAPE_TEXT, description),
    MEMBER(struct json_error, "error", SHAPE_TEXT, words),
};

const struct json_table json_errors = {
    .members = error_members,
    .n = COUNT(error_members),
    .begin = begin_error,
    .end = end_error,
};
