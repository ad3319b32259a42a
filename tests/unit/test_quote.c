/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/quote: text from outside in a sentence. */
#include "test.h"

#include "base/quote.h"

TEST(ordinary_text_stays_as_it_is)
{
    assert_string_equal(quote(STR("web.listen-address \"ü\" \\d")).text,
                        "web.listen-address \"ü\" \\d");
    assert_string_equal(quote((struct str){ NULL, 0 }).text, "");
}

TEST(what_moves_a_cursor_is_escaped)
{
    assert_string_equal(quote(STR("a\nb\tc\rd\x1b[2J\x7f\0e")).text,
                        "a\\nb\\tc\\rd\\x1b[2J\\x7f\\x00e");
    assert_string_equal(quote(STR("\xc2\x9b"
                                  "31m"))
                            .text,
                        "\\xc2\\x9b31m");
}

TEST(bytes_that_are_not_utf8_are_escaped)
{
    assert_string_equal(quote(STR("\xff\xc3")).text, "\\xff\\xc3");
}

TEST(long_text_is_cut_between_characters)
{
    char text[201], expected[100];

    memset(text, 'x', 200);
    text[200] = '\0';
    snprintf(expected, sizeof(expected), "%.80s…", text);
    assert_string_equal(quote(str_of(text)).text, expected);
    text[80] = '\0';
    assert_string_equal(quote(str_of(text)).text, text);
    memcpy(text + 79, "ü and more", sizeof("ü and more"));
    snprintf(expected, sizeof(expected), "%.79s…", text);
    assert_string_equal(quote(str_of(text)).text, expected);
}
