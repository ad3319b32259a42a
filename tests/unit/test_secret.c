/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/secret: password files. */
#include "test.h"

#include "base/arena.h"
#include "base/secret.h"
#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>

struct fixture {
    const char *path;
    char *secret;
    struct err err;
};

static struct fixture *fixture;

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    fixture->path = test_path("file");
}

static void teardown(void)
{
    secret_free(fixture->secret);
    free(fixture);
}

FIXTURE(setup, teardown)

static void put_file(struct str bytes)
{
    assert_int_equal(chmod(write_bytes(fixture->path, bytes), 0600), 0);
}

static int look(struct str bytes)
{
    put_file(bytes);
    fixture->secret = secret_free(fixture->secret);
    fixture->err = (struct err){ 0 };
    return secret_read(fixture->path, "token", &fixture->secret, &fixture->err);
}

TEST(a_secret_is_the_one_line_of_its_file)
{
    assert_int_equal(look(STR("abc")), 0);
    assert_string_equal(fixture->secret, "abc");
    assert_int_equal(look(STR(" a b\xc3\xa9 \r\n")), 0);
    assert_string_equal(fixture->secret, " a b\xc3\xa9 ");
}

TEST(a_file_that_everybody_may_read_or_change_will_not_do)
{
    static const struct {
        mode_t mode;
        int code;
    } cases[] = { { 0600, 0 }, { 0660, 0 }, { 0604, -EPERM }, { 0602, -EPERM } };

    assert_int_equal(secret_check(fixture->path, "token", &fixture->err), -ENOENT);
    assert_int_equal(look(STR("")), -EINVAL);
    assert_int_equal(secret_check(fixture->path, "token", &fixture->err), -EINVAL);
    put_file(STR("hidden\n"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(chmod(fixture->path, cases[i].mode), 0);
        assert_int_equal(secret_check(fixture->path, "token", &fixture->err), cases[i].code);
    }
    assert_contains(fixture->err.text, "everybody may read or change the token file /");
    assert_contains(fixture->err.text, "chmod o=");
}

TEST(what_is_not_one_line_is_refused_and_not_told)
{
    static const struct str others[] = {
        STR_INIT(""),         STR_INIT("\n"),       STR_INIT("hidden\nhidden\n"),
        STR_INIT("hid\tden"), STR_INIT("hid\0den"), STR_INIT("hid\rden"),
        STR_INIT("hid\x7f"),
    };

    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(look(others[i]), -EINVAL);
        assert_null(fixture->secret);
        assert_contains(fixture->err.text, "the token file /");
        assert_contains(fixture->err.text, "/file holds no token: one line is expected");
        assert_null(strstr(fixture->err.text, "hid"));
    }
}

TEST(a_secret_has_a_ceiling)
{
    char *bytes = heap_array(SECRET_MAX + 2, 1);

    memset(bytes, 'x', SECRET_MAX + 1);
    assert_int_equal(look((struct str){ bytes, SECRET_MAX + 1 }), -EINVAL);
    bytes[SECRET_MAX] = '\n';
    assert_int_equal(look((struct str){ bytes, SECRET_MAX + 1 }), 0);
    assert_int_equal(strlen(fixture->secret), SECRET_MAX);
    free(bytes);
}

TEST(a_file_that_cannot_be_read_is_named)
{
    assert_int_equal(secret_read("/nowhere/token", "token", &fixture->secret, &fixture->err),
                     -ENOENT);
    assert_string_equal(fixture->err.text,
                        "cannot read the token file /nowhere/token: No such file "
                        "or directory");
    assert_int_equal(secret_read("/tmp", "password", &fixture->secret, &fixture->err), -EISDIR);
    assert_string_equal(fixture->err.text, "cannot read the password file /tmp: Is a directory");
}

TEST(a_pipe_is_not_waited_for)
{
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(secret_read(fixture->path, "token", &fixture->secret, &fixture->err), -EINVAL);
    assert_null(fixture->secret);
}
