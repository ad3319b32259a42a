/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes metric families in the text format or OpenMetrics. */
#include "metric/writer.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"

enum {
    PIECES_MAX = 8192,
    EXPANSION = 3, /* one invalid byte becomes the three of U+FFFD */
    STRIDE = 16,   /* short texts are copied in strides of this size, past their end */
};

void metric_writer_init(struct metric_writer *writer, struct buf *out, enum metric_format format,
                        struct str const_labels, const struct family *families, size_t n_families)
{
    *writer = (struct metric_writer){ .out = out,
                                      .format = format,
                                      .const_labels = const_labels,
                                      .families = families,
                                      .n_families = n_families };
    buf_init(&writer->pieces, PIECES_MAX);
}

void metric_writer_free(struct metric_writer *writer)
{
    buf_free(&writer->pieces);
    free(writer->seen);
    writer->seen = NULL;
}

/* Everything of a sample line that is the same for all samples of the family. `suffix` follows the
 * name ("_bucket"), `last_label` comes after the family's own ("le") or is NULL. */
static void make_pieces(struct metric_writer *writer, const char *suffix, const char *last_label)
{
    size_t starts[METRIC_LABELS_MAX + 3];
    struct buf *pieces = &writer->pieces;
    const char *label;
    bool first = writer->const_labels.n == 0;
    size_t n = 0;

    buf_reset(pieces);
    starts[n++] = 0;
    buf_put(pieces, writer->prefix);
    buf_text(pieces, writer->family->name);
    buf_text(pieces, suffix);
    if (writer->const_labels.n) {
        buf_byte(pieces, '{');
        buf_put(pieces, writer->const_labels);
    }
    for (size_t i = 0; i <= writer->n_labels; i++) {
        label = i < writer->n_labels ? writer->family->labels[i] : last_label;
        if (!label)
            break;
        if (n > 1)
            buf_byte(pieces, '"');
        buf_byte(pieces, first ? '{' : ',');
        buf_text(pieces, label);
        buf_text(pieces, "=\"");
        first = false;
        starts[n++] = pieces->n;
    }
    if (n > 1)
        buf_byte(pieces, '"');
    buf_text(pieces, first ? " " : "} ");
    starts[n] = pieces->n;
    buf_room(pieces, STRIDE);
    for (size_t i = 0; i < n; i++)
        writer->piece[i] = str_span(pieces->p + starts[i], pieces->p + starts[i + 1]);
}

void metric_begin(struct metric_writer *writer, size_t family_index)
{
    family_set bit = FAMILY_BIT(family_index);

    writer->header_written = false;
    writer->family = writer->begun & bit ? NULL : &writer->families[family_index];
    writer->begun |= bit;
    writer->is_muted = writer->excluded & bit;
    if (!writer->family)
        return;
    writer->n_labels = family_labels(writer->family);
    if (writer->family->type != METRIC_HISTOGRAM)
        make_pieces(writer, "", NULL);
}

void metric_const_labels(struct metric_writer *writer, struct str const_labels)
{
    writer->const_labels = const_labels;
    if (writer->family && writer->family->type != METRIC_HISTOGRAM)
        make_pieces(writer, "", NULL);
}

struct str metric_header_name(const struct family *family, enum metric_format format)
{
    struct str name = str_of(family->name);

    if (format == METRIC_OPENMETRICS && family->type == METRIC_COUNTER &&
        str_ends(name, STR("_total")))
        name.n -= STR("_total").n;
    return name;
}

static const char *type_word(const struct family *family, enum metric_format format)
{
    static const char *const words[] = {
        [METRIC_GAUGE] = "gauge",
        [METRIC_COUNTER] = "counter",
        [METRIC_HISTOGRAM] = "histogram",
        [METRIC_UNTYPED] = "untyped",
    };

    if (format == METRIC_OPENMETRICS &&
        (family->type == METRIC_UNTYPED ||
         (family->type == METRIC_COUNTER && !str_ends(str_of(family->name), STR("_total")))))
        return "unknown";
    return words[family->type];
}

static void put_help(struct buf *out, struct str help, bool escape_quotes)
{
    for (size_t i = 0; i < help.n; i++) {
        if (help.p[i] == '\n') {
            buf_text(out, "\\n");
            continue;
        }
        if (help.p[i] == '\\' || (escape_quotes && help.p[i] == '"'))
            buf_byte(out, '\\');
        buf_byte(out, help.p[i]);
    }
}

void metric_put_header(struct buf *out, const struct family *family, struct str prefix,
                       enum metric_format format)
{
    struct str name = metric_header_name(family, format);

    buf_text(out, "# HELP ");
    buf_put(out, prefix);
    buf_put(out, name);
    buf_byte(out, ' ');
    put_help(out, str_of(family->help), format == METRIC_OPENMETRICS);
    buf_text(out, "\n# TYPE ");
    buf_put(out, prefix);
    buf_put(out, name);
    buf_byte(out, ' ');
    buf_text(out, type_word(family, format));
    buf_byte(out, '\n');
}

static void write_header(struct metric_writer *writer)
{
    metric_put_header(writer->out, writer->family, writer->prefix, writer->format);
    writer->header_written = true;
}

/* Non-zero if any of the eight bytes is not plain: over 0x7f, a quote, a backslash, a newline. */
static inline uint64_t special_bytes(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\', newline = word ^ ones * '\n';

    return (word | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
            ((newline - ones) & ~newline)) &
           tops;
}

static char *put_escaped(char *to, struct str s)
{
    while (s.n) {
        size_t length = str_utf8_len(s);

        if (s.p[0] == '\n') {
            memcpy(to, "\\n", 2);
            to += 2;
        } else if (s.p[0] == '"' || s.p[0] == '\\') {
            *to++ = '\\';
            *to++ = s.p[0];
        } else if (length == 0) {
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
        } else {
            memcpy(to, s.p, length);
            to += length;
        }
        s = str_skip(s, length ? length : 1);
    }
    return to;
}

/* The last bytes of a value, one to eight, as a word filled up with zeros. */
static inline uint64_t load_tail(const char *p, size_t n)
{
    uint32_t low, high;

    if (n < 4)
        return (uint64_t)(unsigned char)p[0] | (uint64_t)(unsigned char)p[n / 2] << n / 2 * 8 |
               (uint64_t)(unsigned char)p[n - 1] << (n - 1) * 8;
    memcpy(&low, p, 4);
    memcpy(&high, p + n - 4, 4);
    return (uint64_t)low | (uint64_t)high << (n - 4) * 8;
}

/* Copies a value word by word, a little past its end. If anything in it needs escaping, which is
 * rare, it is done again byte by byte, and *changed is set. */
static inline char *put_value(char *to, struct str s, bool *changed)
{
    uint64_t word, special = 0;
    const char *p = s.p;
    char *end = to;
    size_t n = s.n;

    for (; n > 8; n -= 8, p += 8, end += 8) {
        memcpy(&word, p, 8);
        memcpy(end, &word, 8);
        special |= special_bytes(word);
    }
    if (n) {
        word = load_tail(p, n);
        memcpy(end, &word, 8);
        special |= special_bytes(word);
    }
    if (!special)
        return end + n;
    *changed = true;
    return put_escaped(to, s);
}

/* Cut at a character, so that the cut alone makes no invalid UTF-8. */
static inline struct str bounded(struct str s)
{
    if (s.n <= METRIC_LABEL_BYTES)
        return s;
    s.n = METRIC_LABEL_BYTES;
    while (s.n > METRIC_LABEL_BYTES - 4 && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
        s.n--;
    return s;
}

static inline char *put_piece(char *to, struct str piece)
{
    for (size_t i = 0; i < piece.n; i += STRIDE)
        memcpy(to + i, piece.p + i, STRIDE);
    return to + piece.n;
}

static void grow_seen(struct metric_writer *writer)
{
    size_t old_cap = writer->cap_seen;
    uint64_t *old = writer->seen;

    writer->cap_seen = old_cap ? old_cap * 4 : 512;
    writer->seen = heap_alloc(writer->cap_seen * sizeof(*writer->seen));
    for (size_t i = 0; i < old_cap; i++) {
        size_t at = old[i] & (writer->cap_seen - 1);

        if (!old[i])
            continue;
        while (writer->seen[at])
            at = (at + 1) & (writer->cap_seen - 1);
        writer->seen[at] = old[i];
    }
    free(old);
}

/* Remembers a sample by its name and labels; false if it had been seen. 64 bits under a random
 * seed: even among a million, two different ones meet once in 30 million expositions. */
static bool first_time(struct metric_writer *writer, struct str line)
{
    uint64_t hash = map_hash(line);
    size_t at;

    hash += hash == 0;
    if (writer->n_seen * 2 >= writer->cap_seen)
        grow_seen(writer);
    at = hash & (writer->cap_seen - 1);
    while (writer->seen[at]) {
        if (writer->seen[at] == hash)
            return false;
        at = (at + 1) & (writer->cap_seen - 1);
    }
    writer->seen[at] = hash;
    writer->n_seen++;
    return true;
}

/* Name and labels with room for a number behind them; NULL if the sample must not be written. */
static char *begin_sample(struct metric_writer *writer, const struct str *values, struct str last)
{
    size_t room = writer->pieces.n + (METRIC_LABELS_MAX + 2) * STRIDE + NUM_DOUBLE_MAX + 1;
    bool doubtful = false;
    char *line, *to;

    if (!writer->header_written)
        write_header(writer);
    for (size_t i = 0; i < writer->n_labels; i++) {
        struct str value = bounded(values[i]);

        room += EXPANSION * value.n;
        doubtful |= value.n > METRIC_LABEL_BYTES - 4;
    }
    line = buf_room(writer->out, room);
    if (!line)
        return NULL;
    to = put_piece(line, writer->piece[0]);
    for (size_t i = 0; i < writer->n_labels; i++) {
        to = put_value(to, bounded(values[i]), &doubtful);
        to = put_piece(to, writer->piece[i + 1]);
    }
    if (last.p) {
        to = put_value(to, last, &doubtful);
        to = put_piece(to, writer->piece[writer->n_labels + 1]);
    }
    if ((doubtful || writer->n_seen < METRIC_CHECKED) && !writer->is_unchecked &&
        !first_time(writer, str_span(line, to))) {
        buf_end(writer->out);
        writer->duplicates++;
        return NULL;
    }
    return to;
}

static void end_sample(struct metric_writer *writer, char *to)
{
    *to++ = '\n';
    writer->out->n = (size_t)(to - writer->out->p);
    buf_end(writer->out);
    writer->samples++;
}

static void put_u64(struct metric_writer *writer, const struct str *values, struct str last,
                    uint64_t value)
{
    char *to = begin_sample(writer, values, last);

    if (to)
        end_sample(writer, to + num_put_u64(to, value));
}

static void put_double(struct metric_writer *writer, const struct str *values, struct str last,
                       double value)
{
    char *to = begin_sample(writer, values, last);

    if (to)
        end_sample(writer, to + num_put_double(to, value));
}

void metric_u64(struct metric_writer *writer, const struct str *values, uint64_t value)
{
    if (writer->is_muted)
        return;
    if (writer->family)
        put_u64(writer, values, (struct str){ NULL, 0 }, value);
    else
        writer->duplicates++;
}

void metric_double(struct metric_writer *writer, const struct str *values, double value)
{
    if (writer->is_muted)
        return;
    if (writer->family)
        put_double(writer, values, (struct str){ NULL, 0 }, value);
    else
        writer->duplicates++;
}

/* OpenMetrics wants bounds as canonical floats: "1.0", where the text format has always had "1". */
static struct str bound_text(const struct metric_writer *writer, double bound, char *text)
{
    size_t n = num_put_double(text, bound);

    if (writer->format == METRIC_OPENMETRICS && bound == (double)(uint64_t)bound) {
        memcpy(text + n, ".0", 2);
        n += 2;
    }
    return (struct str){ text, n };
}

void metric_histogram(struct metric_writer *writer, const struct str *values,
                      struct histogram_view histogram)
{
    char text[NUM_DOUBLE_MAX + 2];
    uint64_t total = 0;

    if (writer->is_muted)
        return;
    if (!writer->family) {
        writer->duplicates++;
        return;
    }
    make_pieces(writer, "_bucket", "le");
    for (size_t i = 0; i < histogram.n_bounds; i++) {
        total += histogram.buckets[i];
        put_u64(writer, values, bound_text(writer, histogram.bounds[i], text), total);
    }
    total += histogram.buckets[histogram.n_bounds];
    put_u64(writer, values, STR("+Inf"), total);
    make_pieces(writer, "_sum", NULL);
    put_double(writer, values, (struct str){ NULL, 0 }, histogram.sum);
    make_pieces(writer, "_count", NULL);
    put_u64(writer, values, (struct str){ NULL, 0 }, total);
}

struct str metric_eof(enum metric_format format)
{
    return format == METRIC_OPENMETRICS ? STR("# EOF\n") : STR("");
}

const char *metric_content_type(enum metric_format format)
{
    return format == METRIC_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
