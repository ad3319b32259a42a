/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One reader for every kind, led by the tables of model/fields. Members that no table names are
 * passed over; what is missing, or of another type than it should be, is unknown. */
#include "source/record_reader.h"

#include "base/json.h"
#include "base/quote.h"

#include <math.h>

enum { ARRAYS_MAX = 5 }; /* of one kind */

/* Where in the document the next event stands. */
enum state { AT_TOP, IN_DOCUMENT, AT_OWN, AT_HEAD, AT_ARRAY, IN_ARRAY, IN_RECORD, AT_FIELD };

/* What a document says of itself, in this order, before all else. */
enum own {
    OWN_SONDE,
    OWN_FORMAT,
    OWN_KIND,
    OWN_SOURCE,
    OWN_SIMULATED,
    OWN_TIME,
    OWN_SKIPPED,
    OWNS
};

static const struct str own_names[OWNS] = {
    [OWN_SONDE] = STR_INIT("sonde"),     [OWN_FORMAT] = STR_INIT("format"),
    [OWN_KIND] = STR_INIT("kind"),       [OWN_SOURCE] = STR_INIT("source"),
    [OWN_TIME] = STR_INIT("time"),       [OWN_SIMULATED] = STR_INIT("simulated"),
    [OWN_SKIPPED] = STR_INIT("skipped"),
};

struct record_reader {
    struct json *json;
    struct section *section;
    size_t max_bytes;
    uint64_t bytes;
    struct record_about about;
    bool has_kind, has_time; /* was told */
    bool is_complete;        /* all that the document says of itself has come */
    uint64_t format, skipped;
    struct quote version;
    enum state state;
    enum own own;
    const struct field_array *array; /* whose records are being read */
    const struct field *field;       /* whose value is at hand */
    size_t next_field;               /* the one that should come, as the writer has it */
    struct {
        char *items;
        size_t n, room;
    } arrays[ARRAYS_MAX];
    size_t items_bytes; /* of all arrays */
};

struct record_reader *record_reader_new(size_t max_bytes)
{
    struct record_reader *reader = heap_alloc(sizeof(*reader));

    reader->json = json_new();
    reader->max_bytes = max_bytes;
    return reader;
}

struct record_reader *record_reader_free(struct record_reader *reader)
{
    if (reader) {
        json_free(reader->json);
        for (size_t i = 0; i < ARRAYS_MAX; i++)
            free(reader->arrays[i].items);
        section_unref(reader->section);
        free(reader);
    }
    return NULL;
}

bool record_reader_about(const struct record_reader *reader, struct record_about *ret)
{
    if (reader->is_complete)
        *ret = reader->about;
    return reader->is_complete;
}

static const struct field_kind *kind_of(const struct record_reader *reader)
{
    return &field_kinds[reader->section->kind];
}

static void take_own(struct record_reader *reader, enum json_event event)
{
    struct json *json = reader->json;
    double seconds;

    reader->state = IN_DOCUMENT;
    if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(json);
    else if (reader->own == OWN_SONDE)
        reader->version = quote(json_text(json));
    else if (reader->own == OWN_FORMAT)
        json_u64(json, &reader->format);
    else if (reader->own == OWN_KIND && event == JSON_STRING)
        reader->has_kind = record_kind_parse(json_text(json), &reader->about.kind);
    else if (reader->own == OWN_SIMULATED)
        reader->about.is_simulated = event == JSON_TRUE;
    else if (reader->own == OWN_SKIPPED)
        json_u64(json, &reader->skipped);
    else if (reader->own == OWN_TIME && json_double(json, &seconds) && seconds > 0 &&
             seconds < (double)RECORD_TIME_MAX) {
        reader->about.wall_ns = llround(seconds * 1e6) * 1000;
        reader->has_time = true;
    }
}

static void set_absent(const struct field *field, void *at)
{
    switch (field->type) {
    case FIELD_U32:
        *(uint32_t *)at = MODEL_UNKNOWN_U32;
        break;
    case FIELD_U64:
        *(uint64_t *)at = MODEL_UNKNOWN_U64;
        break;
    case FIELD_DOUBLE:
        *(double *)at = NAN;
        break;
    case FIELD_JOB_STATE:
        *(struct job_state *)at = JOB_STATE_NONE;
        break;
    case FIELD_NODE_STATE:
        *(struct node_state *)at = NODE_STATE_NONE;
        break;
    default: /* 0 is absent, or there is no telling */
        break;
    }
}

/* The record is zeroed. */
static void begin_record(const struct field_record *record, void *at)
{
    for (size_t i = 0; i < record->n; i++)
        set_absent(&record->fields[i], (char *)at + record->fields[i].offset);
}

/* What it says of itself is at an end: something else follows, or nothing. */
static int begin_section(struct record_reader *reader, struct err *err)
{
    if (reader->format > RECORD_FORMAT)
        return err_set(err, EBADMSG,
                       "it is in format %llu of sonde %s, and this sonde reads format %d: use that "
                       "version or a newer one",
                       (unsigned long long)reader->format, reader->version.text, RECORD_FORMAT);
    if (reader->format != RECORD_FORMAT || !reader->has_kind || !reader->has_time)
        return err_set(
            err, EBADMSG,
            "it does not begin with \"sonde\", \"format\", \"kind\" and \"time\" as what "
            "sonde admin record writes does");
    reader->section = section_new(reader->about.kind);
    begin_record(&kind_of(reader)->head, reader->section);
    reader->is_complete = true;
    return 0;
}

static size_t find_array(const struct record_reader *reader, struct str name)
{
    const struct field_kind *kind = kind_of(reader);
    size_t i = 0;

    while (i < kind->n_arrays && !str_eq(name, str_of(kind->arrays[i].name)))
        i++;
    return i;
}

/* The fields mostly come in the order of the table. */
static const struct field *find_field(struct record_reader *reader,
                                      const struct field_record *record, struct str name)
{
    for (size_t i = 0; i < record->n; i++) {
        size_t at = (reader->next_field + i) % record->n;

        if (str_eq(name, str_of(record->fields[at].name))) {
            reader->next_field = at + 1;
            return &record->fields[at];
        }
    }
    return NULL;
}

static bool find_own(struct str name, enum own *ret)
{
    for (enum own own = 0; own < OWNS; own++) {
        if (str_eq(name, own_names[own])) {
            *ret = own;
            return true;
        }
    }
    return false;
}

static int take_key(struct record_reader *reader, struct err *err)
{
    struct str name = json_text(reader->json);
    size_t array;

    if (!reader->is_complete) {
        if (find_own(name, &reader->own)) {
            reader->state = AT_OWN;
            return 0;
        }
        if (begin_section(reader, err) < 0)
            return -err->code;
    }
    array = find_array(reader, name);
    reader->field = find_field(reader, &kind_of(reader)->head, name);
    if (array < kind_of(reader)->n_arrays) {
        reader->array = &kind_of(reader)->arrays[array];
        reader->state = AT_ARRAY;
    } else if (reader->field) {
        reader->state = AT_HEAD;
    } else {
        json_skip(reader->json);
    }
    return 0;
}

static int take_in_document(struct record_reader *reader, enum json_event event, struct err *err)
{
    if (event == JSON_KEY)
        return take_key(reader, err);
    reader->state = AT_TOP;
    return reader->is_complete ? 0 : begin_section(reader, err);
}

static void set_number(const struct field *field, void *at, uint64_t number)
{
    if (field->type == FIELD_U8 && number <= UINT8_MAX)
        *(uint8_t *)at = (uint8_t)number;
    else if (field->type == FIELD_U32 && number < MODEL_UNKNOWN_U32)
        *(uint32_t *)at = (uint32_t)number;
    else if (field->type == FIELD_U64)
        *(uint64_t *)at = number;
    else if (field->type == FIELD_TIME && number < RECORD_TIME_MAX)
        *(int64_t *)at = (int64_t)number;
}

static void set_text(struct record_reader *reader, void *at, struct str text)
{
    if (reader->field->type == FIELD_SYMBOL)
        *(symbol *)at = symbols_put(&reader->section->symbols, text);
    else if (reader->field->type == FIELD_JOB_STATE)
        job_state_parse(text, at);
    else if (reader->field->type == FIELD_NODE_STATE)
        node_state_parse(text, at);
}

static void take_value(struct record_reader *reader, void *record, enum json_event event)
{
    void *at = (char *)record + reader->field->offset;
    struct json *json = reader->json;
    uint64_t number;

    if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(json);
    else if (event == JSON_STRING)
        set_text(reader, at, json_text(json));
    else if (reader->field->type == FIELD_BOOL)
        *(bool *)at = event == JSON_TRUE;
    else if (reader->field->type == FIELD_DOUBLE)
        json_double(json, at);
    else if (json_u64(json, &number))
        set_number(reader->field, at, number);
}

static void take_at_array(struct record_reader *reader, enum json_event event)
{
    reader->state = event == JSON_ARRAY ? IN_ARRAY : IN_DOCUMENT;
    if (event == JSON_OBJECT)
        json_skip(reader->json);
}

static void *record_of(struct record_reader *reader)
{
    size_t i = (size_t)(reader->array - kind_of(reader)->arrays);

    return reader->arrays[i].items + (reader->arrays[i].n - 1) * reader->array->record->size;
}

/* A few bytes can make a record, or a text that stands once: what sonde writes is longer than what
 * it stands for. */
static int check_memory(const struct record_reader *reader, struct err *err)
{
    size_t texts = reader->section->symbols.map.n * sizeof(struct map_entry);

    if (reader->items_bytes <= reader->max_bytes && texts <= 2 * reader->max_bytes)
        return 0;
    return err_set(err, EFBIG, "what is in it takes more than %zu bytes of memory",
                   reader->max_bytes);
}

static int take_in_array(struct record_reader *reader, enum json_event event, struct err *err)
{
    size_t size = reader->array->record->size;
    size_t i = (size_t)(reader->array - kind_of(reader)->arrays);

    if (event == JSON_ARRAY_END) {
        reader->state = IN_DOCUMENT;
        return 0;
    }
    if (event != JSON_OBJECT) {
        json_skip(reader->json);
        return 0;
    }
    reader->arrays[i].items =
        heap_grow(reader->arrays[i].items, reader->arrays[i].n, &reader->arrays[i].room, size);
    reader->arrays[i].n++;
    reader->items_bytes += size;
    memset(record_of(reader), 0, size);
    begin_record(reader->array->record, record_of(reader));
    reader->next_field = 0;
    reader->state = IN_RECORD;
    return check_memory(reader, err);
}

static void take_in_record(struct record_reader *reader, enum json_event event)
{
    if (event == JSON_OBJECT_END) {
        reader->state = IN_ARRAY;
        return;
    }
    reader->field = find_field(reader, reader->array->record, json_text(reader->json));
    if (reader->field)
        reader->state = AT_FIELD;
    else
        json_skip(reader->json);
}

static int take(struct record_reader *reader, enum json_event event, struct err *err)
{
    switch (reader->state) {
    case AT_TOP:
        if (event != JSON_OBJECT)
            return err_set(err, EBADMSG, "it is no object");
        reader->state = IN_DOCUMENT;
        return 0;
    case IN_DOCUMENT:
        return take_in_document(reader, event, err);
    case AT_OWN:
        take_own(reader, event);
        return 0;
    case AT_HEAD:
        reader->state = IN_DOCUMENT;
        take_value(reader, reader->section, event);
        return 0;
    case AT_ARRAY:
        take_at_array(reader, event);
        return 0;
    case IN_ARRAY:
        return take_in_array(reader, event, err);
    case IN_RECORD:
        take_in_record(reader, event);
        return 0;
    case AT_FIELD:
        reader->state = IN_RECORD;
        take_value(reader, record_of(reader), event);
        return 0;
    }
    return 0;
}

static int take_all(struct record_reader *reader, struct err *err)
{
    enum json_event event;
    int code = 0;

    while (code == 0 && (event = json_next(reader->json)) > JSON_END)
        code = take(reader, event, err);
    return code < 0 ? code : event == JSON_ERROR ? json_error(reader->json, err) : 0;
}

int record_reader_feed(struct record_reader *reader, struct str piece, struct err *err)
{
    reader->bytes += piece.n;
    if (reader->bytes > reader->max_bytes)
        return err_set(err, EFBIG, "it is longer than %zu bytes", reader->max_bytes);
    json_feed(reader->json, piece);
    return take_all(reader, err);
}

static void hand_over_arrays(struct record_reader *reader)
{
    char *section = (char *)reader->section;

    for (size_t i = 0; i < kind_of(reader)->n_arrays; i++) {
        const struct field_array *array = &kind_of(reader)->arrays[i];

        *(char **)(section + array->items) = reader->arrays[i].items;
        *(size_t *)(section + array->count) = reader->arrays[i].n;
        if (reader->arrays[i].items)
            arena_adopt(&reader->section->arena, reader->arrays[i].items);
        reader->arrays[i].items = NULL;
    }
}

static unsigned known_words(unsigned words)
{
    return words == MODEL_UNKNOWN_U32 ? 0 : words & ((1u << PRIVATE_DATA) - 1);
}

/* What a model cannot hold as unknown, or does not know: a record is one job, and nothing is hidden
 * but what is said to be. */
static void settle(struct section *section)
{
    if (section->kind == KIND_JOBS)
        for (size_t i = 0; i < section->jobs.n; i++)
            if (section->jobs.job[i].tasks == MODEL_UNKNOWN_U32)
                section->jobs.job[i].tasks = 1;
    if (section->kind == KIND_NODES)
        section_set_node_releases(section);
    if (section->kind == KIND_CONFIG) {
        section->config.hidden = known_words(section->config.hidden);
        section->config.private = known_words(section->config.private);
    }
}

int record_reader_end(struct record_reader *reader, struct section **ret, struct err *err)
{
    int code;

    json_finish(reader->json);
    code = take_all(reader, err);
    if (code < 0)
        return code;
    hand_over_arrays(reader);
    settle(reader->section);
    code = fields_check(reader->section, err);
    if (code < 0)
        return code;
    reader->section->bytes_read = reader->bytes;
    reader->section->skipped = reader->skipped;
    *ret = reader->section;
    reader->section = NULL;
    return 0;
}

static void move_times(const struct field_record *record, void *at, int64_t seconds)
{
    for (size_t i = 0; i < record->n; i++) {
        int64_t *time = (int64_t *)((char *)at + record->fields[i].offset);

        if (record->fields[i].type != FIELD_TIME || !*time)
            continue;
        if (__builtin_add_overflow(*time, seconds, time) || *time < 0 || *time > RECORD_TIME_MAX)
            *time = 0;
    }
}

void record_move_times(struct section *section, int64_t seconds)
{
    const struct field_kind *kind = &field_kinds[section->kind];

    move_times(&kind->head, section, seconds);
    for (size_t i = 0; i < kind->n_arrays; i++) {
        const struct field_array *array = &kind->arrays[i];
        char *items = *(char **)((char *)section + array->items);
        size_t n = *(size_t *)((char *)section + array->count);

        for (size_t k = 0; k < n; k++)
            move_times(array->record, items + k * array->record->size, seconds);
    }
}
