/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends and receives sections as binary frames. */
#include "source/wire.h"

#include "model/fields.h"

enum frame_type {
    FRAME_HELLO,
    FRAME_REQUEST,
    FRAME_BEGIN,   /* a section: its kind and last_update, and a warning */
    FRAME_SYMBOLS, /* texts, in the order of their numbers */
    FRAME_HEAD,    /* the fields of the section itself */
    FRAME_RECORDS, /* some of one array; arrays come in the order of model/fields */
    FRAME_END,     /* how many there were of all */
    FRAME_UNCHANGED,
    FRAME_ERROR,
    FRAME_TYPES,
};

struct frame_head {
    uint32_t bytes, type;
};

enum {
    TEXT_KEPT = 400, /* of a version, a warning or an error */
    HELLO_MAX = 256,
};

static const char magic[8] = "sonde\r\n";
#define TIME_MAX INT64_C(253402300799) /* the year 9999: sums of two do not overflow */

static const unsigned char packed_sizes[] = {
    [FIELD_BOOL] = 1,   [FIELD_U8] = 1,        [FIELD_U32] = 4,
    [FIELD_U64] = 8,    [FIELD_TIME] = 8,      [FIELD_DOUBLE] = 8,
    [FIELD_SYMBOL] = 4, [FIELD_JOB_STATE] = 5, [FIELD_NODE_STATE] = 5,
};

static uint64_t mix(uint64_t digest, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static uint64_t mix_number(uint64_t digest, uint64_t number)
{
    return mix(digest, &number, sizeof(number));
}

static uint64_t mix_record(uint64_t digest, const struct field_record *record)
{
    digest = mix_number(digest, record->n);
    for (size_t i = 0; i < record->n; i++) {
        digest = mix(digest, record->fields[i].name, strlen(record->fields[i].name) + 1);
        digest = mix_number(digest, record->fields[i].type);
    }
    return digest;
}

/* Of what both sides must agree on: the tables of model/fields, and the frames. FNV-1a: this is to
 * notice a mistake, not to keep anybody out. */
static uint64_t wire_digest(void)
{
    static const uint64_t enums[] = { WIRE_VERSION, KINDS,  JOB_BASES,   NODE_BASES,
                                      NODE_FLAGS,   LIMITS, PRIVATE_DATA };
    uint64_t digest = mix(UINT64_C(0xcbf29ce484222325), enums, sizeof(enums));

    for (size_t kind = 0; kind < KINDS; kind++) {
        const struct field_kind *table = &field_kinds[kind];

        digest = mix_record(mix_number(digest, kind), &table->head);
        for (size_t i = 0; i < table->n_arrays; i++) {
            digest = mix(digest, table->arrays[i].name, strlen(table->arrays[i].name) + 1);
            digest = mix_record(digest, table->arrays[i].record);
        }
    }
    return digest;
}

static size_t packed_size(const struct field_record *record)
{
    size_t size = 0;

    for (size_t i = 0; i < record->n; i++)
        size += packed_sizes[record->fields[i].type];
    return size;
}

static void *item_of(const struct section *section, const struct field_array *array, size_t i)
{
    char *items = *(char **)((char *)section + array->items);

    return items + i * array->record->size;
}

static size_t *count_of(const struct section *section, const struct field_array *array)
{
    return (size_t *)((char *)section + array->count);
}

static int put_all(int fd, const char *p, size_t n, struct err *err)
{
    while (n) {
        ssize_t written = write(fd, p, n);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return err_set(err, EPIPE, "the one who asked is gone");
        p += written;
        n -= (size_t)written;
    }
    return 0;
}

/* A frame that is being filled; its head goes before it when it is sent. */
struct out {
    int fd;
    struct buf buf;
    struct err *err;
    int code; /* of the first failure, after which nothing more is written */
};

static void put_bytes(struct buf *buf, const void *data, size_t n)
{
    buf_put(buf, (struct str){ data, n });
}

static void out_begin(struct out *out, enum frame_type type)
{
    struct frame_head head = { .type = type };

    buf_reset(&out->buf);
    put_bytes(&out->buf, &head, sizeof(head));
}

static void out_send(struct out *out)
{
    uint32_t bytes = (uint32_t)(out->buf.n - sizeof(struct frame_head));

    if (out->code < 0)
        return;
    memcpy(out->buf.p, &bytes, sizeof(bytes));
    out->code = put_all(out->fd, out->buf.p, out->buf.n, out->err);
}

static size_t out_room(const struct out *out)
{
    return sizeof(struct frame_head) + WIRE_FRAME_MAX - out->buf.n;
}

static struct out out_open(int fd, struct err *err)
{
    struct out out = { .fd = fd, .err = err };

    buf_init(&out.buf, sizeof(struct frame_head) + WIRE_FRAME_MAX);
    return out;
}

static int out_close(struct out *out)
{
    out_send(out);
    buf_free(&out->buf);
    return out->code;
}

int wire_write_hello(int fd, struct str version, struct err *err)
{
    struct out out = out_open(fd, err);
    uint64_t digest = wire_digest();

    out_begin(&out, FRAME_HELLO);
    put_bytes(&out.buf, magic, sizeof(magic));
    put_bytes(&out.buf, &digest, sizeof(digest));
    buf_put(&out.buf, str_head(version, HELLO_MAX - sizeof(magic) - sizeof(digest)));
    return out_close(&out);
}

int wire_write_unchanged(int fd, struct err *err)
{
    struct out out = out_open(fd, err);

    out_begin(&out, FRAME_UNCHANGED);
    return out_close(&out);
}

int wire_write_error(int fd, int code, struct str sentence, struct err *err)
{
    struct out out = out_open(fd, err);
    uint32_t number = (uint32_t)code;

    out_begin(&out, FRAME_ERROR);
    put_bytes(&out.buf, &number, sizeof(number));
    buf_put(&out.buf, str_head(sentence, TEXT_KEPT));
    return out_close(&out);
}

static void send_symbols(struct out *out, const struct symbols *symbols)
{
    out_begin(out, FRAME_SYMBOLS);
    for (size_t i = 0; i < symbols_count(symbols); i++) {
        struct str text = symbols_get(symbols, (symbol)i);
        uint32_t length;

        if (text.n > WIRE_TEXT_MAX)
            text.n = 0;
        if (out_room(out) < sizeof(length) + text.n) {
            out_send(out);
            out_begin(out, FRAME_SYMBOLS);
        }
        length = (uint32_t)text.n;
        put_bytes(&out->buf, &length, sizeof(length));
        buf_put(&out->buf, text);
    }
    out_send(out);
}

static char *pack_state(char *to, uint8_t base, uint32_t flags)
{
    memcpy(to, &base, sizeof(base));
    memcpy(to + sizeof(base), &flags, sizeof(flags));
    return to + sizeof(base) + sizeof(flags);
}

static char *pack_record(char *to, const struct field_record *record, const void *item)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];
        const char *from = (const char *)item + field->offset;

        if (field->type == FIELD_JOB_STATE) {
            const struct job_state *state = (const void *)from;

            to = pack_state(to, state->base, state->flags);
        } else if (field->type == FIELD_NODE_STATE) {
            const struct node_state *state = (const void *)from;

            to = pack_state(to, state->base, state->flags);
        } else {
            memcpy(to, from, packed_sizes[field->type]);
            to += packed_sizes[field->type];
        }
    }
    return to;
}

static void put_record(struct buf *buf, const struct field_record *record, size_t size,
                       const void *item)
{
    char *room = buf_room(buf, size);

    pack_record(room, record, item);
    buf->n += size;
    buf_end(buf);
}

static void send_array(struct out *out, const struct section *section,
                       const struct field_array *array, uint32_t number)
{
    size_t size = packed_size(array->record), n = *count_of(section, array);

    for (size_t i = 0; i < n;) {
        out_begin(out, FRAME_RECORDS);
        put_bytes(&out->buf, &number, sizeof(number));
        for (; i < n && out_room(out) >= size; i++)
            put_record(&out->buf, array->record, size, item_of(section, array, i));
        out_send(out);
    }
}

int wire_write_section(int fd, const struct section *section, int64_t last_update,
                       struct str warning, struct err *err)
{
    const struct field_kind *kind = &field_kinds[section->kind];
    struct out out = out_open(fd, err);
    uint32_t number = section->kind;
    uint64_t count;

    out_begin(&out, FRAME_BEGIN);
    put_bytes(&out.buf, &number, sizeof(number));
    put_bytes(&out.buf, &last_update, sizeof(last_update));
    buf_put(&out.buf, str_head(warning, TEXT_KEPT));
    out_send(&out);
    send_symbols(&out, &section->symbols);
    out_begin(&out, FRAME_HEAD);
    put_record(&out.buf, &kind->head, packed_size(&kind->head), section);
    out_send(&out);
    for (uint32_t i = 0; i < kind->n_arrays; i++)
        send_array(&out, section, &kind->arrays[i], i);
    out_begin(&out, FRAME_END);
    count = symbols_count(&section->symbols);
    put_bytes(&out.buf, &count, sizeof(count));
    for (size_t i = 0; i < kind->n_arrays; i++) {
        count = *count_of(section, &kind->arrays[i]);
        put_bytes(&out.buf, &count, sizeof(count));
    }
    return out_close(&out);
}

struct packed_request {
    struct frame_head head;
    uint32_t kind, zero;
    int64_t since;
};

void wire_put_request(struct buf *to, struct wire_request request)
{
    struct packed_request packed = {
        .head = { sizeof(packed) - sizeof(packed.head), FRAME_REQUEST },
        .kind = request.kind,
        .since = request.since,
    };

    put_bytes(to, &packed, sizeof(packed));
}

int wire_read_request(int fd, struct wire_request *ret, struct err *err)
{
    struct packed_request packed;

    for (size_t have = 0; have < sizeof(packed);) {
        ssize_t n = read(fd, (char *)&packed + have, sizeof(packed) - have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, EPIPE, "the one who asked is gone");
        have += (size_t)n;
    }
    if (packed.head.type != FRAME_REQUEST ||
        packed.head.bytes != sizeof(packed) - sizeof(packed.head) || packed.kind >= KINDS)
        return err_set(err, EBADMSG, "this is no request");
    *ret = (struct wire_request){ packed.kind, packed.since };
    return 0;
}

struct wire {
    struct answer answer;
    struct buf part; /* of a frame that has not come whole, with its head */
    enum wire_told told;
    enum frame_type last; /* frame, of a section; FRAME_HELLO before the first */
    const struct field_kind *kind;
    int64_t last_update;
    int code;
    char text[TEXT_KEPT + 1];
    symbol *symbols; /* by the number that the other side gives them */
    size_t n_symbols, symbols_room;
    size_t array, room; /* the one being filled, and of its items */
};

enum wire_told wire_told(const struct answer *answer)
{
    return ((const struct wire *)answer)->told;
}

int64_t wire_last_update(const struct answer *answer)
{
    return ((const struct wire *)answer)->last_update;
}

struct str wire_text(const struct answer *answer)
{
    return str_of(((const struct wire *)answer)->text);
}

static int garbled(struct err *err, const char *what)
{
    return err_set(err, EBADMSG, "the helper's answer is garbled: %s", what);
}

/* Takes a number off the frame's front. */
static bool take(struct str *rest, void *to, size_t size)
{
    if (rest->n < size)
        return false;
    memcpy(to, rest->p, size);
    *rest = str_skip(*rest, size);
    return true;
}

static void keep_text(struct wire *wire, struct str text)
{
    text = str_head(text, TEXT_KEPT);
    for (size_t i = 0; i < text.n; i++)
        wire->text[i] = text.p[i] >= 0 && text.p[i] < ' ' ? ' ' : text.p[i];
    wire->text[text.n] = '\0';
}

static int read_hello(struct wire *wire, struct str frame, struct err *err)
{
    char theirs[sizeof(magic)];
    uint64_t digest;

    if (!take(&frame, theirs, sizeof(theirs)) || memcmp(theirs, magic, sizeof(magic)) != 0 ||
        !take(&frame, &digest, sizeof(digest)))
        return err_set(err, EBADMSG, "it does not speak as a helper of sonde does");
    if (digest != wire_digest())
        return err_set(err, EOPNOTSUPP,
                       "it is of another build of sonde: install both from the same one");
    keep_text(wire, frame);
    wire->told = WIRE_HELLO;
    return 0;
}

static int read_begin(struct wire *wire, struct str frame, struct err *err)
{
    uint32_t kind;

    if (!take(&frame, &kind, sizeof(kind)) ||
        !take(&frame, &wire->last_update, sizeof(wire->last_update)) ||
        kind != wire->answer.section->kind)
        return garbled(err, "it is not about what was asked");
    keep_text(wire, frame);
    return 0;
}

static int read_symbols(struct wire *wire, struct str frame, struct err *err)
{
    while (frame.n) {
        uint32_t length;

        if (!take(&frame, &length, sizeof(length)) || length > frame.n)
            return garbled(err, "a text is longer than its frame");
        wire->symbols = section_grow(wire->answer.section, wire->symbols, wire->n_symbols,
                                     &wire->symbols_room, sizeof(*wire->symbols));
        wire->symbols[wire->n_symbols++] =
            symbols_put(&wire->answer.section->symbols, str_head(frame, length));
        frame = str_skip(frame, length);
    }
    return 0;
}

static bool unpack_state(const char *from, unsigned bases, uint8_t *base, uint32_t *flags)
{
    memcpy(base, from, sizeof(*base));
    memcpy(flags, from + sizeof(*base), sizeof(*flags));
    return *base < bases;
}

/* False for a value that no field of that type can have. */
static bool unpack_field(const struct wire *wire, enum field_type type, const char *from, char *to)
{
    uint32_t number;
    int64_t time;

    switch (type) {
    case FIELD_SYMBOL:
        memcpy(&number, from, sizeof(number));
        if (number >= wire->n_symbols)
            return false;
        memcpy(to, &wire->symbols[number], sizeof(symbol));
        return true;
    case FIELD_JOB_STATE: {
        struct job_state *state = (void *)to;

        return unpack_state(from, JOB_BASES, &state->base, &state->flags);
    }
    case FIELD_NODE_STATE: {
        struct node_state *state = (void *)to;

        return unpack_state(from, NODE_BASES, &state->base, &state->flags);
    }
    case FIELD_TIME:
        memcpy(&time, from, sizeof(time));
        memcpy(to, &time, sizeof(time));
        return time >= 0 && time <= TIME_MAX;
    case FIELD_BOOL:
        *(bool *)(void *)to = *from;
        return true;
    default:
        memcpy(to, from, packed_sizes[type]);
        return true;
    }
}

static bool unpack_record(const struct wire *wire, const struct field_record *record,
                          const char *from, void *item)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];

        if (!unpack_field(wire, field->type, from, (char *)item + field->offset))
            return false;
        from += packed_sizes[field->type];
    }
    return true;
}

static int read_head(struct wire *wire, struct str frame, struct err *err)
{
    if (frame.n != packed_size(&wire->kind->head) ||
        !unpack_record(wire, &wire->kind->head, frame.p, wire->answer.section))
        return garbled(err, "a field of the section cannot be");
    return 0;
}

static int read_records(struct wire *wire, struct str frame, struct err *err)
{
    struct section *section = wire->answer.section;
    const struct field_array *array;
    uint32_t number;
    size_t size, *n;
    char **items;

    if (!take(&frame, &number, sizeof(number)) || number >= wire->kind->n_arrays ||
        number < wire->array)
        return garbled(err, "there is no such list");
    if (number != wire->array)
        wire->room = 0;
    wire->array = number;
    array = &wire->kind->arrays[number];
    size = packed_size(array->record);
    n = count_of(section, array);
    items = (char **)((char *)section + array->items);
    if (frame.n % size)
        return garbled(err, "a record is cut off");
    for (; frame.n; frame = str_skip(frame, size)) {
        *items = section_grow(section, *items, *n, &wire->room, array->record->size);
        memset(*items + *n * array->record->size, 0, array->record->size);
        if (!unpack_record(wire, array->record, frame.p, *items + *n * array->record->size))
            return garbled(err, "a field of a record cannot be");
        ++*n;
    }
    return 0;
}

static int read_end(struct wire *wire, struct str frame, struct err *err)
{
    struct section *section = wire->answer.section;
    uint64_t count;

    if (!take(&frame, &count, sizeof(count)) || count != wire->n_symbols)
        return garbled(err, "texts are missing");
    for (size_t i = 0; i < wire->kind->n_arrays; i++)
        if (!take(&frame, &count, sizeof(count)) ||
            count != *count_of(section, &wire->kind->arrays[i]))
            return garbled(err, "records are missing");
    if (frame.n)
        return garbled(err, "its end is too long");
    if (fields_check(section, err) < 0)
        return err_prefix(err, "the helper's answer is garbled");
    if (section->kind == KIND_NODES)
        section_set_node_releases(section);
    wire->told = WIRE_SECTION;
    return 0;
}

static int read_error(struct wire *wire, struct str frame, struct err *err)
{
    uint32_t code;

    if (!take(&frame, &code, sizeof(code)) || code == 0 || code > 4095)
        return garbled(err, "an error without a number");
    keep_text(wire, frame);
    wire->code = (int)code;
    wire->told = WIRE_ERROR;
    return 0;
}

/* What may follow each frame of a section; each of the others is an answer by itself. */
static const unsigned followers[FRAME_TYPES] = {
    [FRAME_HELLO] = 1u << FRAME_HELLO | 1u << FRAME_BEGIN | 1u << FRAME_UNCHANGED |
                    1u << FRAME_ERROR, /* at the beginning */
    [FRAME_BEGIN] = 1u << FRAME_SYMBOLS,
    [FRAME_SYMBOLS] = 1u << FRAME_SYMBOLS | 1u << FRAME_HEAD,
    [FRAME_HEAD] = 1u << FRAME_RECORDS | 1u << FRAME_END,
    [FRAME_RECORDS] = 1u << FRAME_RECORDS | 1u << FRAME_END,
};

static int read_frame(struct wire *wire, enum frame_type type, struct str frame, struct err *err)
{
    static int (*const readers[FRAME_TYPES])(struct wire *, struct str, struct err *) = {
        [FRAME_HELLO] = read_hello, [FRAME_BEGIN] = read_begin,     [FRAME_SYMBOLS] = read_symbols,
        [FRAME_HEAD] = read_head,   [FRAME_RECORDS] = read_records, [FRAME_END] = read_end,
        [FRAME_ERROR] = read_error,
    };

    wire->last = type;
    if (type == FRAME_UNCHANGED) {
        wire->told = WIRE_UNCHANGED;
        return frame.n ? garbled(err, "there is more than nothing in it") : 0;
    }
    return readers[type](wire, frame, err);
}

/* Looks at a head before what it announces is waited for. */
static int check_head(const struct wire *wire, const struct frame_head *head, struct err *err)
{
    if (wire->told != WIRE_NOTHING)
        return garbled(err, "there is more of it than was asked for");
    if (head->type >= FRAME_TYPES || !(followers[wire->last] >> head->type & 1) ||
        head->bytes > WIRE_FRAME_MAX)
        return wire->last == FRAME_HELLO && !wire->n_symbols
                   ? err_set(err, EBADMSG, "it does not speak as a helper of sonde does")
                   : garbled(err, "a frame is out of place");
    return 0;
}

/* How many bytes of this piece belong to the frame whose beginning is kept. */
static size_t missing(const struct wire *wire)
{
    struct frame_head head;

    if (wire->part.n < sizeof(head))
        return sizeof(head) - wire->part.n;
    memcpy(&head, wire->part.p, sizeof(head));
    return sizeof(head) + head.bytes - wire->part.n;
}

static int feed(struct answer *answer, struct str piece, struct err *err)
{
    struct wire *wire = (struct wire *)answer;

    while (piece.n) {
        struct frame_head head;
        struct str more = str_head(piece, missing(wire));
        int code = 0;

        buf_put(&wire->part, more);
        piece = str_skip(piece, more.n);
        if (wire->part.n < sizeof(head))
            continue;
        memcpy(&head, wire->part.p, sizeof(head));
        if (wire->part.n == sizeof(head))
            code = check_head(wire, &head, err);
        if (code == 0 && wire->part.n == sizeof(head) + head.bytes) {
            code = read_frame(wire, head.type, str_skip(buf_str(&wire->part), sizeof(head)), err);
            buf_reset(&wire->part);
        }
        if (code < 0)
            return code;
    }
    return 0;
}

static void begin(struct answer *answer)
{
    struct wire *wire = (struct wire *)answer;

    wire->kind = &field_kinds[answer->section->kind];
    buf_init(&wire->part, sizeof(struct frame_head) + WIRE_FRAME_MAX);
}

static int end(struct answer *answer, struct err *err)
{
    const struct wire *wire = (const struct wire *)answer;

    if (wire->told == WIRE_NOTHING)
        return garbled(err, "it ends in the middle");
    if (wire->told == WIRE_ERROR)
        return err_set(err, wire->code, "%s", wire->text);
    return 0;
}

static void release(struct answer *answer)
{
    struct wire *wire = (struct wire *)answer;

    for (size_t i = 0; i < wire->kind->n_arrays; i++)
        arena_adopt(&answer->section->arena,
                    *(void **)((char *)answer->section + wire->kind->arrays[i].items));
    buf_free(&wire->part);
    free(wire->symbols);
}

const struct answer_class answer_wire = {
    .size = sizeof(struct wire),
    .begin = begin,
    .feed = feed,
    .end = end,
    .free = release,
};
