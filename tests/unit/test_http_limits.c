/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What strangers may send: garbage, too much, too slowly, or nothing at all. */
#include "test.h"

#include "http_client.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "http/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { BIG = 32 << 20, CROWD = 1000 };

static struct http_server *server;
static struct http_body *much_body;
static struct log *log_file;
static struct manual_clock manual;
static struct client client, other;
static atomic_bool is_ready;
static atomic_int n_waiting;
static const char piece[50000];

static enum http_verdict say_hello(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain", STR("hello\n"));
    return HTTP_DONE;
}

static enum http_verdict say_much(void *ctx, struct http_exchange *x)
{
    http_reply_body(x, ctx);
    return HTTP_DONE;
}

static enum http_verdict wait_for_ready(void *ctx, struct http_exchange *x)
{
    if (atomic_load(&is_ready))
        return say_hello(ctx, x);
    atomic_fetch_add(&n_waiting, 1);
    return HTTP_WAIT;
}

static const struct http_route routes[] = {
    { "GET", "/hello", 0, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { "POST", "/hello", 1000, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { "GET", "/much", 0, HTTP_WITH_PASSWORD, say_much, NULL, NULL, NULL, false },
    { "GET", "/wait", 0, HTTP_WITH_PASSWORD, wait_for_ready, NULL, NULL, NULL, false },
    { 0 },
};

static void start(unsigned max_connections)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = {
        .routes = routes,
        .ctx = much_body,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = max_connections,
        .workers = 1,
        .queue = 1,
        .request_ns = 10 * NS_PER_SEC,
        .response_ns = 20 * NS_PER_SEC,
        .max_header = 8192,
        .clock = &manual.clock,
        .log = log_file,
    };
    struct err err;

    if (http_start(&config, &server, &err) < 0)
        fail_msg("%s", err.text);
}

static void set_up(void)
{
    static char big[BIG];
    struct iovec much = { big, sizeof(big) };

    much_body = http_body_new(&much, 1, "text/plain", NULL, NULL, NULL);
    log_file = log_new(STDERR_FILENO, LOG_ERROR, &clock_real);
    manual_clock_init(&manual, 0, 1000 * NS_PER_SEC);
    client.fd = other.fd = -1;
    atomic_store(&is_ready, false);
    atomic_store(&n_waiting, 0);
}

static void tear_down(void)
{
    client_close(&client);
    client_close(&other);
    server = http_stop(server);
    much_body = http_body_unref(much_body);
    log_file = log_free(log_file);
    manual_clock_destroy(&manual);
}

FIXTURE(set_up, tear_down)

static struct http_stats stats(void)
{
    struct http_stats now;

    http_stats(server, &now);
    return now;
}

/* After this, the server has seen the time and everything that was sent before. */
static void go_round(void)
{
    struct reply reply = client_get(&other, "/hello");

    assert_int_equal(reply.status, 200);
}

static void open_other(void)
{
    client_open(&other, http_address(server, 0));
    go_round();
}

static void pass_time(int64_t seconds)
{
    manual_clock_advance(&manual, seconds * NS_PER_SEC);
    go_round();
}

static bool is_open(const struct client *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

TEST(garbage_is_refused_and_the_server_lives)
{
    static const struct str garbage[] = {
        STR_INIT("\r\n\r\n\r\n\r\n: :\r\n\r\n"),
        STR_INIT("GET\r\n\r\n"),
        STR_INIT("GET /hello\r\n\r\n"),
        STR_INIT("GET /hello HTTP/9.9\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\n\r\n"), /* no Host */
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nbroken header\r\n\r\n"),
        STR_INIT("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
        STR_INIT("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: "
                 "99999999999999999999999999\r\n\r\n"),
        STR_INIT("POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"),
        STR_INIT("POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                 "chunked\r\n\r\nffffffffffffffffff\r\nabc\r\n"),
        STR_INIT("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), /* TLS on a plain port */
        STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    };

    start(100);
    open_other();
    for (size_t i = 0; i < COUNT(garbage); i++) {
        struct reply reply;

        client_open(&client, http_address(server, 0));
        client_send(&client, garbage[i]);
        shutdown(client.fd, SHUT_WR);
        reply = client_read(&client, true);
        if (reply.status != 0 && (reply.status < 400 || reply.status == 404))
            fail_msg("garbage %zu was answered with %u", i, reply.status);
        client_close(&client);
        go_round();
    }
}

/* Bytes that look like a request here and there, from a fixed seed. */
TEST(random_bytes_are_refused_and_the_server_lives)
{
    static const char words[][12] = { "GET ",  "/hello", " HTTP/1.1", "\r\n", "Host: x",
                                      "POST ", "%",      "chunked",   ": ",   "Content-" };
    unsigned long seed = 1;
    int n_answered = 0;

    start(100);
    open_other();
    for (int i = 0; i < 200; i++) {
        struct reply reply;
        struct buf bytes;

        buf_init(&bytes, 1000);
        for (int k = 0; k < 20; k++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            if (seed >> 63)
                buf_text(&bytes, words[(seed >> 33) % 10]);
            else
                buf_put(&bytes, (struct str){ (char *)&seed, sizeof(seed) });
        }
        buf_text(&bytes, "\r\n\r\n"); /* else there might be more to wait for */
        client_open(&client, http_address(server, 0));
        client_send(&client, buf_str(&bytes));
        shutdown(client.fd, SHUT_WR);
        reply = client_read(&client, true);
        if (reply.status != 0 && (reply.status < 400 || reply.status >= 500))
            fail_msg("random bytes %d were answered with %u", i, reply.status);
        n_answered += reply.status != 0;
        client_close(&client);
        buf_free(&bytes);
    }
    assert_true(n_answered > 0);
    go_round();
}

/* A proxy in front of us may read such a header differently, and so pass on a name that it would
 * have removed: libmicrohttpd joins "X-Remote-: root", " User" to the header X-Remote-User. */
TEST(headers_that_can_be_read_in_two_ways_are_refused)
{
    static const struct str requests[] = {
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nX-Remote-: root\r\n User\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\nD: e\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nA: b\r\n \r\nD: e\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nA: b\r\n \r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\n A: b\r\nHost: x\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nX-Remote-User : root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nX Remote: root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nX(Remote): root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nX\x01: root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nX\xe4: root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\n: a\r\nX: root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nA: b\rX: root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nA: b\nX: root\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\nHost: x\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\n\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"),
        STR_INIT("GET /hello HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\n"
                 "authorization: Basic YzpkCg\r\n\r\n"),
    };

    start(100);
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct reply reply;

        client_open(&client, http_address(server, 0));
        client_send(&client, requests[i]);
        reply = client_read(&client, true);
        if (reply.status != 400)
            fail_msg("request %zu was answered with %u", i, reply.status);
        client_await_close(&client);
        client_close(&client);
    }
}

/* In pieces, so that the server's buffer must grow. */
static void send_long_header(void)
{
    uint64_t before = stats().requests;

    client_send_text(&client, "GET /hello HTTP/1.1\r\nHost: x\r\n");
    for (unsigned i = 0; i < 100; i++) {
        char line[100];

        snprintf(line, sizeof(line), "Line-%u: %050u\r\n", i, i);
        client_send_text(&client, line);
        if (i % 10 == 0)
            go_round();
    }
    assert_int_equal(stats().requests, before + 10);
    client_send_text(&client, "\r\n");
}

TEST(headers_of_every_allowed_form_are_accepted)
{
    static const char *const headers[] = {
        "",
        "Accept:*/*\r\n",
        "Empty:\r\nBlank: \t \r\nSpaces:  a b\t\r\n",
        "!#$%&'*+-.^_`|~09azAZ: \"\xc3\xa4\"; b=\"c\"\r\n",
        "Cookie: a=b; c=\"d\"\r\nCookie: e\r\n",
    };

    start(100);
    open_other();
    client_open(&client, http_address(server, 0));
    for (size_t i = 0; i < COUNT(headers); i++) {
        struct reply reply = client_get_with(&client, "/hello?a=b&c", headers[i]);

        if (reply.status != 200)
            fail_msg("headers %zu were answered with %u", i, reply.status);
    }
    send_long_header();
    assert_int_equal(client_read(&client, true).status, 200);
    client_send_text(&client, "\r\n\r\nGET /hello HTTP/1.0\r\n\r\n");
    assert_int_equal(client_read(&client, true).status, 200);
}

TEST(too_many_arguments_are_414)
{
    static const struct {
        unsigned n, width, status; /* of each argument: digits */
    } rows[] = {
        { 1, 1, 200 },   { 128, 1, 200 },  { 128, 60, 200 }, { 129, 1, 414 },
        { 600, 1, 414 }, { 600, 10, 414 }, { 2000, 3, 414 }, { 128, 110, 414 },
    };

    start(100);
    client_open(&client, http_address(server, 0));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf path;

        buf_init(&path, 20000);
        for (unsigned k = 0; k < rows[i].n; k++)
            buf_printf(&path, "%s%0*u=?", k ? "&" : "/hello?", (int)rows[i].width, k % 10);
        assert_int_equal(client_get(&client, path.p).status, rows[i].status);
        buf_free(&path);
    }
}

TEST(pipelined_requests_are_answered_in_order)
{
    struct reply reply;

    start(100);
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
                              "GET /missing HTTP/1.1\r\nHost: x\r\n\r\n"
                              "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"
                              "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 404);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    client_await_close(&client);
}

TEST(too_large_a_header_is_431_and_too_long_an_address_414)
{
    static char request[200000];
    struct reply reply;
    int n;

    start(100);
    client_open(&client, http_address(server, 0));
    n = snprintf(request, sizeof(request), "GET /hello HTTP/1.1\r\nHost: x\r\nX: ");
    memset(request + n, 'x', 8000);
    snprintf(request + n + 8000, 5, "\r\n\r\n");
    client_send_text(&client, request);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200); /* just below the ceiling */
    memset(request + n, 'x', 8400);
    snprintf(request + n + 8400, 5, "\r\n\r\n");
    client_send_text(&client, request);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 431); /* just above: by us */
    memset(request + n, 'x', 150000);
    client_send_text(&client, request);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 431); /* far above: by libmicrohttpd */
    client_await_close(&client);
    client_close(&client);

    client_open(&client, http_address(server, 0));
    memset(request, 'x', 150000);
    memcpy(request, "GET /", 5);
    client_send_text(&client, request);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 414);
}

TEST(a_client_that_sends_a_byte_a_second_is_cut)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: x\r\n";

    start(100);
    open_other();
    client_open(&client, http_address(server, 0));
    for (int second = 0; second < 10; second++) {
        go_round();
        assert_true(is_open(&client));
        client_send(&client, (struct str){ request + second, 1 });
        pass_time(1);
    }
    client_await_close(&client);
    assert_int_equal(stats().timed_out, 1);
}

TEST(a_body_that_comes_slowly_is_cut)
{
    start(100);
    open_other();
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
    for (int second = 0; second < 10; second++) {
        go_round();
        assert_true(is_open(&client));
        client_send_text(&client, "x");
        pass_time(1);
    }
    client_await_close(&client);
}

TEST(a_kept_connection_may_be_idle_for_five_minutes)
{
    struct reply reply;

    start(100);
    open_other();
    client_open(&client, http_address(server, 0));
    for (int scrape = 0; scrape < 3; scrape++) {
        reply = client_get(&client, "/hello");
        assert_int_equal(reply.status, 200);
        for (int i = 0; i < 29; i++)
            pass_time(10);
        assert_true(is_open(&client));
    }
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
    for (int i = 0; i < 31; i++)
        pass_time(10);
    client_await_close(&client);
    assert_int_equal(stats().timed_out, 0);
}

TEST(a_slow_request_on_a_kept_connection_is_cut_too)
{
    struct reply reply;

    start(100);
    open_other();
    client_open(&client, http_address(server, 0));
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
    pass_time(2); /* from here on it is idle */
    pass_time(50);
    for (int second = 0; second < 10; second++) {
        assert_true(is_open(&client));
        client_send_text(&client, "G");
        go_round();
        pass_time(1);
    }
    client_await_close(&client);
    assert_int_equal(stats().timed_out, 1);
}

TEST(a_client_that_does_not_read_is_cut)
{
    start(100);
    open_other();
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(stats().requests == 2);
    for (int second = 0; second < 19; second++)
        pass_time(1);
    assert_int_equal(stats().timed_out, 0);
    pass_time(2);
    wait_until_true(stats().timed_out == 1);
    client_await_close(&client);
}

TEST(at_the_limit_the_longest_without_a_request_is_closed)
{
    static struct client first, second, third;
    struct reply reply;

    start(4);
    open_other();
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(n_waiting == 1);
    pass_time(1);
    client_open(&first, http_address(server, 0)); /* never asks for anything */
    pass_time(1);
    client_open(&second, http_address(server, 0));
    pass_time(2);
    client_open(&third, http_address(server, 0)); /* one too many */
    client_await_close(&first);
    go_round();
    assert_true(is_open(&client) && is_open(&second) && is_open(&third));
    assert_int_equal(stats().evicted, 1);
    wait_until_true(stats().connections == 4);
    atomic_store(&is_ready, true);
    http_wake(server);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    client_close(&first);
    client_close(&second);
    client_close(&third);
}

TEST(in_a_crowd_of_idle_connections_a_scrape_is_answered)
{
    static int crowd[CROWD];
    struct rlimit limit;
    struct reply reply;

    need("many-files");
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start(512);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = client_connect(http_address(server, 0));
        assert_true(crowd[i] >= 0);
        if (i % 2)
            assert_int_equal(send(crowd[i], "GET /he", 7, MSG_NOSIGNAL), 7);
    }
    for (int i = 0; i < 10; i++) {
        client_open(&client, http_address(server, 0));
        reply = client_get(&client, "/hello");
        assert_int_equal(reply.status, 200);
        client_close(&client);
    }
    manual_clock_advance(&manual, 3 * NS_PER_SEC); /* their requests do not come */
    open_other();
    wait_until_true(stats().connections <= 512);
    assert_true(stats().evicted >= CROWD - 512);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
}

static bool has_answer(const struct client *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Begins a large request, which is refused at once: the server's side is closed. */
static void send_refused_body(void)
{
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    client_send(&client, (struct str){ piece, sizeof(piece) });
    wait_until_true(has_answer(&client));
    wait_until_true(stats().connections == 1);
}

TEST(who_is_still_sending_a_large_body_gets_the_answer)
{
    struct reply reply;

    start(100);
    open_other();
    send_refused_body();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(send(client.fd, piece, sizeof(piece), MSG_NOSIGNAL), sizeof(piece));
        go_round();
    }
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 413);
}

static bool is_reset(int fd)
{
    return send(fd, "x", 1, MSG_NOSIGNAL) < 0;
}

TEST(who_never_ends_a_body_that_was_refused_is_cut)
{
    start(100);
    open_other();
    send_refused_body();
    pass_time(1);
    assert_false(is_reset(client.fd));
    pass_time(2);
    wait_until_true(is_reset(client.fd));
}

TEST(who_sends_without_end_after_a_refusal_is_cut)
{
    start(100);
    open_other();
    send_refused_body();
    for (size_t n = 0; n < 64 << 20; n += sizeof(piece))
        if (send(client.fd, piece, sizeof(piece), MSG_NOSIGNAL) < 0)
            break;
    wait_until_true(is_reset(client.fd));
}

TEST(more_connections_than_descriptors_are_not_promised)
{
    struct rlimit before, few;
    int fds[60];

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 150;
    setrlimit(RLIMIT_NOFILE, &few);
    start(100000);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 60; i++)
        fds[i] = client_connect(http_address(server, 0));
    open_other();
    wait_until_true(stats().connections == 50);
    for (int i = 0; i < 60; i++)
        close(fds[i]);
}
