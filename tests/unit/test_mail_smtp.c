/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server that says what it is told to, one line for each that it gets. */
#include "test.h"

#include "base/thread.h"
#include "kernel_time.h"
#include "loopback.h"
#include "mail/post.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

enum {
    MOST_LINES = 8,
    LONG_MS = TEST_DEADLINE / NS_PER_MS,
    SHORT_MS = 1000, /* for a server that is silent until it is given up */
};

struct server {
    int listener;
    const char *lines[MOST_LINES]; /* the first is its greeting */
    int64_t thinks_ns;             /* that pass until it says what it thinks of a whole mail */
    int64_t timeout_ms;            /* of who sends to it */
    const char *flood;             /* said for ever, when the lines are over */
    int code;                      /* what became of the mail */
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

/* Thinks about a mail. The sender is at ease with the time that has passed: it looks at the clock,
 * woken by the first bytes of the answer, and stays until the rest of it comes. */
static bool think(const struct server *server, int fd, const char *answer)
{
    struct pollfd gone = { .fd = fd, .events = POLLIN };

    time_leap(server->thinks_ns);
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = time_readings();

        if (send(fd, answer + i, 1, MSG_NOSIGNAL) != 1)
            return false;
        while (time_readings() == before)
            if (poll(&gone, 1, 1) > 0)
                return false;
    }
    return say(fd, answer + 3);
}

static void talk(struct server *server, int fd)
{
    bool is_mail = false;

    for (size_t i = 0; i < MOST_LINES && server->lines[i]; i++) {
        if (i && !await_end_of(fd, is_mail ? "\r\n.\r\n" : "\r\n"))
            return;
        if (!(is_mail ? think(server, fd, server->lines[i]) : say(fd, server->lines[i])))
            return;
        is_mail = str_starts(str_of(server->lines[i]), STR("354"));
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
    uint16_t port;
    struct err err;

    server->listener = listen_on_loopback(1, &port);
    snprintf(server->url, sizeof(server->url), "smtp://127.0.0.1:%u", port);
    assert_int_equal(thread_start(&server->thread, "server", serve, server, &err), 0);
}

static int send_to(struct server *server, struct err *err)
{
    struct post_settings settings = { .hello = STR("here") };
    int code;

    start(server);
    settings.url = str_of(server->url);
    code = post_send(&settings, STR("sonde@x.org"), STR("anna@x.org"),
                     STR("Subject: x\r\n\r\ntext\r\n"),
                     server->timeout_ms ? server->timeout_ms : LONG_MS, NULL, err);
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
        .thinks_ns = LONG_MS * NS_PER_MS,
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

static void *send_to_silent(void *ctx)
{
    struct server *server = ctx;
    struct err err = { 0 };

    server->code = send_to(server, &err);
    return NULL;
}

/* All at once: each is waited for in real time. */
TEST(wherever_a_server_falls_silent_that_has_an_end)
{
    static const char *const lines[] = { "220 hi", "250 hi", "250 ok", "250 ok" };
    struct server servers[COUNT(lines) + 1] = { 0 };
    pthread_t threads[COUNT(servers)];
    struct err err;

    for (size_t n = 0; n < COUNT(servers); n++) {
        servers[n].timeout_ms = SHORT_MS;
        memcpy(servers[n].lines, lines, n * sizeof(*lines));
        assert_int_equal(thread_start(&threads[n], "sender", send_to_silent, &servers[n], &err), 0);
    }
    for (size_t n = 0; n < COUNT(servers); n++) {
        pthread_join(threads[n], NULL);
        assert_int_equal(servers[n].code, -ETIMEDOUT);
    }
}

TEST(a_server_that_talks_for_ever_is_not_listened_to_for_ever)
{
    static const char *const floods[] = { "220-and", "250-and", "\x1b]0;\xff garbage",
                                          "5xx \r\r\r" };

    for (size_t i = 0; i < COUNT(floods); i++) {
        struct server server = { .flood = floods[i], .timeout_ms = SHORT_MS };
        struct err err = { 0 };
        int code;

        server.lines[0] = i % 2 ? "220 hi" : NULL;
        code = send_to(&server, &err);
        assert_true(code < 0 && code != -EPERM && code != -EAGAIN);
        assert_null(strchr(err.text, '\x1b'));
    }
}
