/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/base64. */
#include "test.h"

#include "base/base64.h"

static void assert_decodes(const char *in, const char *out)
{
    char bytes[100];
    size_t n;

    assert_true(base64_decode(str_of(in), bytes, sizeof(bytes), &n));
    assert_str(((struct str){ bytes, n }), out);
}

TEST(text_comes_back)
{
    assert_decodes("", "");
    assert_decodes("YQ==", "a");
    assert_decodes("YWI=", "ab");
    assert_decodes("YWJj", "abc");
    assert_decodes("bmFtZTpwYXNzd29yZA==", "name:password");
}

TEST(padding_may_be_missing)
{
    assert_decodes("YQ", "a");
    assert_decodes("YWI", "ab");
}

TEST(both_alphabets_are_read)
{
    assert_decodes("+/8=", "\xfb\xff");
    assert_decodes("-_8", "\xfb\xff");
}

TEST(anything_else_is_refused)
{
    static const char *const wrong[] = { "a b", "YQ=a", "Y\n", "\xff", "Y.Q" };
    char bytes[100];
    size_t n;

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(base64_decode(str_of(wrong[i]), bytes, sizeof(bytes), &n));
    assert_false(base64_decode(STR("YWJj"), bytes, 2, &n));
    assert_true(base64_decode(STR("YWJj"), bytes, 3, &n));
}

static void assert_encodes(struct str in, const char *out)
{
    struct buf buf;

    buf_init(&buf, 100);
    base64_put_web(&buf, in);
    assert_str(buf_str(&buf), out);
    buf_free(&buf);
}

TEST(bytes_become_what_a_path_may_hold)
{
    assert_encodes(STR(""), "");
    assert_encodes(STR("a"), "YQ");
    assert_encodes(STR("ab"), "YWI");
    assert_encodes(STR("abc"), "YWJj");
    assert_encodes(STR("\xfb\xff"), "-_8");
    assert_encodes(STR("/\0/"), "LwAv");
}

TEST(every_byte_comes_back_from_every_place)
{
    char bytes[3] = { 0 }, back[4];
    struct buf buf;
    size_t n;

    buf_init(&buf, 100);
    for (unsigned i = 0; i < 3 * 256; i++) {
        bytes[i / 256] = (char)i;
        buf_reset(&buf);
        base64_put_web(&buf, (struct str){ bytes, i / 256 + 1 });
        assert_true(base64_decode(buf_str(&buf), back, sizeof(back), &n));
        assert_int_equal(n, i / 256 + 1);
        assert_memory_equal(back, bytes, n);
    }
    buf_free(&buf);
}

TEST(mail_has_padded_lines_of_the_other_alphabet)
{
    char bytes[58];
    struct buf buf;

    memset(bytes, 0xff, sizeof(bytes));
    buf_init(&buf, 200);
    base64_put_lines(&buf, (struct str){ bytes, sizeof(bytes) });
    assert_str(buf_str(&buf),
               "////////////////////////////////////////////////////////////////////////////\r\n"
               "/w==\r\n");
    buf_reset(&buf);
    base64_put_lines(&buf, STR("\xfb\xef\xbe"));
    base64_put_lines(&buf, STR("ab"));
    base64_put_lines(&buf, STR(""));
    assert_str(buf_str(&buf), "++++\r\nYWI=\r\n");
    buf_free(&buf);
}
