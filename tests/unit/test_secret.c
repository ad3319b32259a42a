/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "base/arena.h"
#include "base/secret.h"

#include <fcntl.h>
#include <sys/stat.h>

struct fixture {
    char directory[64], path[80];
    char *secret;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *fixture = heap_alloc(sizeof(*fixture));

    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/sonde-secret-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof(fixture->path), "%s/file", fixture->directory);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    secret_free(fixture->secret);
    unlink(fixture->path);
    rmdir(fixture->directory);
    free(fixture);
    return 0;
}

static void put_file(struct fixture *fixture, struct str bytes)
{
    int fd = open(fixture->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
    close(fd);
}

static int look(struct fixture *fixture, struct str bytes)
{
    put_file(fixture, bytes);
    fixture->secret = secret_free(fixture->secret);
    fixture->err = (struct err){ 0 };
    return secret_read(fixture->path, "token", &fixture->secret, &fixture->err);
}

static void a_secret_is_the_one_line_of_its_file(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(look(fixture, STR("abc")), 0);
    assert_string_equal(fixture->secret, "abc");
    assert_int_equal(look(fixture, STR(" a b\xc3\xa9 \r\n")), 0);
    assert_string_equal(fixture->secret, " a b\xc3\xa9 ");
}

static void a_file_that_everybody_may_read_or_change_will_not_do(void **state)
{
    static const struct {
        mode_t mode;
        int code;
    } cases[] = { { 0600, 0 }, { 0660, 0 }, { 0604, -EPERM }, { 0602, -EPERM } };
    struct fixture *fixture = *state;

    assert_int_equal(secret_check(fixture->path, "token", &fixture->err), -ENOENT);
    assert_int_equal(look(fixture, STR("")), -EINVAL);
    assert_int_equal(secret_check(fixture->path, "token", &fixture->err), -EINVAL);
    put_file(fixture, STR("hidden\n"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(chmod(fixture->path, cases[i].mode), 0);
        assert_int_equal(secret_check(fixture->path, "token", &fixture->err), cases[i].code);
    }
    assert_contains(fixture->err.text, "everybody may read or change the token file /tmp/");
    assert_contains(fixture->err.text, "chmod o=");
}

static void what_is_not_one_line_is_refused_and_not_told(void **state)
{
    static const struct str others[] = {
        STR_INIT(""),         STR_INIT("\n"),       STR_INIT("hidden\nhidden\n"),
        STR_INIT("hid\tden"), STR_INIT("hid\0den"), STR_INIT("hid\rden"),
        STR_INIT("hid\x7f"),
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(look(fixture, others[i]), -EINVAL);
        assert_null(fixture->secret);
        assert_contains(fixture->err.text, "the token file /tmp/");
        assert_contains(fixture->err.text, "/file holds no token: one line is expected");
        assert_null(strstr(fixture->err.text, "hid"));
    }
}

static void a_secret_has_a_ceiling(void **state)
{
    struct fixture *fixture = *state;
    char *bytes = heap_array(SECRET_MAX + 2, 1);

    memset(bytes, 'x', SECRET_MAX + 1);
    assert_int_equal(look(fixture, (struct str){ bytes, SECRET_MAX + 1 }), -EINVAL);
    bytes[SECRET_MAX] = '\n';
    assert_int_equal(look(fixture, (struct str){ bytes, SECRET_MAX + 1 }), 0);
    assert_int_equal(strlen(fixture->secret), SECRET_MAX);
    free(bytes);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(secret_read("/nowhere/token", "token", &fixture->secret, &fixture->err),
                     -ENOENT);
    assert_string_equal(fixture->err.text,
                        "cannot read the token file /nowhere/token: No such file "
                        "or directory");
    assert_int_equal(secret_read("/tmp", "password", &fixture->secret, &fixture->err), -EISDIR);
    assert_string_equal(fixture->err.text, "cannot read the password file /tmp: Is a directory");
}

static void a_pipe_is_not_waited_for(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(secret_read(fixture->path, "token", &fixture->secret, &fixture->err), -EINVAL);
    assert_null(fixture->secret);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_secret_is_the_one_line_of_its_file),
        TEST(a_file_that_everybody_may_read_or_change_will_not_do),
        TEST(what_is_not_one_line_is_refused_and_not_told),
        TEST(a_secret_has_a_ceiling),
        TEST(a_file_that_cannot_be_read_is_named),
        TEST(a_pipe_is_not_waited_for),
    };

    return RUN_TESTS(tests);
}
