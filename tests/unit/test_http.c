/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the HTTP server in src/http. */
#include "test.h"

#include "files.h"
#include "http_client.h"
#include "kernel_time.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "http/server.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Those who share the workers; nobody has no name. */
enum who { ALICE, BOB, CAROL, NOBODY, WHO };
static const char *const who_names[WHO] = { "alice", "bob", "carol", "" };

/* What the handlers of this test and the test itself tell each other. */
struct stage {
    struct http_server *server;
    struct log *log;
    struct http_body *body;
    char pieces[3][30000];
    atomic_int n_released, n_freed_states, n_wait_calls, n_worked, n_turns;
    atomic_bool is_ready, work_is_short; /* short: it does not wait to be let go */
    sem_t work_began, work_may_end;
    sem_t began[WHO], may_end[WHO];
    atomic_int n_began[WHO];
};

static struct stage stage;
static struct client client, other;

static enum http_verdict say_hello(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain", STR("hello\n"));
    return HTTP_DONE;
}

static enum http_verdict give_body(void *ctx, struct http_exchange *x)
{
    struct stage *s = ctx;

    if (http_query(x, "named", 0).p)
        http_add_header(x, "X-Named", "yes");
    http_reply_body(x, s->body);
    return HTTP_DONE;
}

static enum http_verdict echo(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "application/octet-stream", http_request_body(x));
    return HTTP_DONE;
}

static enum http_verdict show_request(void *ctx, struct http_exchange *x)
{
    char text[500];

    (void)ctx;
    snprintf(text, sizeof(text), "path=%.*s a0=%.*s a1=%.*s a2=%s empty=%zu/%d ua=%.*s",
             STR_ARG(http_path(x)), STR_ARG(http_query(x, "a[]", 0)),
             STR_ARG(http_query(x, "a[]", 1)), http_query(x, "a[]", 2).p ? "set" : "none",
             http_query(x, "empty", 0).n, http_query(x, "empty", 0).p != NULL,
             STR_ARG(http_header(x, "user-AGENT")));
    http_add_header(x, "X-One", "1");
    http_add_header(x, "Content-Security-Policy", "default-src 'self'");
    http_reply(x, 200, "text/plain", str_of(text));
    return HTTP_DONE;
}

static void count_freed_state(void *state)
{
    free(state);
    atomic_fetch_add(&stage.n_freed_states, 1);
}

static enum http_verdict wait_for_ready(void *ctx, struct http_exchange *x)
{
    struct stage *s = ctx;
    int **calls = (int **)http_state(x, count_freed_state);
    char text[40];

    if (!*calls)
        *calls = heap_alloc(sizeof(**calls));
    ++**calls;
    atomic_fetch_add(&s->n_wait_calls, 1);
    if (!atomic_load(&s->is_ready))
        return HTTP_WAIT;
    snprintf(text, sizeof(text), "ready after %s\n", **calls > 1 ? "a wait" : "no wait");
    http_reply(x, 200, "text/plain", str_of(text));
    return HTTP_DONE;
}

static enum http_verdict wait_until(void *ctx, struct http_exchange *x)
{
    int64_t until = http_started(x) + 3 * NS_PER_SEC;
    const struct clock *clock = *(const struct clock **)http_state(x, NULL);

    (void)ctx;
    if (!clock) {
        *http_state(x, NULL) = (void *)(uintptr_t)&clock_real;
        http_wait_until(x, until);
        return HTTP_WAIT;
    }
    http_reply(x, 200, "text/plain", STR("the time has come\n"));
    return HTTP_DONE;
}

static enum http_verdict go_to_work(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    (void)x;
    return HTTP_WORK;
}

static void work(void *ctx, struct http_exchange *x)
{
    struct stage *s = ctx;
    char text[100];

    sem_post(&s->work_began);
    if (!atomic_load(&s->work_is_short))
        sem_wait(&s->work_may_end);
    atomic_fetch_add(&s->n_worked, 1);
    snprintf(text, sizeof(text), "worked on %.*s\n", STR_ARG(http_path(x)));
    http_reply(x, 200, "text/plain", str_of(text));
}

static void send_away(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_add_header(x, "Retry-After", "7");
    http_reply(x, 503, "text/plain", STR("come back\n"));
}

static enum http_verdict go_to_shared_work(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_share(x, http_query(x, "who", 0), send_away);
    return HTTP_WORK;
}

static void shared_work(void *ctx, struct http_exchange *x)
{
    struct stage *s = ctx;
    struct str name = http_query(x, "who", 0);
    size_t who = 0;

    while (!str_eq(name, str_of(who_names[who])))
        who++;
    atomic_fetch_add(&s->n_began[who], 1);
    sem_post(&s->began[who]);
    sem_wait(&s->may_end[who]);
    http_reply(x, 200, "text/plain", STR("done\n"));
}

/* Waits for ready, then goes to work; the answer tells whose turn it was at both. */
static enum http_verdict wait_for_turn(void *ctx, struct http_exchange *x)
{
    struct stage *s = ctx;
    bool is_ready = atomic_load(&s->is_ready); /* before a test that counts calls can change it */

    atomic_fetch_add(&s->n_wait_calls, 1);
    if (!is_ready)
        return HTTP_WAIT;
    *http_state(x, NULL) = (void *)(intptr_t)atomic_fetch_add(&s->n_turns, 1);
    return HTTP_WORK;
}

static void tell_turn(void *ctx, struct http_exchange *x)
{
    struct stage *s = ctx;
    char text[100];

    snprintf(text, sizeof(text), "called as %d, worked on as %d",
             (int)(intptr_t)*http_state(x, NULL), atomic_fetch_add(&s->n_worked, 1));
    http_reply(x, 200, "text/plain", str_of(text));
}

static enum http_verdict say_nothing(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    (void)x;
    return HTTP_DONE;
}

static const struct http_route routes[] = {
    { "GET", "/hello", 0, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { "POST", "/hello", 10, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { "GET", "/body", 0, HTTP_WITH_PASSWORD, give_body, NULL, NULL, NULL, false },
    { "POST", "/echo", 100000, HTTP_WITH_PASSWORD, echo, NULL, NULL, NULL, false },
    { "GET", "/request", 0, HTTP_WITH_PASSWORD, show_request, NULL, NULL, NULL, false },
    { "GET", "/static/*", 0, HTTP_WITH_PASSWORD, show_request, NULL, NULL, NULL, false },
    { "GET", "/static/*/hello", 0, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { "POST", "/static/x/hello", 0, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { "GET", "/wait", 0, HTTP_WITH_PASSWORD, wait_for_ready, NULL, NULL, NULL, false },
    { "GET", "/until", 0, HTTP_WITH_PASSWORD, wait_until, NULL, NULL, NULL, false },
    { "GET", "/work", 0, HTTP_WITH_PASSWORD, go_to_work, work, NULL, NULL, false },
    { "GET", "/turn", 0, HTTP_WITH_PASSWORD, wait_for_turn, tell_turn, NULL, NULL, false },
    { "GET", "/shared", 0, HTTP_WITH_PASSWORD, go_to_shared_work, shared_work, NULL, NULL, false },
    { "GET", "/nothing", 0, HTTP_WITH_PASSWORD, say_nothing, NULL, NULL, NULL, false },
    { 0 },
};

static void count_release(void *ctx)
{
    struct stage *s = ctx;

    atomic_fetch_add(&s->n_released, 1);
}

static struct http_body *make_body(struct stage *s)
{
    struct iovec iov[3];

    for (int i = 0; i < 3; i++) {
        memset(s->pieces[i], 'a' + i, sizeof(s->pieces[i]));
        iov[i] = (struct iovec){ s->pieces[i], sizeof(s->pieces[i]) };
    }
    return http_body_new(iov, 3, "text/plain; version=0.0.4", "gzip", count_release, s);
}

static struct http_config ordinary(const struct str *listen)
{
    return (struct http_config){
        .routes = routes,
        .ctx = &stage,
        .listen = listen,
        .n_listen = 1,
        .max_connections = 100,
        .workers = 1,
        .queue = 1,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = &clock_real,
        .log = stage.log,
    };
}

static void start(const struct http_config *config)
{
    struct err err;

    if (http_start(config, &stage.server, &err) < 0)
        fail_msg("%s", err.text);
}

static void start_ordinary(void)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = ordinary(&listen);

    start(&config);
    client_open(&client, http_address(stage.server, 0));
}

static void set_up(void)
{
    memset(&stage, 0, sizeof(stage));
    sem_init(&stage.work_began, 0, 0);
    sem_init(&stage.work_may_end, 0, 0);
    for (int who = 0; who < WHO; who++) {
        sem_init(&stage.began[who], 0, 0);
        sem_init(&stage.may_end[who], 0, 0);
    }
    stage.log = log_new(STDERR_FILENO, LOG_ERROR, &clock_real);
    stage.body = make_body(&stage);
    client.fd = other.fd = -1;
}

static void tear_down(void)
{
    client_close(&client);
    client_close(&other);
    http_body_unref(stage.body);
    stage.server = http_stop(stage.server);
    stage.log = log_free(stage.log);
    sem_destroy(&stage.work_began);
    sem_destroy(&stage.work_may_end);
    assert_int_equal(stage.n_released, 1);
}

FIXTURE(set_up, tear_down)

static struct http_stats stats(void)
{
    struct http_stats now;

    http_stats(stage.server, &now);
    return now;
}

TEST(several_requests_are_answered_on_one_connection)
{
    struct reply reply;

    start_ordinary();
    for (int i = 0; i < 5; i++) {
        reply = client_get(&client, "/hello");
        assert_int_equal(reply.status, 200);
        assert_str(reply.body, "hello\n");
        assert_str(reply_header(&reply, "Content-Type"), "text/plain");
    }
    assert_int_equal(stats().requests, 5);
    assert_int_equal(stats().connections, 1);
}

TEST(every_answer_has_security_headers)
{
    static const char *const paths[] = { "/hello", "/body", "/missing", "/nothing" };

    start_ordinary();
    for (size_t i = 0; i < 4; i++) {
        struct reply reply = client_get(&client, paths[i]);

        assert_str(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
        assert_str(reply_header(&reply, "X-Frame-Options"), "DENY");
        assert_str(reply_header(&reply, "Referrer-Policy"), "no-referrer");
        assert_true(str_starts(reply_header(&reply, "Content-Security-Policy"),
                               STR("default-src 'none'; style-src 'unsafe-inline'")));
        assert_str(reply_header(&reply, "Cache-Control"), "no-store");
        assert_true(reply_header(&reply, "Date").n > 0);
        assert_int_equal(reply_header(&reply, "X-XSS-Protection").n, 0);
    }
}

TEST(a_shared_body_is_sent_piece_by_piece_and_released_once)
{
    struct reply reply;

    start_ordinary();
    for (int i = 0; i < 3; i++) {
        reply = client_get(&client, i == 1 ? "/body?named" : "/body");
        assert_int_equal(reply.status, 200);
        assert_int_equal(reply.body.n, 90000);
        for (size_t k = 0; k < reply.body.n; k++)
            assert_int_equal(reply.body.p[k], 'a' + k / 30000);
        assert_str(reply_header(&reply, "Content-Encoding"), "gzip");
        assert_str(reply_header(&reply, "Content-Type"), "text/plain; version=0.0.4");
        assert_int_equal(reply_header(&reply, "X-Named").n, i == 1 ? 3 : 0);
    }
    assert_int_equal(stage.n_released, 0);
}

TEST(a_body_of_any_number_of_pieces_is_sent_whole)
{
    static const size_t numbers[] = { 1, 2, 255, 256, 257, 1000 };
    static struct iovec iov[1000];
    static char text[120000], headers[8000];

    start_ordinary();
    memset(headers, 'h', sizeof(headers)); /* little of the connection's memory is left */
    memcpy(headers, "X: ", 3);
    memcpy(headers + sizeof(headers) - 3, "\r\n", 3);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('0' + i % 71);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        size_t n = numbers[i], size = sizeof(text) / n;
        struct reply reply;

        for (size_t k = 0; k < n; k++)
            iov[k] = (struct iovec){ text + k * size, size };
        http_body_unref(stage.body);
        stage.body = http_body_new(iov, n, "text/plain", NULL, count_release, &stage);
        reply = client_get_with(&client, "/body", headers);
        assert_int_equal(reply.body.n, n * size);
        assert_memory_equal(reply.body.p, text, n * size);
    }
    client_close(&client);
    wait_until_true(stage.n_released == COUNT(numbers));
    stage.n_released = 0;
}

TEST(an_empty_body_is_an_answer)
{
    struct reply reply;

    http_body_unref(stage.body);
    stage.n_released = 0;
    stage.body = http_body_new(NULL, 0, "text/plain", NULL, count_release, &stage);
    start_ordinary();
    for (int i = 0; i < 2; i++) {
        reply = client_get(&client, "/body");
        assert_int_equal(reply.status, 200);
        assert_int_equal(reply.body.n, 0);
    }
}

TEST(head_gets_the_header_of_get)
{
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "HEAD /body HTTP/1.1\r\nHost: x\r\n\r\n");
    reply = client_read(&client, false);
    assert_int_equal(reply.status, 200);
    assert_str(reply_header(&reply, "Content-Length"), "90000");
    reply = client_get(&client, "/hello");
    assert_str(reply.body, "hello\n");
}

/* Whatever their order: a star at the end is any rest, one before a slash a single part. */
TEST(the_most_specific_route_answers)
{
    static const struct {
        const char *path;
        unsigned status;
        bool says_hello;
    } cases[] = {
        { "/static/a", 200, false },        { "/static/a/hello", 200, true },
        { "/static//hello", 200, true },    { "/static/a/b/hello", 200, false },
        { "/static/a/hello/", 200, false }, { "/static/x/hello", 405, false },
    };

    start_ordinary();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply reply = client_get(&client, cases[i].path);

        if (reply.status != cases[i].status)
            fail_msg("%s is %u", cases[i].path, reply.status);
        if (reply.status == 200)
            assert_int_equal(str_find_str(reply.body, STR("path=")) == reply.body.n,
                             cases[i].says_hello);
        else
            assert_str(reply_header(&reply, "Allow"), "POST");
    }
}

TEST(an_unknown_path_is_404_and_a_wrong_method_405)
{
    struct reply reply;

    start_ordinary();
    reply = client_get(&client, "/hello/");
    assert_int_equal(reply.status, 404);
    assert_true(reply.body.n > 0);
    client_send_text(&client, "DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 405);
    assert_str(reply_header(&reply, "Allow"), "GET, HEAD, POST");
    reply = client_get(&client, "/nothing");
    assert_int_equal(reply.status, 500);
    reply = client_get(&client, "/hello%00/");
    assert_int_equal(reply.status, 400);
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
}

TEST(arguments_and_headers_reach_the_handler_decoded)
{
    struct reply reply;

    start_ordinary();
    reply = client_get_with(&client, "/static/x/y?a%5B%5D=one+1&b=2&a[]=tw%26o&empty",
                            "User-Agent: test\r\n");
    assert_str(reply.body, "path=/static/x/y a0=one 1 a1=tw&o a2=none empty=0/1 ua=test");
    assert_str(reply_header(&reply, "X-One"), "1");
    assert_str(reply_header(&reply, "Content-Security-Policy"), "default-src 'self'");
}

TEST(a_body_is_taken_up_to_its_ceiling)
{
    static char request[200100];
    struct reply reply;
    int head;

    start_ordinary();
    head = snprintf(request, sizeof(request),
                    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    memset(request + head, 'z', 100000);
    client_send(&client, (struct str){ request, (size_t)head + 100000 });
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.body.n, 100000);

    head = snprintf(request, sizeof(request),
                    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n");
    client_send(&client, (struct str){ request, (size_t)head });
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 413);
    client_await_close(&client);
}

TEST(a_small_body_too_many_is_413_and_the_connection_lives)
{
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n"
                              "01234567890");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 413);
    client_send_text(&client, "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 413);
    client_send_text(&client, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
                              "0123456789");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
}

TEST(a_chunked_body_has_the_same_ceiling)
{
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n");
    reply = client_read(&client, true);
    assert_str(reply.body, "abcdefgh");
    client_send_text(&client,
                     "POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "9\r\n012345678\r\n9\r\n012345678\r\n0\r\n\r\n");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 413);
}

TEST(a_waiting_handler_is_called_again_when_woken)
{
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(stage.n_wait_calls == 1);
    http_wake(stage.server);
    wait_until_true(stage.n_wait_calls == 2);
    client_open(&other, http_address(stage.server, 0));
    reply = client_get(&other, "/hello");
    assert_int_equal(reply.status, 200);
    atomic_store(&stage.is_ready, true);
    http_wake(stage.server);
    reply = client_read(&client, true);
    assert_str(reply.body, "ready after a wait\n");
    wait_until_true(stage.n_freed_states == 1);
}

TEST(a_waiting_handler_is_called_again_at_its_time)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = ordinary(&listen);
    struct manual_clock manual;
    struct reply reply;

    manual_clock_init(&manual, 0, 100 * NS_PER_SEC);
    config.clock = &manual.clock;
    start(&config);
    client_open(&client, http_address(stage.server, 0));
    client_open(&other, http_address(stage.server, 0));
    client_send_text(&client, "GET /until HTTP/1.1\r\nHost: x\r\n\r\n");
    reply = client_get(&other, "/hello");
    assert_int_equal(reply.status, 200);
    manual_clock_advance(&manual, 3 * NS_PER_SEC);
    reply = client_get(&other, "/hello"); /* the loop goes round and looks at the clock */
    reply = client_read(&client, true);
    assert_str(reply.body, "the time has come\n");
    client_close(&client);
    client_close(&other);
    stage.server = http_stop(stage.server);
    manual_clock_destroy(&manual);
}

TEST(work_runs_elsewhere_and_past_the_queue_there_is_503)
{
    static struct client third;
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    sem_wait(&stage.work_began);
    client_open(&other, http_address(stage.server, 0));
    client_send_text(&other, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n"); /* is queued */
    wait_until_true(stats().requests == 2);
    client_open(&third, http_address(stage.server, 0));
    reply = client_get(&third, "/work");
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Retry-After"), "1");
    assert_int_equal(stats().refused_busy, 1);
    reply = client_get(&third, "/hello");
    assert_int_equal(reply.status, 200);
    sem_post(&stage.work_may_end);
    sem_post(&stage.work_may_end);
    reply = client_read(&client, true);
    assert_str(reply.body, "worked on /work\n");
    reply = client_read(&other, true);
    assert_str(reply.body, "worked on /work\n");
    client_close(&third);
}

TEST(those_who_wait_get_their_turn_in_the_order_they_came)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = ordinary(&listen);
    static struct client clients[4];

    config.queue = 4;
    start(&config);
    for (int i = 0; i < 4; i++) {
        client_open(&clients[i], http_address(stage.server, 0));
        client_send_text(&clients[i], "GET /turn HTTP/1.1\r\nHost: x\r\n\r\n");
        wait_until_true(stage.n_wait_calls == i + 1);
    }
    atomic_store(&stage.is_ready, true);
    http_wake(stage.server);
    for (int i = 0; i < 4; i++) {
        struct reply reply = client_read(&clients[i], true);
        char expected[100];

        snprintf(expected, sizeof(expected), "called as %d, worked on as %d", i, i);
        assert_str(reply.body, expected);
        client_close(&clients[i]);
    }
}

TEST(when_the_queue_is_full_the_last_to_come_is_refused)
{
    static struct client third;
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    sem_wait(&stage.work_began);
    client_open(&other, http_address(stage.server, 0));
    client_send_text(&other, "GET /turn HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(stage.n_wait_calls == 1);
    client_open(&third, http_address(stage.server, 0));
    client_send_text(&third, "GET /turn HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(stage.n_wait_calls == 2);
    atomic_store(&stage.is_ready, true);
    http_wake(stage.server);
    reply = client_read(&third, true);
    assert_int_equal(reply.status, 503);
    sem_post(&stage.work_may_end);
    reply = client_read(&other, true);
    assert_int_equal(reply.status, 200);
    client_close(&third);
}

static void start_shared(unsigned workers, unsigned queue)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = ordinary(&listen);

    config.workers = workers;
    config.queue = queue;
    start(&config);
}

static void ask_as(struct client *of, enum who who)
{
    char request[100];

    snprintf(request, sizeof(request), "GET /shared?who=%s HTTP/1.1\r\nHost: x\r\n\r\n",
             who_names[who]);
    client_open(of, http_address(stage.server, 0));
    client_send_text(of, request);
}

/* So many more requests, all of which run at the end. */
static void begin_as(struct client *of, enum who who, int n)
{
    for (int i = 0; i < n; i++) {
        ask_as(&of[i], who);
        sem_wait(&stage.began[who]);
    }
}

static void end_as(struct client *of, enum who who, int n)
{
    for (int i = 0; i < n; i++)
        sem_post(&stage.may_end[who]);
    for (int i = 0; i < n; i++) {
        assert_int_equal(client_read(&of[i], true).status, 200);
        client_close(&of[i]);
    }
}

/* What was asked for before this is on the pool after it. */
static void settle(void)
{
    client_open(&client, http_address(stage.server, 0));
    assert_int_equal(client_get(&client, "/hello").status, 200);
    client_close(&client);
}

TEST(one_viewers_many_do_not_keep_another_waiting)
{
    enum { MANY = 10 };
    static struct client many[MANY];

    start_shared(8, 30);
    for (int i = 0; i < MANY; i++)
        ask_as(&many[i], ALICE);
    wait_until_true(stats().requests == MANY);
    settle();
    begin_as(&other, BOB, 1);
    end_as(&other, BOB, 1);
    wait_until_true(stage.n_began[ALICE] == 3);
    begin_as(&other, CAROL, 1);
    assert_int_equal(stage.n_began[ALICE], 3);
    end_as(&other, CAROL, 1);
    end_as(many, ALICE, MANY);
    assert_int_equal(stage.n_began[ALICE], MANY);
}

/* Five workers, of which one viewer gets two. */
TEST(who_has_nothing_running_comes_before_anothers_second)
{
    static struct client alice[2], carol[2], nobody[2];

    start_shared(5, 30);
    begin_as(alice, ALICE, 1);
    begin_as(carol, CAROL, 2);
    begin_as(nobody, NOBODY, 2);
    ask_as(&alice[1], ALICE);
    wait_until_true(stats().requests == 6);
    ask_as(&other, BOB);
    wait_until_true(stats().requests == 7);
    settle();
    sem_post(&stage.may_end[CAROL]); /* which of the two ends first is up to the machine */
    sem_wait(&stage.began[BOB]);
    assert_int_equal(stage.n_began[ALICE], 1);
    end_as(&other, BOB, 1);
    sem_wait(&stage.began[ALICE]);
    end_as(alice, ALICE, 2);
    end_as(carol, CAROL, 2); /* with one post too many */
    end_as(nobody, NOBODY, 2);
}

/* Of two workers and two places one gets one of each. */
static void check_refusal_of(enum who who)
{
    static struct client running, waiting, late;
    uint64_t refused = stats().refused_busy, requests;
    struct reply reply;

    begin_as(&running, who, 1);
    requests = stats().requests;
    ask_as(&waiting, who);
    wait_until_true(stats().requests == requests + 1);
    ask_as(&late, who);
    reply = client_read(&late, true);
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Retry-After"), "7");
    assert_str(reply.body, "come back\n");
    assert_int_equal(stats().refused_busy, refused + 1);
    client_close(&late);
    begin_as(&other, BOB, 1);
    end_as(&other, BOB, 1);
    end_as(&running, who, 1);
    end_as(&waiting, who, 1);
    sem_wait(&stage.began[who]);
    begin_as(&late, who, 1);
    end_as(&late, who, 1);
}

TEST(who_asks_for_too_much_at_once_is_told_to_come_back)
{
    start_shared(2, 2);
    check_refusal_of(ALICE);
    check_refusal_of(NOBODY); /* is known by an address */
}

TEST(what_is_nobodys_may_have_all_workers)
{
    static struct client third;

    start_shared(2, 2);
    client_open(&client, http_address(stage.server, 0));
    client_send_text(&client, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    client_open(&third, http_address(stage.server, 0));
    client_send_text(&third, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    sem_wait(&stage.work_began);
    sem_wait(&stage.work_began);
    sem_post(&stage.work_may_end);
    sem_post(&stage.work_may_end);
    assert_int_equal(client_read(&client, true).status, 200);
    assert_int_equal(client_read(&third, true).status, 200);
    client_close(&third);
}

TEST(a_client_that_leaves_while_it_waits_does_no_harm)
{
    struct linger reset = { .l_onoff = 1 };
    struct reply reply;

    start_ordinary();
    client_open(&other, http_address(stage.server, 0));
    client_send_text(&client, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(stage.n_wait_calls == 1);
    client_close(&client);
    client_send_text(&other, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    sem_wait(&stage.work_began);
    setsockopt(other.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    client_close(&other);
    atomic_store(&stage.is_ready, true);
    http_wake(stage.server);
    sem_post(&stage.work_may_end);
    wait_until_true(stage.n_freed_states == 1 && stats().connections == 0);
    client_open(&client, http_address(stage.server, 0));
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
}

TEST(a_half_closed_client_gets_its_answer)
{
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(client.fd, SHUT_WR);
    wait_until_true(stage.n_wait_calls == 1);
    atomic_store(&stage.is_ready, true);
    http_wake(stage.server);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    client_await_close(&client);
}

TEST(stopping_answers_what_is_under_way)
{
    struct reply reply;

    start_ordinary();
    client_open(&other, http_address(stage.server, 0));
    client_send_text(&client, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n");
    sem_wait(&stage.work_began);
    sem_post(&stage.work_may_end);
    stage.server = http_stop(stage.server);
    reply = client_read(&client, true);
    assert_str(reply.body, "worked on /work\n");
    client_await_close(&client);
    client_await_close(&other);
}

static atomic_bool has_stopped;

/* While a server stops: the time that it gives to what is under way passes. */
static void *let_time_pass(void *arg)
{
    while (!atomic_load(&has_stopped)) {
        time_leap(NS_PER_SEC / 10);
        poll(NULL, 0, 5);
    }
    return arg;
}

static void stop_in_short_time(void)
{
    pthread_t thread;

    atomic_store(&has_stopped, false);
    assert_int_equal(pthread_create(&thread, NULL, let_time_pass, NULL), 0);
    stage.server = http_stop(stage.server);
    atomic_store(&has_stopped, true);
    pthread_join(thread, NULL);
}

TEST(stopping_does_not_wait_for_a_handler_that_never_ends)
{
    struct reply reply;

    start_ordinary();
    client_send_text(&client, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(stage.n_wait_calls == 1);
    stop_in_short_time(); /* returns although is_ready is false */
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 503);
    assert_int_equal(stage.n_freed_states, 1);
}

enum { VISITORS = 6, STOPS = 3 };

static atomic_bool visit_is_over;

/* Sends this and that, in whole and in part, and closes now and then without reading. Never waits
 * for the reply to a part, which the server does not send: all visitors could stand still. */
static void *visit(void *arg)
{
    static const char *const requests[] = {
        "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /work HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /body HTTP/1.1\r\nHost: x\r\n\r\nGET /until HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nabcd",
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /hel",
    };
    unsigned turn = (unsigned)(uintptr_t)arg;
    char address[100], sink[1000];

    snprintf(address, sizeof(address), "%s", http_address(stage.server, 0));
    for (; !atomic_load(&visit_is_over); turn++) {
        const char *request = requests[turn % 6];
        bool may_wait = turn % 5 == 0 && turn % 6 != 3 && turn % 6 != 5;
        int fd = client_connect(address);

        if (fd < 0)
            continue;
        send(fd, request, strlen(request), MSG_NOSIGNAL);
        if (turn % 3)
            (void)!recv(fd, sink, sizeof(sink), may_wait ? 0 : MSG_DONTWAIT);
        close(fd);
    }
    return NULL;
}

TEST(it_can_be_stopped_in_the_middle_of_anything)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = ordinary(&listen);
    pthread_t visitors[VISITORS];
    int n_wait_calls;

    atomic_store(&stage.work_is_short, true);
    config.max_connections = 10;
    for (int stop = 0; stop < STOPS; stop++) {
        start(&config);
        atomic_store(&stage.is_ready, true);
        atomic_store(&visit_is_over, false);
        for (uintptr_t i = 0; i < VISITORS; i++)
            assert_int_equal(pthread_create(&visitors[i], NULL, visit, (void *)(i * 7)), 0);
        wait_until_true(stats().requests >= 20 + (unsigned)stop * 5);
        n_wait_calls = stage.n_wait_calls;
        atomic_store(&stage.is_ready, false);
        wait_until_true(stage.n_wait_calls > n_wait_calls);
        atomic_store(&visit_is_over, stop % 3 == 0);
        stop_in_short_time();
        atomic_store(&visit_is_over, true);
        for (int i = 0; i < VISITORS; i++)
            pthread_join(visitors[i], NULL);
    }
}

TEST(a_taken_port_is_one_clear_sentence)
{
    struct http_config config;
    struct http_server *second;
    struct str listen;
    char sentence[300];
    struct err err;

    start_ordinary();
    listen = str_skip(str_of(http_address(stage.server, 0)), strlen("http://"));
    config = ordinary(&listen);
    assert_int_equal(http_start(&config, &second, &err), -EADDRINUSE);
    snprintf(sentence, sizeof(sentence),
             "port %.*s on 127.0.0.1 is taken, by another sonde or exporter? Choose another with "
             "--web.listen-address",
             STR_ARG(str_skip(listen, strlen("127.0.0.1:"))));
    assert_string_equal(err.text, sentence);
}

TEST(a_port_taken_on_one_address_of_a_name_is_taken)
{
    struct str address, listen;
    struct http_config config;
    struct http_server *second;
    char text[100];
    struct err err;

    start_ordinary();
    address = str_of(http_address(stage.server, 0));
    snprintf(text, sizeof(text), "localhost:%s", address.p + strlen("http://127.0.0.1:"));
    listen = str_of(text);
    config = ordinary(&listen);
    assert_int_equal(http_start(&config, &second, &err), -EADDRINUSE);
    assert_contains(err.text, "on localhost is taken");
}

TEST(addresses_that_are_none_are_refused)
{
    static const struct str wrong[] = { STR_INIT("9092"),       STR_INIT("localhost"),
                                        STR_INIT(":http"),      STR_INIT(":70000"),
                                        STR_INIT("::1:9092"),   STR_INIT("unix:"),
                                        STR_INIT("host:\n9092") };
    struct http_server *server;
    struct err err;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct http_config config = ordinary(&wrong[i]);

        assert_int_equal(http_start(&config, &server, &err), -EINVAL);
        assert_true(strchr(err.text, '\n') == NULL && strlen(err.text) > 20);
    }
}

TEST(several_addresses_are_served_at_once)
{
    static const struct str listen[] = { STR_INIT("127.0.0.1:0"), STR_INIT("[::1]:0"),
                                         STR_INIT(":0") };
    struct http_config config = ordinary(listen);
    struct reply reply;

    need("ipv6");
    config.n_listen = 3;
    start(&config);
    assert_contains(http_address(stage.server, 0), "http://127.0.0.1:");
    assert_contains(http_address(stage.server, 1), "http://[::1]:");
    assert_contains(http_address(stage.server, 2), "http://localhost:");
    assert_null(http_address(stage.server, 3));
    for (size_t i = 0; i < 3; i++) {
        client_open(&client, http_address(stage.server, i));
        reply = client_get(&client, "/hello");
        assert_int_equal(reply.status, 200);
        client_close(&client);
    }
}

TEST(a_unix_socket_is_served_and_a_stale_one_replaced)
{
    const char *path = test_path("s");
    char address[110];
    struct sockaddr_un stale = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct http_config config;
    struct http_server *second;
    struct str listen;
    struct reply reply;
    struct stat info;
    struct err err;

    snprintf(address, sizeof(address), "unix:%s", path);
    snprintf(stale.sun_path, sizeof(stale.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&stale, sizeof(stale)), 0);
    close(fd); /* the file stays, nobody listens */
    listen = str_of(address);
    config = ordinary(&listen);
    start(&config);
    assert_string_equal(http_address(stage.server, 0), address);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0660);
    client_open(&client, address);
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
    assert_int_equal(http_start(&config, &second, &err), -EADDRINUSE);
    assert_contains(err.text, path);
    stage.server = http_stop(stage.server);
    assert_int_equal(stat(path, &info), -1);

    write_file(path, "");
    assert_int_equal(http_start(&config, &second, &err), -EEXIST);
    assert_int_equal(stat(path, &info), 0);
}

TEST(sockets_passed_by_systemd_are_used)
{
    static const struct str default_address = STR_INIT("127.0.0.1:0");
    struct http_config config = ordinary(&default_address);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *path = test_path("s");
    char number[20];
    int before = fcntl(3, F_DUPFD_CLOEXEC, 100);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct http_server *none;
    struct reply reply;
    struct err err;

    config.n_listen = 0;
    assert_int_equal(http_start(&config, &none, &err), -EINVAL);
    assert_contains(err.text, "--web.listen-address");
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(dup2(fd, 3), 3);
    if (fd != 3)
        close(fd);
    snprintf(number, sizeof(number), "%d", (int)getpid());
    setenv("LISTEN_PID", number, 1);
    setenv("LISTEN_FDS", "1", 1);
    assert_int_equal(http_start(&config, &none, &err), -EINVAL); /* it does not listen yet */
    assert_int_equal(listen(3, 10), 0);
    config.n_listen = 1; /* which they take the place of */
    start(&config);
    assert_null(http_address(stage.server, 1));
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    assert_true(fcntl(3, F_GETFD) & FD_CLOEXEC);
    client_open(&client, http_address(stage.server, 0));
    reply = client_get(&client, "/hello");
    assert_int_equal(reply.status, 200);
    stage.server = http_stop(stage.server);
    assert_int_equal(access(path, F_OK), 0); /* systemd's, not ours to remove */
    if (before >= 0) {
        dup2(before, 3);
        close(before);
    }
}
