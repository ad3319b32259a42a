/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server that says what it is told to, one line for each that it gets. */
#include "test.h"

#include "base/thread.h"
#include "mail/post.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

enum { MOST_LINES = 8, TIMEOUT_MS = 1000 };

struct server {
    int listener;
    const char *lines[MOST_LINES]; /* the first is its greeting */
    int64_t last_word_ms;          /* until it says what it thinks of a whole mail */
    const char *flood;             /* said for ever, when the lines are over */
    atomic_bool stopped;
    pthread_t thread;
    char url[64];
};

/* False if the other side has gone. */
static bool await_end_of(int fd, const char *end)
{
    char text[65536] = "";
    size_t n = 0;

    while (n < sizeof(text) - 1) {
        ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

        if (got <= 0)
            return false;
        n += (size_t)got;
        text[n] = '\0';
        if (str_ends((struct str){ text, n }, str_of(end)))
            return true;
    }
    return false;
}

static bool say(int fd, const char *line)
{
    return send(fd, line, strlen(line), MSG_NOSIGNAL) > 0 && send(fd, "\r\n", 2, MSG_NOSIGNAL) > 0;
}

static void talk(struct server *server, int fd)
{
    bool is_mail = false;

    for (size_t i = 0; i < MOST_LINES && server->lines[i]; i++) {
        if (i && !await_end_of(fd, is_mail ? "\r\n.\r\n" : "\r\n"))
            return;
        if (is_mail)
            poll(NULL, 0, (int)server->last_word_ms);
        is_mail = str_starts(str_of(server->lines[i]), STR("354"));
        if (!say(fd, server->lines[i]))
            return;
    }
    while (server->flood && say(fd, server->flood))
        continue;
    while (!atomic_load(&server->stopped) && await_end_of(fd, "\r\n"))
        continue;
}

static void *serve(void *ctx)
{
    struct server *server = ctx;
    int fd = accept(server->listener, NULL, NULL);

    if (fd >= 0) {
        talk(server, fd);
        close(fd);
    }
    return NULL;
}

static void start(struct server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof(address);
    struct err err;

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 1), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server->url, sizeof(server->url), "smtp://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(thread_start(&server->thread, "server", serve, server, &err), 0);
}

static int send_to(struct server *server, struct err *err)
{
    struct post_settings settings = { .hello = STR("here") };
    int code;

    start(server);
    settings.url = str_of(server->url);
    code = post_send(&settings, STR("sonde@x.org"), STR("anna@x.org"),
                     STR("Subject: x\r\n\r\ntext\r\n"), TIMEOUT_MS, NULL, err);
    atomic_store(&server->stopped, true);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    return code;
}

TEST(a_server_that_thinks_about_a_mail_for_long_gets_it_once)
{
    struct server server = {
        .lines = { "220 hi", "250 hi", "250 ok", "250 ok", "354 go on", "250 taken", "221 bye" },
        .last_word_ms = 3 * TIMEOUT_MS,
    };
    struct err err = { 0 };

    assert_int_equal(send_to(&server, &err), 0);
}

TEST(a_mail_that_is_too_large_is_not_the_servers_failure)
{
    struct server server = { .lines = { "220 hi", "250-hi\r\n250 SIZE 10",
                                        "552 5.3.4 Message size exceeds fixed limit", "221 bye" } };
    struct err err = { 0 };

    assert_int_equal(send_to(&server, &err), -EPERM);
    assert_contains(err.text, "exceeds fixed limit");
}

TEST(wherever_a_server_falls_silent_that_has_an_end)
{
    static const char *const lines[] = { "220 hi", "250 hi", "250 ok", "250 ok" };

    for (size_t n = 0; n <= COUNT(lines); n++) {
        struct server server = { 0 };
        int64_t begin = clock_mono(&clock_real);
        struct err err = { 0 };

        memcpy(server.lines, lines, n * sizeof(*lines));
        assert_int_equal(send_to(&server, &err), -ETIMEDOUT);
        assert_true(clock_mono(&clock_real) - begin < 10 * TIMEOUT_MS * NS_PER_MS);
    }
}

TEST(a_server_that_talks_for_ever_is_not_listened_to_for_ever)
{
    static const char *const floods[] = { "220-and", "250-and", "\x1b]0;\xff garbage",
                                          "5xx \r\r\r" };

    for (size_t i = 0; i < COUNT(floods); i++) {
        struct server server = { .flood = floods[i] };
        int64_t begin = clock_mono(&clock_real);
        struct err err = { 0 };
        int code;

        server.lines[0] = i % 2 ? "220 hi" : NULL;
        code = send_to(&server, &err);
        assert_true(code < 0 && code != -EPERM && code != -EAGAIN);
        assert_true(clock_mono(&clock_real) - begin < 10 * TIMEOUT_MS * NS_PER_MS);
        assert_null(strchr(err.text, '\x1b'));
    }
}
