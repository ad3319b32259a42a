/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses job_stats of Lustre targets in pieces. */
#include "source/job_stats.h"

#include "base/arena.h"
#include "base/num.h"

enum {
    LINE_BYTES = 4096, /* more than four times what Lustre's longest line has */
    TARGET_BYTES = 128 /* MAX_OBD_NAME of Lustre */
};

enum place {
    BETWEEN_ENTRIES,
    IN_ENTRY,
    IN_LOST_ENTRY, /* after a line that does not tell whose the next ones are */
};

struct job_stats_parser {
    job_stats_sink sink;
    job_stats_target_sink target_sink; /* NULL: nobody asks */
    void *ctx;
    uint64_t bad_lines;
    enum place place;
    bool has_lost_target; /* nor which target's */
    struct job_stats_entry entry;
    char target[TARGET_BYTES], id[JOB_STATS_ID];
    char line[LINE_BYTES + 1]; /* the beginning of one whose end has not come yet; full: too long */
    size_t n_line;
};

struct job_stats_parser *job_stats_parser_new(job_stats_sink sink, void *ctx)
{
    struct job_stats_parser *parser = heap_alloc(sizeof(*parser));

    parser->sink = sink;
    parser->ctx = ctx;
    return parser;
}

struct job_stats_parser *job_stats_parser_free(struct job_stats_parser *parser)
{
    free(parser);
    return NULL;
}

void job_stats_tell_targets(struct job_stats_parser *parser, job_stats_target_sink sink)
{
    parser->target_sink = sink;
}

void job_stats_reset(struct job_stats_parser *parser)
{
    parser->place = BETWEEN_ENTRIES;
    parser->has_lost_target = false;
    parser->entry.target = STR("");
    parser->entry.is_mdt = false;
    parser->n_line = 0;
}

static void skip_spaces(struct str *rest)
{
    while (rest->n && rest->p[0] == ' ') {
        rest->p++;
        rest->n--;
    }
}

/* Takes the byte, and spaces before it. */
static bool take_mark(struct str *rest, char mark)
{
    skip_spaces(rest);
    if (!rest->n || rest->p[0] != mark)
        return false;
    rest->p++;
    rest->n--;
    return true;
}

static bool take_word(struct str *rest, struct str word)
{
    skip_spaces(rest);
    if (rest->n < word.n || memcmp(rest->p, word.p, word.n) != 0)
        return false;
    rest->p += word.n;
    rest->n -= word.n;
    return true;
}

static bool take_digits(struct str *rest, uint64_t *ret)
{
    const char *p, *end = rest->p + rest->n;
    uint64_t value = 0;

    skip_spaces(rest);
    for (p = rest->p; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    if (p == rest->p)
        return false;
    *ret = value;
    *rest = str_span(p, end);
    return true;
}

/* "1e5" and "2.5" are no counters. */
static bool take_number(struct str *rest, uint64_t *ret)
{
    return take_digits(rest, ret) &&
           (!rest->n || rest->p[0] == ',' || rest->p[0] == ' ' || rest->p[0] == '}');
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           c == '-';
}

/* What stands before a colon, which is taken too. */
static bool take_name(struct str *rest, struct str *ret)
{
    size_t n = 0;

    skip_spaces(rest);
    while (n < rest->n && is_name_byte(rest->p[n]))
        n++;
    if (!n || n == rest->n || rest->p[n] != ':')
        return false;
    *ret = str_head(*rest, n);
    *rest = str_skip(*rest, n + 1);
    return true;
}

/* "512", "4K", "1M", "2G". */
static bool take_size(struct str *rest, uint64_t *ret_bytes)
{
    static const char units[] = "KMGT";
    const char *unit;
    int shift;

    if (!take_digits(rest, ret_bytes))
        return false;
    unit = rest->n ? memchr(units, rest->p[0], strlen(units)) : NULL;
    if (!unit)
        return true;
    *rest = str_skip(*rest, 1);
    shift = 10 * (int)(unit - units + 1);
    if (*ret_bytes > UINT64_MAX >> shift)
        return false;
    *ret_bytes <<= shift;
    return true;
}

/* "{ 4K: 3, 1M: 7 }": how many of up to 4 KiB, and of up to 1 MiB. */
static bool take_sizes(struct str *rest, struct lustre_io *io)
{
    if (!take_mark(rest, '{'))
        return false;
    io->has_sizes = true;
    io->small_samples = 0;
    while (!take_mark(rest, '}')) {
        uint64_t bytes, samples;

        if (!take_size(rest, &bytes) || !take_mark(rest, ':') || !take_number(rest, &samples))
            return false;
        if (bytes <= LUSTRE_SMALL_BYTES &&
            __builtin_add_overflow(io->small_samples, samples, &io->small_samples))
            return false;
        if (!take_mark(rest, ',') && !(rest->n && rest->p[0] == '}'))
            return false;
    }
    return true;
}

/* A value that nobody asked for: a word, or anything in braces. */
static bool pass_value(struct str *rest)
{
    if (take_mark(rest, '{')) {
        *rest = str_skip(*rest, str_find(*rest, '}'));
        return take_mark(rest, '}');
    }
    while (rest->n && rest->p[0] != ',' && rest->p[0] != '}')
        *rest = str_skip(*rest, 1);
    return rest->n > 0;
}

/* "{ samples: 3, unit: bytes, min: 1, max: 8, sum: 10, hist: { 1: 1, 8: 2 } }" */
static bool read_io(struct str value, struct lustre_io *ret)
{
    struct lustre_io io = { .is_there = true };
    const struct {
        struct str name;
        uint64_t *to;
    } numbers[] = {
        { STR("samples"), &io.samples },
        { STR("min"), &io.least_bytes },
        { STR("max"), &io.most_bytes },
        { STR("sum"), &io.bytes },
    };
    unsigned seen = 0;
    struct str name;

    if (ret->is_there || !take_mark(&value, '{'))
        return false;
    do {
        size_t i = 0;

        if (!take_name(&value, &name))
            return false;
        while (i < COUNT(numbers) && !str_eq(name, numbers[i].name))
            i++;
        if (i < COUNT(numbers)) {
            if (!take_number(&value, numbers[i].to))
                return false;
            seen |= 1U << i;
        } else if (!(str_eq(name, STR("hist")) ? take_sizes(&value, &io) : pass_value(&value))) {
            return false;
        }
    } while (take_mark(&value, ','));
    if (!take_mark(&value, '}') || str_trim(value).n || seen != (1U << COUNT(numbers)) - 1)
        return false;
    *ret = io;
    return true;
}

static bool has_operation(const struct job_stats_entry *entry, const char name[JOB_STATS_NAME])
{
    for (size_t i = 0; i < entry->n_operations; i++)
        if (memcmp(entry->operations[i].name, name, JOB_STATS_NAME) == 0)
            return true;
    return false;
}

/* "{ samples: 3, unit: usecs, … }": of the time that they took nothing is kept, nor looked at. */
static bool read_operation(struct str name, struct str value, struct job_stats_entry *entry)
{
    struct job_stats_operation operation = { 0 };

    if (name.n >= sizeof(operation.name) || entry->n_operations == JOB_STATS_OPERATIONS)
        return false;
    memcpy(operation.name, name.p, name.n);
    if (!take_mark(&value, '{') || !take_word(&value, STR("samples:")) ||
        !take_number(&value, &operation.samples) || !str_ends(str_trim(value), STR("}")) ||
        has_operation(entry, operation.name))
        return false;
    entry->operations[entry->n_operations++] = operation;
    return true;
}

/* A line of an entry. */
static bool read_field(struct str line, struct job_stats_entry *entry)
{
    struct str name;

    if (!take_name(&line, &name))
        return false;
    skip_spaces(&line);
    if (str_eq(name, STR("read_bytes")))
        return read_io(line, &entry->read);
    if (str_eq(name, STR("write_bytes")))
        return read_io(line, &entry->write);
    if (str_eq(name, STR("snapshot_time")) || str_eq(name, STR("start_time")) ||
        str_eq(name, STR("elapsed_time")))
        return true;
    return read_operation(name, line, entry);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static bool is_escape(struct str s)
{
    return s.n >= 4 && s.p[1] == 'x' && hex_digit(s.p[2]) >= 0 && hex_digit(s.p[3]) >= 0;
}

/* Since 2.15 an id with unusual bytes has quotes around it and \xHH for each of those, quotes and
 * backslashes included. Until then all ids came as they are: any may begin or end with a quote. */
static bool is_quoted(struct str text)
{
    if (text.n < 2 || text.p[0] != '"' || text.p[text.n - 1] != '"')
        return false;
    text = (struct str){ text.p + 1, text.n - 2 };
    for (; text.n; text = str_skip(text, 1))
        if (text.p[0] == '"' || (text.p[0] == '\\' && !is_escape(text)))
            return false;
    return true;
}

static bool read_quoted_id(struct str text, struct job_stats_parser *parser)
{
    size_t n = 0;

    for (text = (struct str){ text.p + 1, text.n - 2 }; text.n; n++) {
        bool is_escaped = text.p[0] == '\\';

        if (n == sizeof(parser->id))
            return false;
        parser->id[n] =
            is_escaped ? (char)(hex_digit(text.p[2]) << 4 | hex_digit(text.p[3])) : text.p[0];
        text = str_skip(text, is_escaped ? 4 : 1);
    }
    parser->entry.id = (struct str){ parser->id, n };
    return true;
}

/* "- job_id:          1234". Spaces around an id that is not quoted are none of it, as in YAML. */
static bool read_id(struct str line, struct job_stats_parser *parser)
{
    const struct str key = STR("- job_id:");

    if (!str_starts(line, key))
        return false;
    line = str_trim(str_skip(line, key.n));
    if (is_quoted(line))
        return read_quoted_id(line, parser);
    if (line.n > sizeof(parser->id))
        return false;
    memcpy(parser->id, line.p, line.n);
    parser->entry.id = (struct str){ parser->id, line.n };
    return true;
}

static void begin_entry(struct job_stats_parser *parser)
{
    struct job_stats_entry *entry = &parser->entry;

    entry->read = entry->write = (struct lustre_io){ 0 };
    entry->n_operations = 0;
    parser->place = IN_ENTRY;
}

static void end_entry(struct job_stats_parser *parser)
{
    if (parser->place == IN_ENTRY)
        parser->sink(parser->ctx, &parser->entry);
    parser->place = BETWEEN_ENTRIES;
}

static const struct str param_end = STR_INIT(".job_stats=");

/* "obdfilter.scratch-OST0000.job_stats="; lctl goes on in the same line with a value that has but
 * one itself, "job_stats:" of an idle target. */
static bool read_target(struct str line, struct job_stats_parser *parser)
{
    static const struct {
        struct str begin;
        bool is_mdt;
    } kinds[] = {
        { STR_INIT("obdfilter."), false },
        { STR_INIT("mdt."), true },
    };
    const struct str idle = STR("=job_stats:");

    if (str_ends(line, idle))
        line.n -= idle.n - 1;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct str name = str_skip(line, kinds[i].begin.n);

        if (!str_starts(line, kinds[i].begin) || !str_ends(name, param_end))
            continue;
        name.n -= param_end.n;
        if (!name.n || name.n > sizeof(parser->target))
            return false;
        memcpy(parser->target, name.p, name.n);
        parser->entry.target = (struct str){ parser->target, name.n };
        parser->entry.is_mdt = kinds[i].is_mdt;
        parser->has_lost_target = false;
        if (parser->target_sink)
            parser->target_sink(parser->ctx, parser->entry.target, parser->entry.is_mdt);
        return true;
    }
    return false;
}

/* A line that is not indented. */
static bool read_head(struct str line, struct job_stats_parser *parser)
{
    if (line.p[0] != '-')
        return str_eq(line, STR("job_stats:")) || read_target(line, parser);
    if (!read_id(line, parser))
        return false;
    if (parser->has_lost_target)
        parser->place = IN_LOST_ENTRY;
    else
        begin_entry(parser);
    return true;
}

/* Such a line cannot be read. Had it an id, or a target's name, what follows is not of the last. */
static void lose_place(struct str line, struct job_stats_parser *parser)
{
    parser->place = IN_LOST_ENTRY;
    if (line.p[0] != '-' && (parser->entry.target.n || str_ends(line, param_end)))
        parser->has_lost_target = true;
}

static void read_line(struct str line, struct job_stats_parser *parser)
{
    bool is_whole = line.n <= LINE_BYTES;

    line = str_head(line, LINE_BYTES);
    if (str_ends(line, STR("\r")))
        line.n--;
    if (!line.n)
        return;
    if (line.p[0] == ' ') {
        if (parser->place == IN_LOST_ENTRY ||
            (is_whole && parser->place == IN_ENTRY && read_field(line, &parser->entry)))
            return;
    } else {
        end_entry(parser);
        if (is_whole && read_head(line, parser))
            return;
        lose_place(line, parser);
    }
    parser->bad_lines++;
}

static void keep(struct job_stats_parser *parser, struct str part)
{
    part = str_head(part, sizeof(parser->line) - parser->n_line);
    if (part.n)
        memcpy(parser->line + parser->n_line, part.p, part.n);
    parser->n_line += part.n;
}

void job_stats_feed(struct job_stats_parser *parser, struct str piece)
{
    while (piece.n) {
        const char *end = memchr(piece.p, '\n', piece.n);
        struct str line = str_head(piece, end ? (size_t)(end - piece.p) : piece.n);

        if (!end || parser->n_line) {
            keep(parser, line);
            line = (struct str){ parser->line, parser->n_line };
        }
        if (!end)
            return;
        read_line(line, parser);
        parser->n_line = 0;
        piece = str_span(end + 1, piece.p + piece.n);
    }
}

void job_stats_finish(struct job_stats_parser *parser)
{
    parser->bad_lines += parser->n_line > 0;
    end_entry(parser);
    job_stats_reset(parser);
}

uint64_t job_stats_bad_lines(const struct job_stats_parser *parser)
{
    return parser->bad_lines;
}
