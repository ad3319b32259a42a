/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "base/err.h"

#include <locale.h>

static void setting_gives_the_sentence_and_the_negative_code(void **state)
{
    struct err err = { 0 };

    (void)state;
    assert_int_equal(err_set(&err, ENOENT, "no file %s", "x"), -ENOENT);
    assert_int_equal(err.code, ENOENT);
    assert_string_equal(err.text, "no file x");
    assert_int_equal(err_set(NULL, EBADMSG, "nobody reads this"), -EBADMSG);
}

static void a_prefix_is_context_before_the_sentence(void **state)
{
    struct err err = { 0 };

    (void)state;
    err_set(&err, ETIMEDOUT, "squeue took too long");
    assert_int_equal(err_prefix(&err, "cluster %s", "alpha"), -ETIMEDOUT);
    assert_int_equal(err_prefix(&err, "refresh"), -ETIMEDOUT);
    assert_string_equal(err.text, "refresh: cluster alpha: squeue took too long");
}

static void long_sentences_are_cut_and_say_so(void **state)
{
    struct err err = { 0 };
    char longer[2000];

    (void)state;
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

static void words_are_english_in_any_locale(void **state)
{
    (void)state;
    setlocale(LC_ALL, "de_DE.UTF-8");
    assert_string_equal(err_words(ENOENT), "No such file or directory");
    assert_string_equal(err_words(123456), "unknown error");
    setlocale(LC_ALL, "C");
}

static void each_code_has_a_reason_fit_for_a_label(void **state)
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

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(err_reason(rows[i].code), rows[i].reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_gives_the_sentence_and_the_negative_code),
        cmocka_unit_test(a_prefix_is_context_before_the_sentence),
        cmocka_unit_test(long_sentences_are_cut_and_say_so),
        cmocka_unit_test(words_are_english_in_any_locale),
        cmocka_unit_test(each_code_has_a_reason_fit_for_a_label),
    };

    return RUN_TESTS(tests);
}
