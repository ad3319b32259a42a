/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/str: borrowed strings. */
#include "test.h"

#include "base/arena.h"

TEST(strings_are_compared_by_their_bytes)
{
    const struct str with_nul = STR("a\0b"), nothing = { NULL, 0 };

    assert_int_equal(with_nul.n, 3);
    assert_true(str_eq(with_nul, STR("a\0b")));
    assert_false(str_eq(with_nul, STR("a\0c")));
    assert_false(str_eq(with_nul, STR("a")));
    assert_true(str_eq(nothing, STR("")));
    assert_int_equal(str_of(NULL).n, 0);
}

TEST(only_ascii_letters_have_case)
{
    assert_true(str_eq_nocase(STR("Not_Responding"), STR("NOT_RESPONDING")));
    assert_false(str_eq_nocase(STR("a"), STR("ab")));
    assert_false(str_eq_nocase(STR("\xc4"), STR("\xe4"))); /* Latin-1 letters */
    assert_false(str_eq_nocase(STR("@"), STR("`")));       /* beside the letters in ASCII */
    assert_false(str_eq_nocase(STR("["), STR("{")));
}

TEST(heads_tails_and_ends_stay_inside)
{
    const struct str s = STR("squeue");

    assert_str(str_head(s, 2), "sq");
    assert_str(str_head(s, 100), "squeue");
    assert_str(str_skip(s, 2), "ueue");
    assert_str(str_skip(s, 100), "");
    assert_ptr_equal(str_skip(s, 100).p, s.p + 6);
    assert_null(str_skip((struct str){ 0 }, 0).p); /* clang's UBSan stops at NULL + 0 */
    assert_null(str_skip((struct str){ 0 }, 1).p);
    assert_str(str_span(s.p + 1, s.p + 3), "qu");
    assert_true(str_starts(s, STR("squ")));
    assert_true(str_starts(s, STR("")));
    assert_false(str_starts(s, STR("squeues")));
    assert_true(str_ends(s, STR("ue")));
    assert_true(str_ends(s, s));
    assert_false(str_ends(s, STR("ssqueue")));
    assert_false(str_ends(STR(""), STR("e")));
}

TEST(white_space_is_trimmed_at_both_ends_only)
{
    assert_str(str_trim(STR(" \t\r\n a b \v\f\n")), "a b");
    assert_str(str_trim(STR("   ")), "");
    assert_str(str_trim(STR("")), "");
    assert_str(str_trim(STR("\xc2\xa0")), "\xc2\xa0"); /* a no-break space is a character */
}

TEST(cutting_walks_over_every_part)
{
    static const char *const parts[] = { "a", "", "bc", "" };
    struct str rest = STR("a,,bc,");
    size_t n = 0;

    while (rest.p) {
        assert_in_range(n, 0, 3);
        assert_str(str_cut(&rest, ','), parts[n++]);
    }
    assert_int_equal(n, 4);
    rest = STR("");
    assert_str(str_cut(&rest, ','), "");
    assert_null(rest.p);
}

TEST(what_is_absent_is_found_at_the_end)
{
    assert_int_equal(str_find(STR("a=b=c"), '='), 1);
    assert_int_equal(str_find(STR("abc"), '='), 3);
    assert_int_equal(str_find((struct str){ NULL, 0 }, '='), 0);
    assert_int_equal(str_find_str(STR("abcabd"), STR("abd")), 3);
    assert_int_equal(str_find_str(STR("abc"), STR("abcd")), 3);
    assert_int_equal(str_find_str(STR("a\0bc"), STR("\0b")), 1);
    assert_int_equal(str_find_str((struct str){ NULL, 0 }, STR("x")), 0);
}

TEST(utf8_is_what_the_unicode_standard_allows)
{
    static const struct {
        struct str bytes;
        size_t length;
    } rows[] = {
        { STR_INIT("a"), 1 },
        { STR_INIT("\0"), 1 },
        { STR_INIT("\x7f"), 1 },
        { STR_INIT("\xc3\xa9"), 2 },
        { STR_INIT("\xe2\x82\xac"), 3 },
        { STR_INIT("\xf0\x9f\x98\x80"), 4 },
        { STR_INIT("\xf4\x8f\xbf\xbf"), 4 }, /* U+10FFFF */
        { STR_INIT("\xed\x9f\xbf"), 3 },     /* U+D7FF, before the surrogates */
        { STR_INIT("\xee\x80\x80"), 3 },     /* U+E000, after them */
        { STR_INIT(""), 0 },
        { STR_INIT("\x80"), 0 },     /* begins in the middle */
        { STR_INIT("\xc0\xaf"), 0 }, /* overlong */
        { STR_INIT("\xc1\xbf"), 0 },
        { STR_INIT("\xe0\x9f\xbf"), 0 },
        { STR_INIT("\xf0\x8f\xbf\xbf"), 0 },
        { STR_INIT("\xed\xa0\x80"), 0 },     /* a surrogate */
        { STR_INIT("\xf4\x90\x80\x80"), 0 }, /* over U+10FFFF */
        { STR_INIT("\xf5\x80\x80\x80"), 0 },
        { STR_INIT("\xff"), 0 },
        { STR_INIT("\xc3"), 0 }, /* cut short */
        { STR_INIT("\xe2\x82"), 0 },
        { STR_INIT("\xf0\x9f\x98"), 0 },
        { STR_INIT("\xc3("), 0 },
        { STR_INIT("\xe2\x82("), 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_utf8_len(rows[i].bytes) != rows[i].length)
            fail_msg("row %zu: %zu", i, str_utf8_len(rows[i].bytes));
}

TEST(control_characters_are_not_printable)
{
    assert_int_equal(str_printable_len(STR("a\n")), 1);
    assert_int_equal(str_printable_len(STR("\xc3\xbc")), 2);
    assert_int_equal(str_printable_len(STR("\xc2\xa0")), 2);
    assert_int_equal(str_printable_len(STR("\xc2\x9f")), 0);
    assert_int_equal(str_printable_len(STR("\x1f")), 0);
    assert_int_equal(str_printable_len(STR("\0")), 0);
    assert_int_equal(str_printable_len(STR("\x7f")), 0);
    assert_int_equal(str_printable_len(STR("\xff")), 0);
    assert_int_equal(str_printable_len(STR("")), 0);
}

TEST(what_is_copied_is_printable_and_whole)
{
    static const char *const expected[] = { "", "a", "a?", "a?", "a?\xc3\xbc", "a?\xc3\xbc?" };
    char to[8];

    for (size_t room = 0; room < sizeof(to); room++) {
        size_t last = room < COUNT(expected) ? room : COUNT(expected) - 1;
        size_t n = str_copy_printable(to, room, STR("a\n\xc3\xbc\xff"));

        assert_str(((struct str){ to, n }), expected[last]);
    }
}

TEST(the_distance_counts_edits_and_ignores_case)
{
    char longer[200];

    assert_int_equal(str_distance(STR("listen"), STR("listen")), 0);
    assert_int_equal(str_distance(STR("LISTEN"), STR("listen")), 0);
    assert_int_equal(str_distance(STR("lsten"), STR("listen")), 1);
    assert_int_equal(str_distance(STR("listenn"), STR("listen")), 1);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting")), 3);
    assert_int_equal(str_distance(STR(""), STR("abc")), 3);
    assert_int_equal(str_distance(STR("abc"), STR("")), 3);
    memset(longer, 'x', sizeof(longer));
    assert_int_equal(str_distance((struct str){ longer, sizeof(longer) }, STR("x")), 200);
}

TEST(heap_strings_are_copies_ended_by_nul)
{
    char *copy = heap_str(str_head(STR("squeue"), 2));
    int *numbers = heap_resize(NULL, 2, sizeof(int));

    assert_string_equal(copy, "sq");
    free(copy);
    numbers[0] = 1;
    numbers[1] = 2;
    numbers = heap_resize(numbers, 1000, sizeof(int));
    assert_int_equal(numbers[1], 2);
    free(numbers);
}
