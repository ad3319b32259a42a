/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of metric/reader: the parser of samples. */
#include "test.h"

#include "base/buf.h"
#include "metric/reader.h"
#include "metric/writer.h"

#include <math.h>

/* What was seen, as one text. */
static void note(void *ctx, const struct metric_sample *sample)
{
    struct buf *to = ctx;

    buf_put(to, sample->name);
    for (size_t i = 0; i < sample->n_labels; i++)
        buf_printf(to, "[%.*s=%.*s]", STR_ARG(sample->label[i].name),
                   STR_ARG(sample->label[i].value));
    buf_byte(to, ' ');
    buf_double(to, sample->value);
    buf_byte(to, ';');
}

#define assert_reads(text, expected, passed_over)                                                  \
    do {                                                                                           \
        struct buf seen_;                                                                          \
        buf_init(&seen_, 1 << 20);                                                                 \
        assert_int_equal(metric_read(STR(text), note, &seen_), passed_over);                       \
        assert_str(buf_str(&seen_), expected);                                                     \
        buf_free(&seen_);                                                                          \
    } while (0)

TEST(samples_are_read_with_their_labels)
{
    assert_reads("# HELP a Some.\n# TYPE a counter\na 1\nb{} 2\nc{x=\"1\"} 3\n"
                 "d{x=\"1\",y=\"zwei\",} 4.5e3 1700000000000\n\n",
                 "a 1;b 2;c[x=1] 3;d[x=1][y=zwei] 4500;", 0);
    assert_reads("  a\t{ x = \"1\" , y = \"2\" }  7  \n", "a[x=1][y=2] 7;", 0);
    assert_reads("without_an_end 1", "without_an_end 1;", 0);
    assert_reads("", "", 0);
}

TEST(odd_values_are_values)
{
    assert_reads("a NaN\nb +Inf\nc -Inf\nd -0.5\ne +1\n", "a NaN;b +Inf;c -Inf;d -0.5;e 1;", 0);
}

TEST(label_values_are_unescaped)
{
    assert_reads("a{x=\"1\\\\2\\\"3\\n4\",y=\"plain\",z=\"\\\\\"} 1\n",
                 "a[x=1\\2\"3\n4][y=plain][z=\\] 1;", 0);
    assert_reads("a{x=\"},# \"} 1\n", "a[x=},# ] 1;", 0);
}

TEST(what_is_no_sample_is_passed_over_and_the_rest_is_read)
{
    assert_reads("good 1\n1bad 1\nbad\nbad x\nbad 1 2 3\nbad 1 x\nbad{x} 1\nbad{x=1} 1\n"
                 "bad{x=\"1} 1\nbad{x=\"\\q\"} 1\nbad{x=\"1\" y=\"2\"} 1\nbad{:=\"1\"} 1\n"
                 "bad{x=\"1\"\nbad{x=\"\\\nbad 1e999\nbad-name 1\n{x=\"1\"} 1\ngood 2\n",
                 "good 1;good 2;", 16);
}

TEST(too_many_labels_are_passed_over)
{
    struct buf text, seen;

    buf_init(&text, 1 << 20);
    buf_init(&seen, 1 << 20);
    for (size_t n = METRIC_READ_LABELS; n <= METRIC_READ_LABELS + 1; n++) {
        buf_text(&text, "a{");
        for (size_t i = 0; i < n; i++)
            buf_printf(&text, "x%zu=\"\",", i);
        buf_text(&text, "} 1\n");
    }
    assert_int_equal(metric_read(buf_str(&text), note, &seen), 1);
    assert_true(str_ends(buf_str(&seen), STR("[x15=] 1;")));
    buf_free(&text);
    buf_free(&seen);
}

TEST(a_line_past_the_ceiling_is_passed_over)
{
    struct buf text, seen;

    buf_init(&text, 1 << 20);
    buf_init(&seen, 1 << 20);
    buf_text(&text, "a{x=\"");
    for (size_t i = 0; i < METRIC_READ_LINE; i++)
        buf_byte(&text, 'x');
    buf_text(&text, "\"} 1\nb 2\n");
    assert_int_equal(metric_read(buf_str(&text), note, &seen), 1);
    assert_str(buf_str(&seen), "b 2;");
    buf_free(&text);
    buf_free(&seen);
}

static void see_label(void *ctx, const struct metric_sample *sample)
{
    size_t *seen = ctx;

    assert_str(metric_label(sample, "node"), "c1");
    assert_int_equal(metric_label(sample, "nod").n, 0);
    assert_int_equal(metric_label(sample, "gpu").n, 0);
    (*seen)++;
}

TEST(labels_are_found_by_their_names)
{
    size_t seen = 0;

    metric_read(STR("a{job_id=\"7\",node=\"c1\"} 1\n"), see_label, &seen);
    assert_int_equal(seen, 1);
}

TEST(what_the_writer_writes_is_read)
{
    static const struct family families[] = {
        { "hostile_total", METRIC_COUNTER, "With \"quotes\" \\ and\nlines.", { "user", "name" } },
    };
    struct metric_writer writer;
    struct buf text, seen;

    buf_init(&text, 1 << 20);
    buf_init(&seen, 1 << 20);
    metric_writer_init(&writer, &text, METRIC_TEXT, STR("simulated=\"true\""), families, 1);
    metric_begin(&writer, 0);
    metric_double(&writer, METRIC_VALUES(STR("a\"b\\c\nd"), STR("<b>é</b>")), 1.25);
    metric_writer_free(&writer);
    assert_int_equal(metric_read(buf_str(&text), note, &seen), 0);
    assert_str(buf_str(&seen),
               "hostile_total[simulated=true][user=a\"b\\c\nd][name=<b>é</b>] 1.25;");
    buf_free(&text);
    buf_free(&seen);
}
