/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts rendered metrics between the text format and OpenMetrics. */
#include "metric/convert.h"

static const struct str help = STR_INIT("# HELP ");
static const struct str bound = STR_INIT("le=\"");

static struct str take_line(struct str *rest)
{
    struct str line = str_head(*rest, str_find(*rest, '\n') + 1);

    *rest = str_skip(*rest, line.n);
    return line;
}

static const struct family *find_family(const struct family *families, size_t n, struct str name,
                                        enum metric_format format)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(metric_header_name(&families[i], format), name))
            return &families[i];
    return NULL;
}

/* Where the bound of a bucket's line begins, or the line's end if it has none. No label value has
 * this in it: there the quote would be escaped. */
static size_t find_bound(struct str line)
{
    for (size_t i = line.n; i-- > 1;)
        if (str_starts(str_skip(line, i), bound) && (line.p[i - 1] == '{' || line.p[i - 1] == ','))
            return i + bound.n;
    return line.n;
}

/* "1" in the text format is "1.0" in OpenMetrics. */
static void put_bucket(struct str line, enum metric_format to, struct buf *out)
{
    size_t begin = find_bound(line), length = str_find(str_skip(line, begin), '"');
    struct str value = str_head(str_skip(line, begin), length);
    bool is_whole = value.n && strspn(value.p, "0123456789") >= value.n;

    buf_put(out, str_head(line, begin));
    buf_put(out,
            to == METRIC_TEXT && str_ends(value, STR(".0")) ? str_head(value, value.n - 2) : value);
    if (to == METRIC_OPENMETRICS && is_whole)
        buf_text(out, ".0");
    buf_put(out, str_skip(line, begin + length));
}

void metric_convert(const struct family *families, size_t n_families, struct str prefix,
                    struct str text, enum metric_format from, enum metric_format to,
                    struct buf *out)
{
    const struct family *family = NULL;

    while (text.n) {
        struct str line = take_line(&text);

        if (str_starts(line, help)) {
            struct str rest = str_skip(line, help.n + prefix.n);

            family = find_family(families, n_families, str_cut(&rest, ' '), from);
            take_line(&text); /* its type */
            metric_put_header(out, family, prefix, to);
        } else if (family->type == METRIC_HISTOGRAM) {
            put_bucket(line, to, out);
        } else {
            buf_put(out, line);
        }
    }
}
