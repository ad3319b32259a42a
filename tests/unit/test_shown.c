/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/shown: text on a terminal. */
#include "base/shown.h"

#include "test.h"

#include <stdlib.h>

static void assert_cut(const char *text, size_t room, const char *expected, size_t width)
{
    struct buf shown;

    buf_init(&shown, 4096);
    assert_int_equal(shown_put_cut(&shown, str_of(text), room), width);
    assert_str(buf_str(&shown), expected);
    buf_free(&shown);
}

TEST(what_is_too_wide_ends_in_an_ellipsis)
{
    assert_cut("", 0, "", 0);
    assert_cut("", 5, "", 0);
    assert_cut("abcde", 5, "abcde", 5);
    assert_cut("abcdef", 5, "abcd…", 5);
    assert_cut("abc", 1, "…", 1);
    assert_cut("abc", 0, "", 0);
    assert_cut("日本語", 6, "日本語", 6);
    assert_cut("日本語", 5, "日本…", 5);
    assert_cut("日本語", 4, "日…", 3);
    assert_cut("🚀🚀", 4, "🚀🚀", 4);
    assert_cut("abc", SIZE_MAX, "abc", 3);
}

TEST(what_cannot_be_shown_is_a_question_mark)
{
    assert_cut("\033[1m\r\n\x7f", 20, "?[1m???", 7);
    assert_cut("\xff\xc2\x9b\xe2\x80\xae", 20, "???", 3);
    /* soft hyphen, filler of Hangul, anchor of an annotation: nothing is seen of them */
    assert_cut("a\xc2\xad\xe3\x85\xa4\xef\xbf\xb9", 20, "a???", 4);
}

TEST(accents_without_end_are_cut)
{
    static char text[3001] = "e";
    struct buf shown;

    for (size_t i = 1; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xcc\x81", 2);
    buf_init(&shown, 4096);
    shown_put_cut(&shown, str_of(text), 10);
    assert_true(shown.n < 10 * 16 + 8);
    buf_free(&shown);
}
