/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of metric/convert: from one exposition format to another. */
#include "test.h"

#include "metric/convert.h"

static const struct family families[] = {
    { "plain", METRIC_GAUGE, "A \"gauge\" with \\ in its help.", { "name" } },
    { "seen_total", METRIC_COUNTER, "A counter.", { NULL } },
    { "met", METRIC_COUNTER, "A counter that OpenMetrics cannot call one.", { "name" } },
    { "wait_seconds", METRIC_HISTOGRAM, "A histogram.", { "name" } },
    { "bare_seconds", METRIC_HISTOGRAM, "A histogram without labels.", { NULL } },
    { "silent", METRIC_GAUGE, "One without samples.", { NULL } },
};

static const char *const names[] = {
    "",         "plain",
    "le=\"1\"", ",le=\"1.0\"} 5\n# HELP plain forged\n# TYPE plain counter\nplain 7",
    "\\",       "\xff\xfe",
    "1.0",
};

static struct buf render(enum metric_format format, struct str const_labels, struct str prefix)
{
    static const double bounds[] = { 0.5, 1, 2.5, 604800 };
    static const uint64_t buckets[] = { 1, 2, 3, 4, 5 };
    const struct histogram_view histogram = { bounds, COUNT(bounds), buckets, 1e21 };
    struct metric_writer writer;
    struct buf out;

    buf_init(&out, 1 << 20);
    metric_writer_init(&writer, &out, format, const_labels, families, COUNT(families));
    writer.prefix = prefix;
    for (size_t i = 0; i < COUNT(families); i++) {
        size_t n = families[i].labels[0] ? COUNT(names) : i + 1 < COUNT(families);

        metric_begin(&writer, i);
        for (size_t k = 0; k < n; k++) {
            struct str name = str_of(names[k]);

            if (families[i].type == METRIC_HISTOGRAM)
                metric_histogram(&writer, &name, histogram);
            else
                metric_double(&writer, &name, 1.5 * (double)k);
        }
    }
    metric_writer_free(&writer);
    return out;
}

TEST(what_is_converted_is_what_would_have_been_written)
{
    static const struct {
        struct str const_labels, prefix;
    } cases[] = {
        { STR_INIT(""), STR_INIT("") },
        { STR_INIT("simulated=\"true\""), STR_INIT("") },
        { STR_INIT(""), STR_INIT("mila_") },
        { STR_INIT(""), STR_INIT("plain") }, /* as a name begins */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf text = render(METRIC_TEXT, cases[i].const_labels, cases[i].prefix);
        struct buf open = render(METRIC_OPENMETRICS, cases[i].const_labels, cases[i].prefix);
        struct buf out;

        assert_false(str_eq(buf_str(&text), buf_str(&open)));
        buf_init(&out, 1 << 20);
        metric_convert(families, COUNT(families), cases[i].prefix, buf_str(&text), METRIC_TEXT,
                       METRIC_OPENMETRICS, &out);
        assert_str(buf_str(&out), open.p);
        buf_reset(&out);
        metric_convert(families, COUNT(families), cases[i].prefix, buf_str(&open),
                       METRIC_OPENMETRICS, METRIC_TEXT, &out);
        assert_str(buf_str(&out), text.p);
        buf_free(&out);
        buf_free(&text);
        buf_free(&open);
    }
}

TEST(nothing_is_converted_to_nothing)
{
    struct buf out;

    buf_init(&out, 100);
    metric_convert(families, COUNT(families), STR("mila_"), STR(""), METRIC_TEXT,
                   METRIC_OPENMETRICS, &out);
    assert_int_equal(out.n, 0);
    buf_free(&out);
}

TEST(a_prefix_stands_before_every_name)
{
    struct buf text = render(METRIC_TEXT, STR(""), STR("mila_"));
    struct buf open = render(METRIC_OPENMETRICS, STR(""), STR("mila_"));

    assert_contains(text.p, "\n# TYPE mila_plain gauge\nmila_plain{name=\"\"} 0\n");
    assert_contains(text.p, "# HELP mila_seen_total A counter.\n# TYPE mila_seen_total counter\n"
                            "mila_seen_total 0\n");
    assert_contains(open.p, "# TYPE mila_seen counter\nmila_seen_total 0\n");
    assert_contains(text.p, "\nmila_wait_seconds_bucket{name=\"\",le=\"0.5\"} 1\n");
    buf_free(&text);
    buf_free(&open);
}
