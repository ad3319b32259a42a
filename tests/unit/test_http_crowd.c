/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many connections at once: which are closed, which are refused, and who is still answered. */
#include "test.h"

#include "http_client.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "http/server.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum {
    MOST = 64,            /* connections of the server */
    SHARE = MOST / 4 + 1, /* of one address */
    BIG = 32 << 20,       /* more than the kernel buffers for one connection */
    SMALL = 64000,
    PROBES = 22,
    PIPELINED = 100,
    LOOK_S = 2, /* how often the server checks whether a client reads */
};

static struct http_server *server;
static struct http_body *big_body, *small_body;
static struct log *log_file;
static struct manual_clock manual;
static struct client client, other;
static int crowd[2 * MOST];
static unsigned n_crowd;
static atomic_bool is_ready;
static atomic_uint n_waiting;

static enum http_verdict say_hello(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain", STR("hello\n"));
    return HTTP_DONE;
}

static enum http_verdict send_big(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply_body(x, big_body);
    return HTTP_DONE;
}

static enum http_verdict send_small(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply_body(x, small_body);
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
    { .method = "GET", .path = "/hello", .handle = say_hello },
    { .method = "POST", .path = "/hello", .max_body = 100, .handle = say_hello },
    { .method = "GET", .path = "/big", .handle = send_big },
    { .method = "GET", .path = "/small", .handle = send_small },
    { .method = "GET", .path = "/wait", .handle = wait_for_ready },
    { .method = "GET", .path = "/scrape", .is_urgent = true, .handle = wait_for_ready },
    { 0 },
};

static void start(const struct str *proxies, size_t n_proxies)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .proxies = proxies,
        .n_proxies = n_proxies,
        .max_connections = MOST,
        .workers = 1,
        .queue = 1,
        .request_ns = 10 * NS_PER_SEC,
        .response_ns = 60 * NS_PER_SEC,
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
    static char bytes[BIG];
    struct iovec big = { bytes, BIG }, small = { bytes, SMALL };

    big_body = http_body_new(&big, 1, "text/plain", NULL, NULL, NULL);
    small_body = http_body_new(&small, 1, "text/plain", NULL, NULL, NULL);
    log_file = log_new(STDERR_FILENO, LOG_ERROR, &clock_real);
    manual_clock_init(&manual, 0, 1000 * NS_PER_SEC);
    client.fd = other.fd = -1;
    n_crowd = 0;
    atomic_store(&is_ready, false);
    atomic_store(&n_waiting, 0);
}

static void tear_down(void)
{
    atomic_store(&is_ready, true);
    http_wake(server);
    while (n_crowd)
        close(crowd[--n_crowd]);
    client_close(&client);
    client_close(&other);
    server = http_stop(server);
    big_body = http_body_unref(big_body);
    small_body = http_body_unref(small_body);
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

static bool is_open(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static unsigned count_open(const int *fds, unsigned n)
{
    unsigned n_open = 0;

    for (unsigned i = 0; i < n; i++)
        n_open += is_open(fds[i]);
    return n_open;
}

static void open_from(struct client *c, const char *source)
{
    *c = (struct client){ .fd = client_connect_from(http_address(server, 0), source) };
    assert_true(c->fd >= 0);
}

/* The i-th of many addresses of this machine. */
static const char *address_of(unsigned i)
{
    static char address[20];

    snprintf(address, sizeof(address), "127.9.%u.%u", i / 200, i % 200 + 1);
    return address;
}

static int join_crowd(const char *source, const char *bytes)
{
    int fd = client_connect_from(http_address(server, 0), source);

    assert_true(fd >= 0);
    crowd[n_crowd++] = fd;
    assert_int_equal(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
    return fd;
}

/* One that sends a whole request; returns when the server has it. */
static int join_with_request(const char *source, const char *path)
{
    uint64_t before = stats().requests;
    char request[100];
    int fd;

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    fd = join_crowd(source, request);
    wait_until_true(stats().requests == before + 1);
    return fd;
}

/* One that begins a request; returns when the server has accepted it. */
static int join_with_part(const char *source)
{
    struct http_stats before = stats();
    int fd = join_crowd(source, "GET /he");

    wait_until_true(stats().connections + stats().evicted > before.connections + before.evicted);
    return fd;
}

static void fail_unless_answered(void)
{
    for (unsigned i = 0; i < PROBES; i++) {
        struct reply reply;

        client_open(&client, http_address(server, 0));
        reply = client_get(&client, "/hello");
        assert_int_equal(reply.status, 200);
        client_close(&client);
    }
}

TEST(clients_of_one_address_that_do_not_read_lock_nobody_out)
{
    start(NULL, 0);
    for (unsigned i = 0; i < MOST; i++)
        join_with_request("127.0.0.2", "/big");
    fail_unless_answered();
    assert_true(stats().evicted > 0);
}

TEST(clients_of_many_addresses_that_do_not_read_lock_nobody_out)
{
    start(NULL, 0);
    for (unsigned i = 0; i < MOST; i++)
        join_with_request(address_of(i), "/big");
    fail_unless_answered();
    assert_true(stats().evicted > 0);
}

TEST(pipelined_requests_whose_replies_are_not_read_lock_nobody_out)
{
    struct buf requests;

    buf_init(&requests, 10000);
    for (unsigned i = 0; i < PIPELINED; i++)
        buf_text(&requests, "GET /small HTTP/1.1\r\nHost: x\r\n\r\n");
    start(NULL, 0);
    for (unsigned i = 0; i < MOST; i++) {
        uint64_t before = stats().requests;

        join_crowd(address_of(i), requests.p);
        wait_until_true(stats().requests > before);
    }
    buf_free(&requests);
    fail_unless_answered();
}

TEST(an_address_with_more_than_its_share_loses_its_own_connections)
{
    enum { FEW = 3, TOO_MANY = 10 };
    static struct client few[FEW];
    struct reply reply;

    start(NULL, 0);
    for (unsigned i = 0; i < FEW; i++) {
        open_from(&few[i], "127.0.0.2");
        reply = client_get(&few[i], "/hello");
        assert_int_equal(reply.status, 200);
    }
    manual_clock_advance(&manual, 5 * NS_PER_SEC);
    for (unsigned i = 0; i < MOST - FEW + TOO_MANY; i++)
        join_with_part("127.0.0.3");
    wait_until_true(stats().evicted == TOO_MANY);
    for (unsigned i = 0; i < FEW; i++) {
        reply = client_get(&few[i], "/hello");
        assert_int_equal(reply.status, 200);
        client_close(&few[i]);
    }
}

TEST(a_trusted_proxy_has_no_share)
{
    static const struct str proxies[] = { STR_INIT("10.0.0.0/8"), STR_INIT("127.0.0.4") };
    enum { OF_PROXY = SHARE + 10, OTHERS = 5 };
    struct reply reply;

    start(proxies, COUNT(proxies));
    for (unsigned i = 0; i < OF_PROXY; i++)
        join_with_part("127.0.0.4");
    for (unsigned i = OF_PROXY; i < MOST; i++)
        join_with_part("127.0.0.3");
    for (unsigned i = 0; i < OTHERS; i++)
        join_with_part(address_of(i));
    wait_until_true(stats().evicted == OTHERS);
    open_from(&client, "127.0.0.5");
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
    assert_int_equal(count_open(crowd, OF_PROXY), OF_PROXY);
}

/* As much as there is now, and at least one byte. */
static size_t read_some(int fd, size_t most)
{
    static char bytes[1 << 20];
    ssize_t n = recv(fd, bytes, most < sizeof(bytes) ? most : sizeof(bytes), 0);

    assert_true(n > 0);
    return (size_t)n;
}

static void read_at_least(int fd, size_t least)
{
    for (size_t n = 0; n < least;)
        n += read_some(fd, least - n);
}

static uint64_t count_arrived(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof(info);

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_bytes_received;
}

/* Reads until so much has arrived since the call, whatever was buffered before: at its next look
 * the server sees that this client reads. Returns how much was read. */
static size_t read_until_arrived(int fd, uint64_t least)
{
    uint64_t before = count_arrived(fd);
    size_t n = 0;

    while (count_arrived(fd) < before + least)
        n += read_some(fd, SMALL);
    return n;
}

/* Returns when the server has checked who reads: that comes after the first reply and before the
 * second. */
static void pass_look(void)
{
    manual_clock_advance(&manual, LOOK_S * NS_PER_SEC);
    for (int i = 0; i < 2; i++) {
        struct reply reply = client_get(&other, "/hello");

        assert_int_equal(reply.status, 200);
    }
}

TEST(a_client_that_reads_is_kept_before_one_that_does_not)
{
    int reader, dribbler, sleeper;
    size_t n_read = 0;
    uint64_t before;

    start(NULL, 0);
    client_open(&other, http_address(server, 0));
    dribbler = join_with_request("127.0.0.3", "/big");
    sleeper = join_with_request("127.0.0.4", "/big");
    do { /* until the kernel has buffered all that it takes for them */
        before = count_arrived(dribbler) + count_arrived(sleeper);
        pass_look();
    } while (count_arrived(dribbler) + count_arrived(sleeper) > before);
    reader = join_with_request("127.0.0.2", "/big");
    for (unsigned i = 0; i < 2; i++) {
        n_read += read_until_arrived(reader, 256 << 10);
        read_some(dribbler, 1);
        pass_look();
    }
    for (unsigned i = 0; i < MOST - 4; i++)
        join_with_part(address_of(i));
    assert_int_equal(stats().evicted, 0);
    join_with_part(address_of(MOST));
    join_with_part(address_of(MOST + 1));
    wait_until_true(stats().evicted == 2);
    client.fd = dup(dribbler);
    client_await_close(&client);
    client_close(&client);
    client.fd = dup(sleeper);
    client_await_close(&client);
    read_at_least(reader, BIG - n_read);
    assert_int_equal(count_open(crowd + 3, MOST - 2), MOST - 2);
}

/* Sends n requests, of one address or of many. Returns how many were refused. */
static unsigned count_refused(unsigned n, const char *source, const char *path)
{
    uint64_t before = stats().refused_busy;
    struct reply reply;

    for (unsigned i = 0; i < n; i++)
        join_with_request(source ? source : address_of(n_crowd), path);
    reply = client_get(&other, "/hello"); /* after this, the last one was handled */
    assert_int_equal(reply.status, 200);
    return (unsigned)(stats().refused_busy - before);
}

static void fail_unless_told_to_retry(int fd)
{
    struct reply reply;

    client = (struct client){ .fd = dup(fd) };
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 503);
    assert_true(reply_header(&reply, "Retry-After").n > 0);
    client_close(&client);
}

/* All places are taken by requests that are on their way, the first of which has begun with these
 * bytes. Then another takes its place. */
static void take_place_of(const char *begun)
{
    start(NULL, 0);
    open_from(&other, "127.0.0.2");
    client_send_text(&other, begun);
    wait_until_true(stats().connections == 1);
    for (unsigned i = 0; i < MOST; i++)
        join_with_part(address_of(i));
    wait_until_true(stats().evicted == 1);
}

static void fail_unless_retried(const char *rest)
{
    struct reply reply;

    client_send_text(&other, rest);
    reply = client_read(&other, true);
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Retry-After"), "1");
    client_await_close(&other);
    assert_int_equal(stats().refused_busy, 1);
}

TEST(a_request_whose_place_was_taken_before_its_header_came_is_told_to_retry)
{
    take_place_of("GET /he");
    fail_unless_retried("llo HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(a_request_whose_place_was_taken_before_its_first_byte_is_told_to_retry)
{
    take_place_of("");
    fail_unless_retried("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(a_request_whose_place_was_taken_before_its_body_came_is_told_to_retry)
{
    take_place_of("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n0123456789");
    fail_unless_retried("0123456789");
}

TEST(a_scrape_whose_place_was_taken_gets_another)
{
    struct reply reply;

    atomic_store(&is_ready, true);
    take_place_of("GET /scr");
    client_send_text(&other, "ape HTTP/1.1\r\nHost: x\r\n\r\n");
    reply = client_read(&other, true);
    assert_int_equal(reply.status, 200);
    assert_int_equal(stats().evicted, 2);
    reply = client_get(&other, "/hello");
    assert_int_equal(reply.status, 200);
}

TEST(a_request_whose_place_was_taken_gets_one_that_is_free_again)
{
    struct reply reply;

    take_place_of("GET /he");
    client.fd = dup(crowd[0]);
    client_send_text(&client, "llo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client_await_close(&client);
    wait_until_true(stats().connections == MOST);
    client_send_text(&other, "llo HTTP/1.1\r\nHost: x\r\n\r\n");
    reply = client_read(&other, true);
    assert_int_equal(reply.status, 200);
    assert_int_equal(stats().evicted, 1);
}

TEST(who_sends_no_request_after_losing_its_place_is_closed)
{
    take_place_of("GET /he");
    manual_clock_advance(&manual, 3 * NS_PER_SEC);
    assert_int_equal(client_read(&other, true).status, 0);
}

TEST(who_has_sent_nothing_for_seconds_loses_place_and_connection)
{
    start(NULL, 0);
    open_from(&other, "127.0.0.2");
    wait_until_true(stats().connections == 1);
    manual_clock_advance(&manual, 3 * NS_PER_SEC);
    for (unsigned i = 0; i < MOST; i++)
        join_with_part(address_of(i));
    assert_int_equal(client_read(&other, true).status, 0);
}

TEST(connections_without_a_place_have_a_limit)
{
    start(NULL, 0);
    for (unsigned i = 0; i < COUNT(crowd); i++)
        join_with_part(address_of(i));
    assert_int_equal(count_open(crowd, COUNT(crowd)), 2 * MOST);
    open_from(&other, address_of(COUNT(crowd)));
    wait_until_true(stats().evicted == MOST + 1);
    wait_until_true(!is_open(crowd[0]));
    assert_int_equal(count_open(crowd, COUNT(crowd)), 2 * MOST - 1);
}

TEST(of_one_address_only_a_share_of_requests_waits)
{
    start(NULL, 0);
    client_open(&other, http_address(server, 0));
    assert_int_equal(count_refused(SHARE, "127.0.0.2", "/wait"), 0);
    assert_int_equal(count_refused(1, "127.0.0.2", "/wait"), 1);
    fail_unless_told_to_retry(crowd[n_crowd - 1]);
    assert_int_equal(count_refused(1, "127.0.0.2", "/scrape"), 1);
    assert_int_equal(count_refused(1, "127.0.0.3", "/wait"), 0);
    assert_int_equal(count_open(crowd, SHARE), SHARE);
}

TEST(requests_that_wait_leave_connections_for_scrapes_and_those_for_health_checks)
{
    start(NULL, 0);
    client_open(&other, http_address(server, 0));
    assert_int_equal(count_refused(MOST / 2, NULL, "/wait"), 0);
    assert_int_equal(count_refused(1, NULL, "/wait"), 1);
    assert_int_equal(count_refused(MOST / 4, NULL, "/scrape"), 0);
    assert_int_equal(count_refused(1, NULL, "/scrape"), 1);
    for (unsigned i = 0; i < MOST / 4; i++)
        join_with_part(address_of(n_crowd));
    fail_unless_answered();
    assert_int_equal(atomic_load(&n_waiting), MOST / 2 + MOST / 4 + 2);
    assert_int_equal(count_open(crowd, MOST / 2), MOST / 2);
}

TEST(requests_of_a_trusted_proxy_wait_beyond_its_share)
{
    static const struct str proxy = STR_INIT("127.0.0.4");

    start(&proxy, 1);
    client_open(&other, http_address(server, 0));
    assert_int_equal(count_refused(MOST / 2, "127.0.0.4", "/wait"), 0);
}
