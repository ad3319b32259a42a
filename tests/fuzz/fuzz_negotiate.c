/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Headers that say what an asker would like (RFC 9110, section 12.5): nothing is chosen that was
 * not named, members that say nothing change nothing, and patience stays within an hour. */
#include "base/buf.h"
#include "base/clock.h"
#include "http/negotiate.h"

#include "fuzz.h"

static bool names(struct str header, struct str word)
{
    for (; header.n >= word.n; header = str_skip(header, 1))
        if (str_eq_nocase(str_head(header, word.n), word))
            return true;
    return false;
}

static struct str join(struct buf *to, struct str before, struct str after)
{
    buf_reset(to);
    buf_put(to, before);
    buf_put(to, after);
    return buf_str(to);
}

static struct str turn_around(struct buf *to, struct str list)
{
    buf_reset(to);
    for (size_t end = list.n, i = list.n + 1; i--;) {
        if (i && list.p[i - 1] != ',')
            continue;
        if (to->n)
            buf_byte(to, ',');
        buf_put(to, str_span(list.p + i, list.p + end));
        end = i ? i - 1 : 0;
    }
    return buf_str(to);
}

static void check_format(struct str accept, struct buf *other)
{
    enum metric_format format = negotiate_format(accept);

    FUZZ_CHECK(format == METRIC_TEXT || format == METRIC_OPENMETRICS);
    FUZZ_CHECK(format == METRIC_TEXT || names(accept, STR("application/openmetrics-text")));
    FUZZ_CHECK(negotiate_format(join(other, STR(" ,image/png;q=0.9, "), accept)) == format);
    FUZZ_CHECK(negotiate_format(turn_around(other, accept)) == format);
}

static void check_gzip(struct str accept_encoding, struct buf *other)
{
    bool gzip = negotiate_gzip(accept_encoding);

    FUZZ_CHECK(!gzip || names(accept_encoding, STR("gzip")));
    FUZZ_CHECK(negotiate_gzip(join(other, STR("br;q=0.5,, "), accept_encoding)) == gzip);
    FUZZ_CHECK(negotiate_gzip(join(other, STR("GZip ,"), accept_encoding)));
    FUZZ_CHECK(!negotiate_gzip(join(other, STR("gzip; q=0.0,"), accept_encoding)));
}

static void check_patience(struct str timeout)
{
    const int64_t absent = -1, other_absent = INT64_MAX;
    int64_t patience_ns = negotiate_patience_ns(timeout, absent);

    if (patience_ns == absent) {
        FUZZ_CHECK(negotiate_patience_ns(timeout, other_absent) == other_absent);
        return;
    }
    FUZZ_CHECK(patience_ns >= 0 && patience_ns < 3600 * NS_PER_SEC);
    FUZZ_CHECK(negotiate_patience_ns(timeout, other_absent) == patience_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str header = { (const char *)data, size };
    struct buf other;

    buf_init(&other, size + 100);
    check_format(header, &other);
    check_gzip(header, &other);
    check_patience(header);
    buf_free(&other);
    return 0;
}
