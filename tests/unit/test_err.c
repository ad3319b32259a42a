/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/err: errors and their texts. */
#include "test.h"

#include "base/err.h"

#include <locale.h>

TEST(setting_gives_the_sentence_and_the_negative_code)
{
    struct err err = { 0 };

    assert_int_equal(err_set(&err, ENOENT, "no file %s", "x"), -ENOENT);
    assert_int_equal(err.code, ENOENT);
    assert_string_equal(err.text, "no file x");
    assert_int_equal(err_set(NULL, EBADMSG, "nobody reads this"), -EBADMSG);
}

TEST(a_prefix_is_context_before_the_sentence)
{
    struct err err = { 0 };

    err_set(&err, ETIMEDOUT, "squeue took too long");
    assert_int_equal(err_prefix(&err, "cluster %s", "alpha"), -ETIMEDOUT);
    assert_int_equal(err_prefix(&err, "refresh"), -ETIMEDOUT);
    assert_string_equal(err.text, "refresh: cluster alpha: squeue took too long");
}

TEST(long_sentences_are_cut_and_say_so)
{
    struct err err = { 0 };
    char longer[2000];

    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    err_set(&err, EFBIG, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_contains(err.text, "xxx…");
    longer[0] = 'y';
    err_prefix(&err, "%s", longer);
    assert_true(strlen(err.text) < sizeof(err.text));
    assert_int_equal(err.text[0], 'y');
    assert_contains(err.text, "x…: x");
    assert_contains(err.text + sizeof(err.text) / 2, "x…");
    for (size_t i = 0; i < 3; i++) {
        err_set(&err, EFBIG, "%.*s%s", (int)i, longer,
                "………………………………………………………………………………………………………………………………………………"
                "………………………………………………………………………………………………………………………………………………"
                "………………………………………………………………………………………………………………………………………………");
        assert_true(strlen(err.text) < sizeof(err.text));
        assert_int_equal((strlen(err.text) - i) % strlen("…"), 0);
    }
}

TEST(words_are_english_in_any_locale)
{
    setlocale(LC_ALL, "de_DE.UTF-8");
    assert_string_equal(err_words(ENOENT), "No such file or directory");
    assert_string_equal(err_words(123456), "unknown error");
    setlocale(LC_ALL, "C");
}

TEST(each_code_has_a_reason_fit_for_a_label)
{
    static const struct {
        int code;
        const char *reason;
    } rows[] = {
        { ENOENT, "missing" },  { ETIMEDOUT, "timeout" },    { EFBIG, "too_big" },
        { EBADMSG, "garbled" }, { EREMOTEIO, "failed" },     { EACCES, "denied" },
        { EPERM, "denied" },    { ECONNREFUSED, "refused" }, { ECANCELED, "cancelled" },
        { EINVAL, "other" },    { 123456, "other" },         { EOPNOTSUPP, "unsupported" },
        { ENOSPC, "no_space" }, { EBUSY, "busy" },           { EROFS, "read_only" },
        { EIO, "io" },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(err_reason(rows[i].code), rows[i].reason);
}
