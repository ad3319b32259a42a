/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of metric/writer: the exposition formats. */
#include "test.h"

#include "metric/writer.h"

#include <math.h>

enum { PLAIN, LABELLED, COUNTER, LEGACY, HISTOGRAM, UNTYPED };

static const struct family families[] = {
    [PLAIN] = { "plain", METRIC_GAUGE, "A gauge.", { NULL } },
    [LABELLED] = { "labelled", METRIC_GAUGE, "Back\\slash, \"quote\" and\nnewline.", { "a", "b" } },
    [COUNTER] = { "seen_total", METRIC_COUNTER, "A counter.", { NULL } },
    [LEGACY] = { "job_scrape_errors", METRIC_COUNTER, "Without _total.", { NULL } },
    [HISTOGRAM] = { "took_seconds", METRIC_HISTOGRAM, "A histogram.", { "a" } },
    [UNTYPED] = { "CPUTime", METRIC_UNTYPED, "Of no type.", { NULL } },
};

static struct buf out;
static struct metric_writer writer;

static void set_up(enum metric_format format, struct str const_labels)
{
    buf_init(&out, 1 << 20);
    metric_writer_init(&writer, &out, format, const_labels, families, COUNT(families));
}

static void text_format(void)
{
    set_up(METRIC_TEXT, STR(""));
}

static void openmetrics(void)
{
    set_up(METRIC_OPENMETRICS, STR(""));
}

static void simulated(void)
{
    set_up(METRIC_TEXT, STR("simulated=\"true\""));
}

static void tear_down(void)
{
    metric_writer_free(&writer);
    buf_free(&out);
}

FIXTURE(text_format, tear_down)

TEST(a_family_has_its_header_once_and_only_with_samples)
{
    metric_begin(&writer, COUNTER);
    metric_begin(&writer, PLAIN);
    metric_u64(&writer, NULL, 7);
    assert_str(buf_str(&out), "# HELP plain A gauge.\n# TYPE plain gauge\nplain 7\n");
}

TEST(label_values_are_escaped_and_help_too)
{
    metric_begin(&writer, LABELLED);
    metric_u64(&writer, METRIC_VALUES(STR("q\"b\\n\nend"), STR("long enough for words \"\n")), 1);
    assert_str(buf_str(&out),
               "# HELP labelled Back\\\\slash, \"quote\" and\\nnewline.\n"
               "# TYPE labelled gauge\n"
               "labelled{a=\"q\\\"b\\\\n\\nend\",b=\"long enough for words \\\"\\n\"} 1\n");
}

TEST(invalid_utf8_becomes_the_replacement_character)
{
    metric_begin(&writer, LABELLED);
    metric_u64(&writer, METRIC_VALUES(STR("\xff\xfe"), STR("12345678\xc3\xa9\xc3")), 1);
    assert_contains(out.p, "a=\"\xef\xbf\xbd\xef\xbf\xbd\",b=\"12345678\xc3\xa9\xef\xbf\xbd\"");
}

TEST(every_byte_at_every_place_of_a_word_is_escaped_right)
{
    for (int byte = 1; byte < 128; byte++) {
        for (size_t place = 0; place < 16; place++) {
            char value[17] = "abcdefghijklmnop", expected[64];
            const char *shown = byte == '"'    ? "\\\""
                                : byte == '\\' ? "\\\\"
                                : byte == '\n' ? "\\n"
                                               : (char[]){ (char)byte, 0 };

            value[place] = (char)byte;
            snprintf(expected, sizeof(expected), "a=\"%.*s%s%s\"", (int)place, value, shown,
                     value + place + 1);
            text_format();
            metric_begin(&writer, LABELLED);
            metric_u64(&writer, METRIC_VALUES(str_of(value), STR("")), 1);
            assert_contains(out.p, expected);
            tear_down();
        }
    }
    text_format();
}

TEST(a_sample_that_was_written_is_left_out)
{
    metric_begin(&writer, LABELLED);
    metric_u64(&writer, METRIC_VALUES(STR("x"), STR("y")), 1);
    metric_u64(&writer, METRIC_VALUES(STR("x"), STR("y")), 2);
    metric_u64(&writer, METRIC_VALUES(STR("y"), STR("x")), 3);
    metric_begin(&writer, PLAIN);
    metric_u64(&writer, NULL, 4);
    metric_u64(&writer, NULL, 5);
    assert_int_equal(writer.samples, 3);
    assert_int_equal(writer.duplicates, 2);
    assert_null(strstr(out.p, "} 2\n"));
    assert_null(strstr(out.p, "plain 5\n"));
}

TEST(a_family_cannot_be_begun_again)
{
    metric_begin(&writer, PLAIN);
    metric_u64(&writer, NULL, 4);
    metric_begin(&writer, COUNTER);
    metric_u64(&writer, NULL, 1);
    metric_begin(&writer, PLAIN);
    metric_u64(&writer, NULL, 5);
    metric_double(&writer, NULL, 6.5);
    assert_int_equal(writer.samples, 2);
    assert_int_equal(writer.duplicates, 2);
}

TEST(many_different_samples_are_all_kept)
{
    metric_begin(&writer, LABELLED);
    for (int i = 0; i < 20000; i++) {
        char value[16];

        snprintf(value, sizeof(value), "%d", i);
        metric_u64(&writer, METRIC_VALUES(str_of(value), STR("")), 1);
    }
    assert_int_equal(writer.samples, 20000);
    assert_int_equal(writer.duplicates, 0);
    assert_false(out.over);
}

TEST(values_that_come_out_alike_are_one_sample_however_many_there_are)
{
    char long_value[METRIC_LABEL_BYTES + 2];

    out.max = 8 << 20;
    memset(long_value, 'x', sizeof(long_value));
    metric_begin(&writer, LABELLED);
    for (int i = 0; i < METRIC_CHECKED + 10; i++) {
        char value[16];

        snprintf(value, sizeof(value), "%d", i);
        metric_u64(&writer, METRIC_VALUES(str_of(value), STR("")), 1);
    }
    assert_int_equal(writer.duplicates, 0);
    metric_u64(&writer, METRIC_VALUES(STR("\xff"), STR("")), 1);
    metric_u64(&writer, METRIC_VALUES(STR("\xfe"), STR("")), 2);
    metric_u64(&writer, METRIC_VALUES(STR("\xef\xbf\xbd"), STR("")), 3);
    assert_int_equal(writer.duplicates, 2);
    for (size_t length = METRIC_LABEL_BYTES; length <= sizeof(long_value); length++)
        metric_u64(&writer, METRIC_VALUES(((struct str){ long_value, length }), STR("")), 4);
    assert_int_equal(writer.duplicates, 4);
    assert_int_equal(writer.samples, METRIC_CHECKED + 12);
}

TEST(a_long_label_value_is_cut_at_a_character)
{
    char value[3000];

    memset(value, 'x', sizeof(value));
    memcpy(value + METRIC_LABEL_BYTES - 1, "\xe2\x82\xac", 3);
    metric_begin(&writer, LABELLED);
    metric_u64(&writer, METRIC_VALUES(((struct str){ value, sizeof(value) }), STR("")), 1);
    assert_contains(out.p, "x\",b=");
    assert_null(strstr(out.p, "\xef\xbf\xbd"));
    assert_true(out.n < METRIC_LABEL_BYTES + 200);
}

TEST(special_values_are_spelled_as_prometheus_reads_them)
{
    const double values[] = { NAN, INFINITY, -INFINITY, 0.1, -2.5 };

    metric_begin(&writer, LABELLED);
    for (size_t i = 0; i < 5; i++)
        metric_double(&writer, METRIC_VALUES(((struct str){ "12345" + i, 1 }), STR("")), values[i]);
    assert_contains(out.p, "{a=\"1\",b=\"\"} NaN\n");
    assert_contains(out.p, "{a=\"2\",b=\"\"} +Inf\n");
    assert_contains(out.p, "{a=\"3\",b=\"\"} -Inf\n");
    assert_contains(out.p, "{a=\"4\",b=\"\"} 0.1\n");
    assert_contains(out.p, "{a=\"5\",b=\"\"} -2.5\n");
}

TEST(constant_labels_stand_on_every_sample, .set_up = simulated)
{
    struct histogram histogram = { 0 };

    metric_begin(&writer, PLAIN);
    metric_u64(&writer, NULL, 1);
    metric_begin(&writer, LABELLED);
    metric_u64(&writer, METRIC_VALUES(STR("x"), STR("y")), 2);
    metric_begin(&writer, HISTOGRAM);
    metric_histogram(&writer, METRIC_VALUES(STR("x")), histogram_view(&histogram));
    assert_contains(out.p, "plain{simulated=\"true\"} 1\n");
    assert_contains(out.p, "labelled{simulated=\"true\",a=\"x\",b=\"y\"} 2\n");
    assert_contains(out.p, "took_seconds_bucket{simulated=\"true\",a=\"x\",le=\"+Inf\"} 0\n");
    assert_contains(out.p, "took_seconds_sum{simulated=\"true\",a=\"x\"} 0\n");
}

TEST(openmetrics_names_counters_without_their_suffix, .set_up = openmetrics)
{
    metric_begin(&writer, COUNTER);
    metric_u64(&writer, NULL, 3);
    metric_begin(&writer, LEGACY);
    metric_u64(&writer, NULL, 4);
    assert_str(buf_str(&out), "# HELP seen A counter.\n# TYPE seen counter\nseen_total 3\n"
                              "# HELP job_scrape_errors Without _total.\n"
                              "# TYPE job_scrape_errors unknown\njob_scrape_errors 4\n");
    assert_str(metric_eof(METRIC_OPENMETRICS), "# EOF\n");
    assert_str(metric_eof(METRIC_TEXT), "");
}

TEST(what_has_no_type_is_untyped_or_unknown)
{
    metric_begin(&writer, UNTYPED);
    metric_u64(&writer, NULL, 4);
    assert_contains(out.p, "# TYPE CPUTime untyped\nCPUTime 4\n");
    tear_down();
    openmetrics();
    metric_begin(&writer, UNTYPED);
    metric_u64(&writer, NULL, 4);
    assert_contains(out.p, "# TYPE CPUTime unknown\nCPUTime 4\n");
}

TEST(a_histogram_is_cumulative_and_its_bounds_canonical, .set_up = openmetrics)
{
    struct histogram histogram = { 0 };

    histogram_add(&histogram, 0.001);
    histogram_add(&histogram, 0.7);
    histogram_add(&histogram, 1000);
    metric_begin(&writer, HISTOGRAM);
    metric_histogram(&writer, METRIC_VALUES(STR("x")), histogram_view(&histogram));
    assert_contains(out.p, "took_seconds_bucket{a=\"x\",le=\"0.001\"} 1\n");
    assert_contains(out.p, "took_seconds_bucket{a=\"x\",le=\"0.5\"} 1\n");
    assert_contains(out.p, "took_seconds_bucket{a=\"x\",le=\"1.0\"} 2\n");
    assert_contains(out.p, "took_seconds_bucket{a=\"x\",le=\"60.0\"} 2\n");
    assert_contains(out.p, "took_seconds_bucket{a=\"x\",le=\"+Inf\"} 3\n");
    assert_contains(out.p, "took_seconds_sum{a=\"x\"} 1000.701\n");
    assert_contains(out.p, "took_seconds_count{a=\"x\"} 3\n");
}

TEST(past_the_ceiling_nothing_is_half_written)
{
    size_t whole;

    out.max = 200;
    metric_begin(&writer, LABELLED);
    for (int i = 0; i < 100; i++)
        metric_u64(&writer,
                   METRIC_VALUES(((struct str){ (char[]){ (char)('!' + i % 60) }, 1 }), STR("")),
                   1);
    assert_true(out.over);
    whole = out.n;
    assert_true(whole <= 200);
    assert_int_equal(out.p[whole - 1], '\n');
}

TEST(a_table_has_as_many_families_as_a_set_has_bits)
{
    struct family many[METRIC_FAMILIES_MAX];

    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = families[PLAIN];
    many[COUNT(many) - 1].name = "last";
    many[COUNT(many) - 2].name = "excluded";
    metric_writer_free(&writer);
    metric_writer_init(&writer, &out, METRIC_TEXT, STR(""), many, COUNT(many));
    writer.excluded = FAMILY_BIT(COUNT(many) - 2);
    for (size_t i = COUNT(many) - 2; i < COUNT(many); i++) {
        metric_begin(&writer, i);
        metric_u64(&writer, NULL, 7);
    }
    assert_str(buf_str(&out), "# HELP last A gauge.\n# TYPE last gauge\nlast 7\n");
}
