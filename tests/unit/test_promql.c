/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/promql: quoted text in PromQL. */
#include "test.h"

#include "source/promql.h"

static void assert_written(struct buf *written, const char *expected)
{
    assert_str(buf_str(written), expected);
    buf_free(written);
}

TEST(a_string_cannot_end_itself)
{
    static const struct {
        struct str text;
        const char *expected;
    } cases[] = {
        { STR_INIT("n1"), "\"n1\"" },
        { STR_INIT(""), "\"\"" },
        { STR_INIT("a\"} or up{b=\""), "\"a\\\"} or up{b=\\\"\"" },
        { STR_INIT("a\\"), "\"a\\\\\"" },
        { STR_INIT("a\nb\0c\x7f"), "\"a\\x0ab\\x00c\\x7f\"" },
        { STR_INIT("\xc3\xa9\xff"), "\"\xc3\xa9\\xff\"" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf written;

        buf_init(&written, 1000);
        promql_string(&written, cases[i].text);
        assert_written(&written, cases[i].expected);
    }
}

TEST(a_pattern_matches_texts_to_the_letter)
{
    const struct str texts[] = { STR("n1"), STR("a.b*"), STR("x|y\""), STR("\\") };
    const struct str nodes[] = { STR("gpu.1"), STR("gpu.10"), STR("gpu.\xc3\xa9"),
                                 STR("gpu.\xc3\xa8") };
    struct buf written;

    buf_init(&written, 1000);
    promql_one_of(&written, texts, COUNT(texts));
    assert_written(&written, "\"(n1|a\\\\.b\\\\*|x\\\\|y\\\"|\\\\\\\\)\"");
    buf_init(&written, 1000);
    promql_one_of(&written, texts + 1, 1);
    assert_written(&written, "\"a\\\\.b\\\\*\"");
    buf_init(&written, 1000);
    promql_one_of(&written, nodes, COUNT(nodes));
    assert_written(&written, "\"gpu\\\\.(1|10|\xc3\xa9|\xc3\xa8)\"");
    buf_init(&written, 1000);
    promql_one_of(&written, nodes + 2, 2);
    assert_written(&written, "\"gpu\\\\.(\xc3\xa9|\xc3\xa8)\"");
    buf_init(&written, 1000);
    promql_beginning(&written, nodes, COUNT(nodes));
    assert_written(&written, "\"gpu\\\\..*\"");
    buf_init(&written, 5);
    promql_one_of(&written, texts, COUNT(texts));
    assert_true(written.over);
    buf_free(&written);
}

TEST(matchers_are_labels_with_values)
{
    static const char *const good[] = {
        "cluster=\"a\"",
        "cluster=~\"a|b\",job!=\"x\"",
        " a = 'it\"s' , b !~ `c\\` ",
        "a=\"b\\\"}c\"",
        "_x9=\"\"",
        "a=\"1\",",
        "a=\"\xc3\xa9{}[,]\"",
    };
    static const char *const bad[] = {
        "",          " ",         "a",         "a=",       "a=b",
        "a=\"b",     "=\"b\"",    "9a=\"b\"",  "a=\"b\"}", "a=\"b\" or c",
        "a=\"b\",,", "a==\"b\"",  "a=\"b\\\"", "a=\"\n\"", "a=\"b\"c=\"d\"",
        ",",         "{a=\"b\"}", "a>\"b\"",
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        struct err err = { 0 };

        if (promql_check_matchers(str_of(good[i]), &err) < 0)
            fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = { 0 };

        if (promql_check_matchers(str_of(bad[i]), &err) != -EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_contains(err.text, "no PromQL label matchers");
    }
}
