/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of metric/split: families of an exposition. */
#include "test.h"

#include "metric/split.h"
#include "metric/writer.h"

static const struct family families[] = {
    { "plain", METRIC_GAUGE, "A gauge.", { "name" } },
    { "seen_total", METRIC_COUNTER, "A counter.", { NULL } },
    { "seen", METRIC_GAUGE, "Named as the counter is in OpenMetrics, but for its end.", { NULL } },
    { "wait_seconds", METRIC_HISTOGRAM, "A histogram.", { "name" } },
    { "silent", METRIC_GAUGE, "One without samples.", { NULL } },
};

enum { FAMILIES = COUNT(families) };

/* What one cluster says; bit i of `which`: it has samples of family i. */
static struct buf render(enum metric_format format, const char *const_labels, unsigned which)
{
    static const double bounds[] = { 0.5, 1 };
    static const uint64_t buckets[] = { 1, 2, 3 };
    const struct histogram_view histogram = { bounds, COUNT(bounds), buckets, 7 };
    const struct str names[] = { STR_INIT("a"), STR_INIT("b\n# HELP plain forged\nplain 7") };
    struct metric_writer writer;
    struct buf out;

    buf_init(&out, 1 << 20);
    metric_writer_init(&writer, &out, format, str_of(const_labels), families, FAMILIES);
    for (size_t i = 0; i < FAMILIES; i++) {
        metric_begin(&writer, i);
        for (size_t k = 0; which >> i & 1 && k < (families[i].labels[0] ? COUNT(names) : 1); k++) {
            if (families[i].type == METRIC_HISTOGRAM)
                metric_histogram(&writer, &names[k], histogram);
            else
                metric_u64(&writer, &names[k], k + 1);
        }
    }
    metric_writer_free(&writer);
    return out;
}

TEST(what_was_taken_apart_can_be_joined_again)
{
    for (int format = 0; format < METRIC_FORMATS; format++) {
        struct buf text = render(format, "", 0xf), joined;
        struct split *split = split_new(families, FAMILIES, STR(""), buf_str(&text));

        buf_init(&joined, 1 << 20);
        split_join(split, &joined);
        assert_str(buf_str(&joined), text.p);
        assert_null(split->family[4].header);
        split_unref(split);
        buf_free(&joined);
        buf_free(&text);
    }
}

static struct buf weave(struct split *const *splits, size_t n)
{
    struct segment *segments[FAMILIES * 4];
    size_t n_segments = split_weave(splits, n, segments);
    struct buf out;

    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < n_segments; i++) {
        buf_put(&out, buf_str(&segments[i]->text));
        segment_unref(segments[i]);
    }
    return out;
}

static size_t count(struct str text, const char *needle)
{
    size_t n = 0;

    for (size_t at; (at = str_find_str(text, str_of(needle))) < text.n; n++)
        text = str_skip(text, at + 1);
    return n;
}

TEST(each_family_of_several_stands_in_one_piece_with_one_header)
{
    for (int format = 0; format < METRIC_FORMATS; format++) {
        struct buf a = render(format, "cluster=\"a\"", 0x9),
                   b = render(format, "cluster=\"b\"", 0xf);
        struct split *splits[] = { split_new(families, FAMILIES, STR(""), buf_str(&a)), NULL,
                                   split_new(families, FAMILIES, STR(""), buf_str(&b)) };
        struct buf out = weave(splits, COUNT(splits));
        struct str text = buf_str(&out);
        size_t last = 0;

        assert_int_equal(count(text, "# TYPE "), 4);
        assert_int_equal(count(text, "\nplain{cluster=\"a\""), 2);
        assert_int_equal(count(text, "\nplain{cluster=\"b\""), 2);
        assert_int_equal(count(text, "\nwait_seconds_count{"), 4);
        assert_int_equal(count(text, "\n"),
                         count(buf_str(&a), "\n") + count(buf_str(&b), "\n") - 2 * 2);
        for (size_t i = 0; i < 4; i++) {
            char header[60];
            size_t at;

            snprintf(header, sizeof(header), "# HELP %.*s ",
                     STR_ARG(metric_header_name(&families[i], format)));
            at = str_find_str(text, str_of(header));
            assert_true(at < text.n && at >= last);
            last = at;
        }
        split_unref(splits[0]);
        split_unref(splits[2]);
        buf_free(&out);
        buf_free(&a);
        buf_free(&b);
    }
}

TEST(a_prefix_is_no_other_family)
{
    static const char text[] = "# HELP beluga_plain A gauge.\n# TYPE beluga_plain gauge\n"
                               "beluga_plain{name=\"a\"} 1\n";
    struct split *split = split_new(families, FAMILIES, STR("beluga_"), str_of(text));
    struct buf joined;

    buf_init(&joined, 1000);
    split_join(split, &joined);
    assert_str(buf_str(&joined), text);
    assert_non_null(split->family[0].header);
    split_unref(split);
    buf_free(&joined);
}

TEST(nothing_is_nothing)
{
    struct split *split = split_new(families, FAMILIES, STR(""), STR(""));
    struct buf out = weave(&split, 1);

    assert_int_equal(out.n, 0);
    split_unref(split);
    buf_free(&out);
}
