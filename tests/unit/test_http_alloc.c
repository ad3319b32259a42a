/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Giving a ready body allocates nothing in our code. */
#include "test.h"

#include "count_allocations.h"
#include "http_client.h"

#include "http/server.h"

enum { SCRAPES = 1000 };

static struct http_body *body;
static struct client client;

static enum http_verdict give_body(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    if (http_query(x, "collect[]", 0).n + http_header(x, "Accept").n > 0)
        http_reply_body(x, body);
    return HTTP_DONE;
}

static enum http_verdict say_hello(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain", STR("hello\n"));
    return HTTP_DONE;
}

static const struct http_route routes[] = {
    { "GET", "/metrics", 0, HTTP_WITH_PASSWORD, give_body, NULL, NULL, NULL, false },
    { "GET", "/hello", 0, HTTP_WITH_PASSWORD, say_hello, NULL, NULL, NULL, false },
    { 0 },
};

static struct http_server *start(void)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 10,
        .workers = 1,
        .queue = 1,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = &clock_real,
    };
    struct http_server *server = NULL;
    struct err err;

    if (http_start(&config, &server, &err) < 0)
        fail_msg("%s", err.text);
    return server;
}

/* What so many scrapes on a connection that is open allocate. */
static unsigned long count(const char *path)
{
    unsigned long before = atomic_load(&n_allocations);

    for (int i = 0; i < SCRAPES; i++) {
        struct reply reply = client_get_with(&client, path, "Accept: text/plain\r\n");

        assert_int_equal(reply.status, 200);
    }
    return atomic_load(&n_allocations) - before;
}

TEST(a_scrape_allocates_nothing)
{
    static char text[20000];
    struct iovec pieces[] = { { text, 10000 }, { text + 10000, 10000 } };
    struct http_server *server = start();

    body = http_body_new(pieces, 2, "text/plain", NULL, NULL, NULL);
    client_open(&client, http_address(server, 0));
    client_get_with(&client, "/metrics", "Accept: text/plain\r\n"); /* makes the response */
    assert_int_equal(count("/metrics?collect[]=jobs"), 0);
    assert_true(count("/hello") >= SCRAPES); /* the counter counts */
    client_close(&client);

    for (int i = 0; i < 3; i++) { /* neither does a new connection */
        unsigned long before = atomic_load(&n_allocations);

        client_open(&client, http_address(server, 0));
        client_get_with(&client, "/metrics", "Accept: text/plain\r\n");
        assert_int_equal(atomic_load(&n_allocations), before);
        client_close(&client);
    }
    http_body_unref(body);
    http_stop(server);
}
