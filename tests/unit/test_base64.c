/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "base/base64.h"

static void assert_decodes(const char *in, const char *out)
{
    char bytes[100];
    size_t n;

    assert_true(base64_decode(str_of(in), bytes, sizeof(bytes), &n));
    assert_str(((struct str){ bytes, n }), out);
}

static void text_comes_back(void **state)
{
    (void)state;
    assert_decodes("", "");
    assert_decodes("YQ==", "a");
    assert_decodes("YWI=", "ab");
    assert_decodes("YWJj", "abc");
    assert_decodes("bmFtZTpwYXNzd29yZA==", "name:password");
}

static void padding_may_be_missing(void **state)
{
    (void)state;
    assert_decodes("YQ", "a");
    assert_decodes("YWI", "ab");
}

static void both_alphabets_are_read(void **state)
{
    (void)state;
    assert_decodes("+/8=", "\xfb\xff");
    assert_decodes("-_8", "\xfb\xff");
}

static void anything_else_is_refused(void **state)
{
    static const char *const wrong[] = { "a b", "YQ=a", "Y\n", "\xff", "Y.Q" };
    char bytes[100];
    size_t n;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(base64_decode(str_of(wrong[i]), bytes, sizeof(bytes), &n));
    assert_false(base64_decode(STR("YWJj"), bytes, 2, &n));
    assert_true(base64_decode(STR("YWJj"), bytes, 3, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(padding_may_be_missing),
        cmocka_unit_test(both_alphabets_are_read),
        cmocka_unit_test(anything_else_is_refused),
    };

    return RUN_TESTS(tests);
}
