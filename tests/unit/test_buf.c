/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/buf: string builders. */
#include "test.h"

#include "base/buf.h"

#include <math.h>

TEST(what_is_put_stands_there_ended_by_nul)
{
    struct buf buf;

    buf_init(&buf, 1000);
    assert_str(buf_str(&buf), "");
    buf_put(&buf, (struct str){ NULL, 0 });
    buf_text(&buf, "jobs");
    buf_byte(&buf, '=');
    buf_u64(&buf, UINT64_MAX);
    buf_byte(&buf, ' ');
    buf_i64(&buf, INT64_MIN);
    buf_byte(&buf, ' ');
    buf_i64(&buf, 42);
    buf_byte(&buf, ' ');
    buf_double(&buf, 0.1);
    buf_byte(&buf, ' ');
    buf_double(&buf, -INFINITY);
    buf_printf(&buf, " %s %03d", "and", 7);
    assert_str(buf_str(&buf), "jobs=18446744073709551615 -9223372036854775808 42 0.1 -Inf and 007");
    assert_int_equal(buf.p[buf.n], '\0');
    assert_false(buf.over);
    buf_reset(&buf);
    assert_str(buf_str(&buf), "");
    assert_int_equal(buf.p[0], '\0');
    buf_free(&buf);
    assert_null(buf.p);
}

TEST(nothing_is_written_past_the_ceiling_and_that_is_remembered)
{
    struct buf buf;

    buf_init(&buf, 5);
    buf_text(&buf, "12345");
    assert_false(buf.over);
    buf_text(&buf, "");
    assert_false(buf.over);
    buf_byte(&buf, '6');
    assert_true(buf.over);
    buf_text(&buf, "");
    assert_true(buf.over);
    assert_str(buf_str(&buf), "12345");
    buf_reset(&buf);
    buf_text(&buf, "123");
    buf_text(&buf, "456"); /* whole or not at all */
    buf_text(&buf, "4");   /* nor anything after it */
    assert_true(buf.over);
    assert_str(buf_str(&buf), "123");
    buf_reset(&buf);
    buf_printf(&buf, "%d", 123456);
    assert_true(buf.over);
    assert_str(buf_str(&buf), "");
    assert_null(buf_room(&buf, 1));
    buf_free(&buf);
}

TEST(every_ceiling_and_length_fits)
{
    char bytes[300];

    memset(bytes, 'x', sizeof(bytes));
    for (size_t max = 0; max < 300; max++) {
        for (size_t piece = 1; piece < 300; piece += 37) {
            struct buf buf;

            buf_init(&buf, max);
            while (!buf.over)
                buf_put(&buf, (struct str){ bytes, piece });
            assert_int_equal(buf.n, max / piece * piece);
            if (buf.p)
                assert_int_equal(buf.p[buf.n], '\0');
            buf_free(&buf);
        }
    }
}

TEST(the_largest_ceiling_is_no_ceiling)
{
    struct buf buf;

    buf_init(&buf, SIZE_MAX);
    for (int i = 0; i < 1000; i++)
        buf_text(&buf, "sonde");
    assert_int_equal(buf.n, 5000);
    assert_int_equal(buf.p[5000], '\0');
    buf_free(&buf);
}

TEST(room_is_filled_by_the_caller)
{
    struct buf buf;
    char *room;

    buf_init(&buf, 1000);
    buf_text(&buf, "a");
    room = buf_room(&buf, 500);
    assert_non_null(room);
    memset(room, 'b', 500);
    buf.n += 2;
    buf_end(&buf);
    assert_str(buf_str(&buf), "abb");
    assert_int_equal(buf.p[3], '\0');
    buf_free(&buf);
}

static void assert_json(struct str text, const char *expected)
{
    struct buf buf;

    buf_init(&buf, 1000);
    buf_json(&buf, text);
    assert_str(buf_str(&buf), expected);
    buf_free(&buf);
}

TEST(json_is_escaped_whatever_the_bytes)
{
    assert_json(STR(""), "\"\"");
    assert_json(STR("plain \xc3\xa9 \xf0\x9f\x98\x80"), "\"plain \xc3\xa9 \xf0\x9f\x98\x80\"");
    assert_json(STR("\"\\/"), "\"\\\"\\\\/\"");
    assert_json(STR("\0\n\t\x1f\x7f"), "\"\\u0000\\u000a\\u0009\\u001f\\u007f\"");
    assert_json(STR("\xff\xc3("), "\"\xef\xbf\xbd\xef\xbf\xbd(\"");
    assert_json(STR("cut \xe2\x82"), "\"cut \xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(html_is_escaped_for_text_and_attributes)
{
    struct buf buf;

    buf_init(&buf, 1000);
    buf_html(&buf, STR("<a href=\"x\" id='y'>&\xc3\xa9\xff\0</a>"));
    assert_str(buf_str(&buf), "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;\xc3\xa9\xef\xbf\xbd"
                              "\xef\xbf\xbd&lt;/a&gt;");
    buf_free(&buf);
}

TEST(a_url_gets_nothing_that_means_something_in_it)
{
    struct buf buf;

    buf_init(&buf, 1000);
    buf_url(&buf, STR("aZ09-._~ +&=%/?#\n\0\xc3\xbf"));
    assert_str(buf_str(&buf), "aZ09-._~%20%2B%26%3D%25%2F%3F%23%0A%00%C3%BF");
    buf_free(&buf);
}
