/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses samples in the Prometheus text format. */
#include "metric/reader.h"

#include "base/buf.h"
#include "base/num.h"

/* One line, as it is taken apart from its beginning. */
struct line {
    struct str rest;
    struct buf *plain; /* of label values that were escaped; never moves */
};

static bool is_name_byte(char c, bool is_first, bool may_have_colon)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c == ':' && may_have_colon) || (c >= '0' && c <= '9' && !is_first);
}

static void skip_blanks(struct line *line)
{
    size_t n = 0;

    while (n < line->rest.n && (line->rest.p[n] == ' ' || line->rest.p[n] == '\t'))
        n++;
    line->rest = str_skip(line->rest, n);
}

static bool take_byte(struct line *line, char byte)
{
    if (!line->rest.n || *line->rest.p != byte)
        return false;
    line->rest = str_skip(line->rest, 1);
    return true;
}

static bool take_name(struct line *line, bool may_have_colon, struct str *ret)
{
    size_t n = 0;

    while (n < line->rest.n && is_name_byte(line->rest.p[n], n == 0, may_have_colon))
        n++;
    *ret = str_head(line->rest, n);
    line->rest = str_skip(line->rest, n);
    return n > 0;
}

/* Up to the quote that ends it; false if there is none. */
static bool find_end(struct str text, size_t *ret, bool *is_escaped)
{
    *is_escaped = false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"') {
            *ret = i;
            return true;
        }
        if (text.p[i] == '\\') {
            *is_escaped = true;
            i++;
        }
    }
    return false;
}

static bool unescape(struct str text, struct buf *to)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '\\') {
            c = text.p[++i];
            if (c == 'n')
                c = '\n';
            else if (c != '\\' && c != '"')
                return false;
        }
        buf_byte(to, c);
    }
    return !to->over;
}

static bool take_value(struct line *line, struct str *ret)
{
    size_t n, begin = line->plain->n;
    bool is_escaped;

    if (!take_byte(line, '"') || !find_end(line->rest, &n, &is_escaped))
        return false;
    *ret = str_head(line->rest, n);
    line->rest = str_skip(line->rest, n + 1);
    if (!is_escaped)
        return true;
    if (!unescape(*ret, line->plain))
        return false;
    *ret = str_skip(buf_str(line->plain), begin);
    return true;
}

static bool take_label(struct line *line, struct metric_sample *sample)
{
    size_t i = sample->n_labels++;

    if (i == METRIC_READ_LABELS || !take_name(line, false, &sample->label[i].name))
        return false;
    skip_blanks(line);
    if (!take_byte(line, '='))
        return false;
    skip_blanks(line);
    return take_value(line, &sample->label[i].value);
}

/* A comma may follow the last, too. */
static bool take_labels(struct line *line, struct metric_sample *sample)
{
    skip_blanks(line);
    while (!take_byte(line, '}')) {
        if (!take_label(line, sample))
            return false;
        skip_blanks(line);
        if (!take_byte(line, ',') && (!line->rest.n || *line->rest.p != '}'))
            return false;
        skip_blanks(line);
    }
    return true;
}

static struct str take_word(struct line *line)
{
    size_t n = 0;
    struct str word;

    while (n < line->rest.n && line->rest.p[n] != ' ' && line->rest.p[n] != '\t')
        n++;
    word = str_head(line->rest, n);
    line->rest = str_skip(line->rest, n);
    return word;
}

/* The value, and the time that may stand behind it: it is that of the answer, near enough. */
static bool take_number(struct line *line, struct metric_sample *sample)
{
    struct str time;
    int64_t ms;

    skip_blanks(line);
    if (!num_get_double(take_word(line), &sample->value))
        return false;
    skip_blanks(line);
    time = take_word(line);
    skip_blanks(line);
    return (!time.n || num_get_i64(time, &ms)) && !line->rest.n;
}

static bool read_line(struct line *line, struct metric_sample *sample)
{
    sample->n_labels = 0;
    if (!take_name(line, true, &sample->name))
        return false;
    skip_blanks(line);
    if (take_byte(line, '{') && !take_labels(line, sample))
        return false;
    return take_number(line, sample);
}

size_t metric_read(struct str text, void (*see)(void *ctx, const struct metric_sample *sample),
                   void *ctx)
{
    struct metric_sample sample;
    struct buf plain;
    size_t passed_over = 0;

    buf_init(&plain, METRIC_READ_LINE);
    buf_room(&plain, METRIC_READ_LINE);
    for (struct str rest = text; rest.p && rest.n;) {
        struct line line = { str_cut(&rest, '\n'), &plain };
        bool is_too_long = line.rest.n > METRIC_READ_LINE;

        skip_blanks(&line);
        if (!line.rest.n || *line.rest.p == '#')
            continue;
        buf_reset(&plain);
        if (!is_too_long && read_line(&line, &sample))
            see(ctx, &sample);
        else
            passed_over++;
    }
    buf_free(&plain);
    return passed_over;
}

struct str metric_label(const struct metric_sample *sample, const char *name)
{
    for (size_t i = 0; i < sample->n_labels; i++)
        if (str_eq(sample->label[i].name, str_of(name)))
            return sample->label[i].value;
    return STR("");
}
