/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and texts in statements, and servers that are none. What a real one says:
 * tests/e2e/test_views.py. */
#include "test.h"

#include "base/buf.h"
#include "base/thread.h"
#include "loopback.h"
#include "source/mariadb.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_library_missing;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return is_library_missing ? NULL : __real_dlopen(name, flags);
}

typedef int put_function(struct buf *to, struct str text, struct err *err);

static void assert_put(put_function *put, struct str text, const char *expected)
{
    struct err err = { 0 };
    struct buf to;

    buf_init(&to, 1000);
    assert_int_equal(put(&to, text, &err), 0);
    assert_str(buf_str(&to), expected);
    buf_free(&to);
}

static void assert_refused(put_function *put, struct str text, const char *why)
{
    struct err err = { 0 };
    struct buf to;

    buf_init(&to, 1000);
    assert_int_equal(put(&to, text, &err), -EINVAL);
    assert_contains(err.text, why);
    assert_int_equal(to.n, 0);
    buf_free(&to);
}

static int open_within(unsigned seconds, uint16_t port, struct err *err)
{
    const struct mariadb_settings settings = {
        .host = STR("127.0.0.1"),
        .port = port,
        .user = STR("nobody"),
        .timeout_seconds = seconds,
    };
    struct mariadb *mariadb = NULL;
    int code = mariadb_open(&settings, &mariadb, err);

    mariadb_close(mariadb);
    return code;
}

static int open_at(uint16_t port, struct err *err)
{
    return open_within(TEST_DEADLINE / NS_PER_SEC, port, err);
}

/* In a process of its own, since the library is looked for once. */
TEST(without_the_library_its_package_is_named)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct err err = { 0 };

        is_library_missing = true;
        _exit(open_at(1, &err) == -ENOENT && strstr(err.text, "libmariadb3") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

TEST(a_name_stays_one_name_whatever_is_in_it)
{
    assert_put(mariadb_put_name, STR("sandbox_job_table"), "`sandbox_job_table`");
    assert_put(mariadb_put_name,
               STR("a`; DROP TABLE b; -- "
                   "x"),
               "`a``; DROP TABLE b; -- x`");
    assert_put(mariadb_put_name, STR("``"), "``````");
    assert_put(mariadb_put_name, STR("it's \"50%\" \\"), "`it's \"50%\" \\`");
    assert_put(mariadb_put_name, STR("日本é"), "`日本é`");
}

TEST(a_name_that_no_table_can_have_is_refused)
{
    char most[64], beyond[65];

    memset(most, 'x', sizeof(most));
    memset(beyond, 'x', sizeof(beyond));
    assert_refused(mariadb_put_name, STR(""), "empty");
    assert_refused(mariadb_put_name, STR("cluster "), "ends with a space");
    assert_refused(mariadb_put_name, STR("a\0b"), "control characters");
    assert_refused(mariadb_put_name, STR("a\nb"), "control characters");
    assert_refused(mariadb_put_name, STR("a\x1b[2Jb"), "control characters");
    assert_refused(mariadb_put_name, STR("a\xff"), "no character there");
    assert_refused(mariadb_put_name, STR("a😀"), "no character there");
    assert_refused(mariadb_put_name, (struct str){ beyond, sizeof(beyond) }, "64 characters");
    {
        struct err err = { 0 };
        struct buf to;

        buf_init(&to, 1000);
        assert_int_equal(mariadb_put_name(&to, (struct str){ most, sizeof(most) }, &err), 0);
        assert_int_equal(to.n, sizeof(most) + 2);
        buf_free(&to);
    }
}

TEST(a_text_cannot_end_its_string)
{
    assert_put(mariadb_put_string, STR(""), "''");
    assert_put(mariadb_put_string, STR("it's"), "'it''s'");
    assert_put(mariadb_put_string, STR("\\'; DROP USER x; -- "), "'\\\\''; DROP USER x; -- '");
    assert_put(mariadb_put_string, STR("\\"), "'\\\\'");
    assert_put(mariadb_put_string, STR("a\nb 😀"), "'a\nb 😀'");
}

TEST(a_text_that_is_refused_is_not_shown)
{
    struct err err = { 0 };
    struct buf to;

    assert_refused(mariadb_put_string, STR("\xbf'"), "not UTF-8");
    assert_refused(mariadb_put_string, STR("a\0b"), "NUL");
    buf_init(&to, 1000);
    mariadb_put_string(&to, STR("secret\xff"), &err);
    assert_null(strstr(err.text, "secret"));
    buf_free(&to);
}

TEST(a_server_that_says_nothing_is_given_up)
{
    struct err err = { 0 };
    uint16_t port;
    int fd = listen_on_loopback(5, &port);

    assert_int_equal(open_within(1, port, &err), -ETIMEDOUT);
    assert_contains(err.text, "has not answered within 1 s");
    close(fd);
}

TEST(nobody_there_is_told_with_the_place)
{
    struct err err = { 0 };
    uint16_t port;
    char place[40];

    close(listen_on_loopback(5, &port));
    assert_int_equal(open_at(port, &err), -ECONNREFUSED);
    snprintf(place, sizeof(place), "127.0.0.1:%u cannot be asked", port);
    assert_contains(err.text, place);
}

struct talker {
    int listener;
    struct str words;
};

static void *talk(void *arg)
{
    const struct talker *talker = arg;
    int fd = accept4(talker->listener, NULL, NULL, SOCK_CLOEXEC);

    if (send(fd, talker->words.p, talker->words.n, MSG_NOSIGNAL) < 0)
        perror("send");
    close(fd);
    return NULL;
}

TEST(what_is_no_database_is_an_error)
{
    static const struct str answers[] = {
        STR_INIT(""),
        STR_INIT("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        STR_INIT("\x01\0\0\0\x0a"),
        STR_INIT("\x04\0\0\0\xff\x10\x04x"), /* an error, as too many connections is told */
        STR_INIT("\x05\0\0\0\x0a"
                 "5.5\0"),
        STR_INIT("\xff\xff\xff\0\x0a"),
    };

    for (size_t i = 0; i < COUNT(answers); i++) {
        struct talker talker = { .words = answers[i] };
        struct err err = { 0 };
        pthread_t thread;
        uint16_t port;

        talker.listener = listen_on_loopback(5, &port);
        assert_int_equal(thread_start(&thread, "talker", talk, &talker, &err), 0);
        assert_true(open_at(port, &err) < 0);
        assert_contains(err.text, "the database at 127.0.0.1:");
        pthread_join(thread, NULL);
        close(talker.listener);
    }
}

TEST(a_password_file_that_cannot_be_read_is_told)
{
    const struct mariadb_settings settings = {
        .user = STR("x"),
        .password_file = STR("/nonexistent/password"),
        .timeout_seconds = 1,
    };
    struct mariadb *mariadb = NULL;
    struct err err = { 0 };

    assert_int_equal(mariadb_open(&settings, &mariadb, &err), -ENOENT);
    assert_contains(err.text, "cannot read the password file /nonexistent/password");
    assert_null(mariadb);
}
