/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One writer for every kind, led by the tables of model/fields. JSON as in RFC 8259, with Infinity
 * as json-c and base/json write and read it. */
#include "source/record.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/quote.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

enum {
    PIECE = 64 * 1024,   /* is written when that much has come up */
    TOKEN_MAX = 1000000, /* a little less than base/json takes */
};
_Static_assert(6 * RECORD_TEXT_MAX < TOKEN_MAX, "as many bytes as \\u001b has for each");

struct writer {
    int fd; /* -1: what has come up stays in `out` */
    const struct section *section;
    struct pseudonyms *pseudonyms;
    struct buf *out, text;
    uint64_t bytes;
    int code; /* errno of the first write that failed */
};

static void flush(struct writer *writer)
{
    if (writer->fd < 0)
        return;
    for (struct str rest = buf_str(writer->out); rest.n && !writer->code;) {
        ssize_t n = write(writer->fd, rest.p, rest.n);

        if (n < 0 && errno != EINTR)
            writer->code = errno;
        else if (n > 0)
            rest = str_skip(rest, (size_t)n);
    }
    writer->bytes += writer->out->n;
    buf_reset(writer->out);
}

static void put_key(struct writer *writer, const char *name, bool *is_first)
{
    if (writer->out->n >= PIECE)
        flush(writer);
    if (!*is_first)
        buf_byte(writer->out, ',');
    *is_first = false;
    buf_json(writer->out, str_of(name));
    buf_byte(writer->out, ':');
}

static uint64_t get_number(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_BOOL:
        return *(const bool *)at;
    case FIELD_U8:
        return *(const uint8_t *)at;
    case FIELD_U32:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static bool is_left_out(const struct writer *writer, const struct field *field, const void *at)
{
    return !field_is_told(field, at) ||
           (field->type == FIELD_SYMBOL &&
            section_text(writer->section, *(const symbol *)at).n > RECORD_TEXT_MAX);
}

static void put_double(struct buf *out, double value)
{
    if (isinf(value))
        buf_text(out, value < 0 ? "-Infinity" : "Infinity");
    else
        buf_double(out, value);
}

static void put_number(struct writer *writer, const struct field *field, uint64_t number)
{
    if (writer->pseudonyms && field->sense == SENSE_USER_ID)
        number = pseudonyms_user_id(writer->pseudonyms, (uint32_t)number);
    buf_u64(writer->out, number);
}

static void put_text(struct writer *writer, const struct field *field, const void *at)
{
    struct buf *text = &writer->text;

    buf_reset(text);
    if (field->type == FIELD_JOB_STATE)
        job_state_put(text, *(const struct job_state *)at);
    else if (field->type == FIELD_NODE_STATE)
        node_state_put(text, *(const struct node_state *)at);
    else if (writer->pseudonyms)
        pseudonyms_put(writer->pseudonyms, field->sense,
                       section_text(writer->section, *(const symbol *)at), text);
    else
        buf_put(text, section_text(writer->section, *(const symbol *)at));
    buf_json(writer->out, text->over ? STR("") : buf_str(text));
}

static void put_value(struct writer *writer, const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_BOOL:
        buf_text(writer->out, *(const bool *)at ? "true" : "false");
        break;
    case FIELD_TIME:
        buf_i64(writer->out, *(const int64_t *)at);
        break;
    case FIELD_DOUBLE:
        put_double(writer->out, *(const double *)at);
        break;
    case FIELD_SYMBOL:
    case FIELD_JOB_STATE:
    case FIELD_NODE_STATE:
        put_text(writer, field, at);
        break;
    default:
        put_number(writer, field, get_number(field, at));
        break;
    }
}

static void put_fields(struct writer *writer, const struct field_record *record, const void *at,
                       bool *is_first)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];
        const void *value = (const char *)at + field->offset;

        if (is_left_out(writer, field, value))
            continue;
        put_key(writer, field->name, is_first);
        put_value(writer, field, value);
    }
}

static void put_array(struct writer *writer, const struct field_array *array)
{
    const char *section = (const char *)writer->section;
    const char *items = *(const char *const *)(section + array->items);
    size_t n = *(const size_t *)(section + array->count);

    buf_byte(writer->out, '[');
    for (size_t i = 0; i < n; i++) {
        bool is_first = true;

        buf_text(writer->out, i ? ",\n{" : "\n{");
        put_fields(writer, array->record, items + i * array->record->size, &is_first);
        buf_byte(writer->out, '}');
    }
    buf_byte(writer->out, ']');
}

/* With these a document begins: a reader knows from them what follows. */
static void put_about(struct writer *writer, const struct record_about *about, bool *is_first)
{
    struct buf *out = writer->out;

    put_key(writer, "sonde", is_first);
    buf_json(out, STR(SONDE_VERSION));
    put_key(writer, "format", is_first);
    buf_u64(out, RECORD_FORMAT);
    put_key(writer, "kind", is_first);
    buf_json(out, str_of(kind_name(writer->section->kind)));
    put_key(writer, "source", is_first);
    buf_json(out, str_of(about->door));
    if (about->is_simulated) {
        put_key(writer, "simulated", is_first);
        buf_text(out, "true");
    }
    put_key(writer, "time", is_first);
    buf_printf(out, "%lld.%06lld", (long long)(about->wall_ns / NS_PER_SEC),
               (long long)(about->wall_ns % NS_PER_SEC / 1000));
    if (writer->section->skipped) {
        put_key(writer, "skipped", is_first);
        buf_u64(out, writer->section->skipped);
    }
}

/* Returns how much of it is in `out` when all is said that it says of itself. */
static size_t put_document(struct writer *writer, const struct record_about *about)
{
    const struct field_kind *kind = &field_kinds[writer->section->kind];
    bool is_first = true;
    size_t begin;

    buf_byte(writer->out, '{');
    put_about(writer, about, &is_first);
    begin = writer->out->n;
    put_fields(writer, &kind->head, writer->section, &is_first);
    for (size_t i = 0; i < kind->n_arrays; i++) {
        put_key(writer, kind->arrays[i].name, &is_first);
        put_array(writer, &kind->arrays[i]);
    }
    buf_text(writer->out, "}\n");
    flush(writer);
    return begin;
}

size_t record_put(struct buf *out, const struct section *section, const struct record_about *about)
{
    struct writer writer = { .fd = -1, .section = section, .out = out };
    size_t begin;

    buf_init(&writer.text, TOKEN_MAX);
    begin = put_document(&writer, about);
    buf_free(&writer.text);
    return begin;
}

int record_write(int fd, const struct section *section, const struct record_about *about,
                 struct pseudonyms *pseudonyms, uint64_t *ret_bytes, struct err *err)
{
    struct buf out;
    struct writer writer = { .fd = fd, .section = section, .pseudonyms = pseudonyms, .out = &out };

    buf_init(&out, PIECE + 2 * TOKEN_MAX);
    buf_init(&writer.text, TOKEN_MAX);
    put_document(&writer, about);
    buf_free(&out);
    buf_free(&writer.text);
    if (writer.code)
        return err_set(err, writer.code, "%s", err_words(writer.code));
    *ret_bytes = writer.bytes;
    return 0;
}

bool record_kind_parse(struct str name, enum kind *ret)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind != KIND_TRACES && str_eq(name, str_of(kind_name((enum kind)kind)))) {
            *ret = (enum kind)kind;
            return true;
        }
    }
    return false;
}

void record_name(unsigned look, enum kind kind, char ret[RECORD_NAME_MAX])
{
    snprintf(ret, RECORD_NAME_MAX, "%06u-%s.json", look, kind_name(kind));
}

bool record_name_parse(const char *name, unsigned *ret_look, enum kind *ret_kind)
{
    struct str rest = str_of(name), digits = str_cut(&rest, '-');
    uint64_t look;

    if (digits.n != 6 || !num_get_u64(digits, &look) || !str_ends(rest, STR(".json")) ||
        !record_kind_parse(str_head(rest, rest.n - strlen(".json")), ret_kind))
        return false;
    *ret_look = (unsigned)look;
    return true;
}

/* Takes the descriptor over; *ret is false before. */
static int holds_recording(int fd, bool *ret, struct err *err)
{
    DIR *directory = fdopendir(fd);
    const struct dirent *entry;

    if (!directory) {
        close(fd);
        return err_set(err, errno, "%s", err_words(errno));
    }
    while (!*ret && (entry = readdir(directory)))
        *ret = record_name_parse(entry->d_name, &(unsigned){ 0 }, &(enum kind){ 0 });
    closedir(directory);
    return 0;
}

int record_directory(const char *path, struct err *err)
{
    bool is_taken = false;
    int fd, code;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make the directory %s: %s", quote(str_of(path)).text,
                       err_words(errno));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open the directory %s: %s", quote(str_of(path)).text,
                       err_words(errno));
    code = holds_recording(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), &is_taken, err);
    if (code < 0)
        code = err_prefix(err, "cannot read the directory %s", quote(str_of(path)).text);
    else if (is_taken)
        code = err_set(err, EEXIST, "%s already holds a recording: name another directory",
                       quote(str_of(path)).text);
    if (code < 0) {
        close(fd);
        return code;
    }
    return fd;
}

int record_add(int directory, unsigned look, const struct section *section,
               const struct record_about *about, struct pseudonyms *pseudonyms, uint64_t *ret_bytes,
               struct err *err)
{
    char name[RECORD_NAME_MAX], fresh[RECORD_NAME_MAX + 4];
    uint64_t bytes;
    int fd, code;

    record_name(look, section->kind, name);
    snprintf(fresh, sizeof(fresh), "%s.new", name);
    unlinkat(directory, fresh, 0); /* of a recording that was killed */
    fd = openat(directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s", name, err_words(errno));
    code = record_write(fd, section, about, pseudonyms, &bytes, err);
    if (close(fd) < 0 && code == 0)
        code = err_set(err, errno, "%s", err_words(errno));
    if (code == 0 && renameat(directory, fresh, directory, name) < 0)
        code = err_set(err, errno, "%s", err_words(errno));
    if (code < 0) {
        unlinkat(directory, fresh, 0);
        return err_prefix(err, "cannot write %s", name);
    }
    *ret_bytes = bytes;
    return 0;
}
