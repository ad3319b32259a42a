/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "base/quote.h"

static void ordinary_text_stays_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(quote(STR("web.listen-address \"ü\" \\d")).text,
                        "web.listen-address \"ü\" \\d");
    assert_string_equal(quote((struct str){ NULL, 0 }).text, "");
}

static void what_moves_a_cursor_is_escaped(void **state)
{
    (void)state;
    assert_string_equal(quote(STR("a\nb\tc\rd\x1b[2J\x7f\0e")).text,
                        "a\\nb\\tc\\rd\\x1b[2J\\x7f\\x00e");
    assert_string_equal(quote(STR("\xc2\x9b"
                                  "31m"))
                            .text,
                        "\\xc2\\x9b31m");
}

static void bytes_that_are_not_utf8_are_escaped(void **state)
{
    (void)state;
    assert_string_equal(quote(STR("\xff\xc3")).text, "\\xff\\xc3");
}

static void long_text_is_cut_between_characters(void **state)
{
    char text[201], expected[100];

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_text_stays_as_it_is),
        cmocka_unit_test(what_moves_a_cursor_is_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_are_escaped),
        cmocka_unit_test(long_text_is_cut_between_characters),
    };

    return RUN_TESTS(tests);
}
