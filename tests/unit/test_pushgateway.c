/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Against a server in this process that does what a Pushgateway does, or what one must not. The
 * real one: tests/e2e/test_push.py. */
#include "test.h"

#include "certificates.h"
#include "files.h"
#include "http_peer.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/thread.h"
#include "push/pushgateway.h"

enum { MOST_TEXT = 1000 };

struct fixture {
    struct http_peer *gateway;
    struct certificate *certificate; /* NULL: no TLS */
    const char *failing;             /* part of the URLs that get 500, or NULL */
    struct manual_clock manual;
    struct push_config config;
    struct pusher *pusher;
    struct err err;
    char url[200];
};

static struct fixture *fixture;

static void reply(const struct peer_request *request, struct peer_reply *ret)
{
    ret->headers = "Location: /elsewhere";
    if (fixture->failing && strstr(request->path, fixture->failing))
        ret->status = 500;
}

static void open_gateway(void)
{
    fixture->gateway = peer_open(fixture->certificate);
    peer_reply_by(fixture->gateway, reply);
}

static void set_status(unsigned status, const char *words)
{
    peer_reply_with(fixture->gateway,
                    (struct peer_reply){ .status = status, .body = str_of(words) });
}

static const struct peer_request *request(size_t n)
{
    return peer_request(fixture->gateway, n);
}

static size_t count_requests(void)
{
    return peer_requests(fixture->gateway);
}

static struct push_stats stats_of(void)
{
    struct push_stats stats;

    pusher_stats(fixture->pusher, &stats);
    return stats;
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    open_gateway();
    manual_clock_init(&fixture->manual, 1700000000 * NS_PER_SEC, 1000 * NS_PER_SEC);
    snprintf(fixture->url, sizeof(fixture->url), "%s", peer_url(fixture->gateway));
    fixture->config = (struct push_config){
        .url = fixture->url,
        .job = "jobs_exporter",
        .timeout_ns = TEST_DEADLINE,
        .retry_ns = 4 * NS_PER_SEC,
        .max_backoff_ns = 10 * NS_PER_SEC,
        .max_text = MOST_TEXT,
        .clock = &clock_real,
        .log = test_log(&clock_real),
    };
}

static void teardown(void)
{
    peer_release(fixture->gateway);
    pusher_stop(fixture->pusher, TEST_DEADLINE);
    peer_free(fixture->gateway);
    if (fixture->certificate)
        certificate_free(fixture->certificate);
    free(fixture->certificate);
    manual_clock_destroy(&fixture->manual);
    log_free(fixture->config.log);
    free(fixture);
}

FIXTURE(setup, teardown)

static void start(void)
{
    if (pusher_start(&fixture->config, &fixture->pusher, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void put(const char *instance, const char *text)
{
    pusher_put(fixture->pusher, instance, str_of(text));
}

static void stop(int64_t within_ns)
{
    fixture->pusher = pusher_stop(fixture->pusher, within_ns);
}

TEST(a_text_is_put_in_its_place)
{
    start();
    put("n1", "a 1\n");
    assert_string_equal(request(1)->method, "PUT");
    assert_string_equal(request(1)->target, "/metrics/job/jobs_exporter/instance/n1");
    assert_str(request(1)->body, "a 1\n");
    assert_string_equal(peer_header(request(1), "Content-Type"),
                        "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(peer_header(request(1), "Authorization"), "");
    assert_string_equal(peer_header(request(1), "Content-Encoding"), "");
    wait_until_true(stats_of().pushes == 1);
    assert_true(stats_of().is_up);
    assert_true(stats_of().last_success_wall_ns > 0);
    assert_true(stats_of().last_seconds > 0);
    assert_string_equal(logged().p, "");
}

TEST(what_cannot_stand_in_a_path_is_put_there_in_base64)
{
    static const struct {
        const char *instance, *path;
    } rows[] = {
        { "node-1.cluster_a", "/instance/node-1.cluster_a" },
        { "", "/instance@base64/=" },
        { "a/b", "/instance@base64/YS9i" },
        { ".", "/instance@base64/Lg" },
        { "..", "/instance@base64/Li4" },
        { "a b?#%2F\r\n", "/instance@base64/YSBiPyMlMkYNCg" },
        { "\xc3\xbc", "/instance@base64/w7w" },
        /* What is no UTF-8 becomes U+FFFD. */
        { "\xff", "/instance@base64/77-9" },
        { "a\xc3", "/instance@base64/Ye-_vQ" },
    };

    fixture->config.job = "a job";
    start();
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[200];

        put(rows[i].instance, "a 1\n");
        snprintf(expected, sizeof(expected), "/metrics/job@base64/YSBqb2I%s", rows[i].path);
        assert_string_equal(request(i + 1)->target, expected);
    }
}

TEST(a_prefix_stays_and_the_user_goes_into_a_header)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://alice:s%%65cret@127.0.0.1:%d/push/",
             peer_port(fixture->gateway));
    start();
    put("n1", "a 1\n");
    assert_string_equal(request(1)->target, "/push/metrics/job/jobs_exporter/instance/n1");
    assert_string_equal(peer_header(request(1), "Authorization"), "Basic YWxpY2U6c2VjcmV0");
    stop(TEST_DEADLINE);
    assert_string_equal(request(2)->method, "DELETE");
    assert_string_equal(peer_header(request(2), "Authorization"), "Basic YWxpY2U6c2VjcmV0");
}

static void write_password(const char *text)
{
    fixture->config.password_file = write_file("password", text);
}

TEST(a_password_may_change_in_its_file)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://alice@127.0.0.1:%d",
             peer_port(fixture->gateway));
    write_password("secret\n");
    start();
    put("n1", "a 1\n");
    assert_string_equal(peer_header(request(1), "Authorization"), "Basic YWxpY2U6c2VjcmV0");
    write_password("other");
    put("n1", "a 2\n");
    assert_string_equal(peer_header(request(2), "Authorization"), "Basic YWxpY2U6b3RoZXI=");
}

TEST(a_password_is_never_told)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://alice:secret@127.0.0.1:%d/secret",
             peer_port(fixture->gateway));
    peer_close(fixture->gateway);
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().failures == 1);
    stop(TEST_DEADLINE);
    assert_int_equal(count_logged("\n"), 2);
    assert_int_equal(count_logged("cannot connect to http://127.0.0.1:"), 2);
    assert_int_equal(count_logged("secret"), 0);
    assert_int_equal(count_logged("alice"), 0);
}

static void assert_refused(int code, const char *sentence)
{
    fixture->err.text[0] = '\0';
    assert_int_equal(pusher_start(&fixture->config, &fixture->pusher, &fixture->err), code);
    assert_null(fixture->pusher);
    assert_contains(fixture->err.text, sentence);
}

TEST(what_cannot_be_used_is_refused_at_the_start)
{
    static const char *const urls[] = { "", "gateway:9091", "ftp://gateway", "http://gateway/?a=b",
                                        "http://gateway/#a" };

    for (size_t i = 0; i < COUNT(urls); i++) {
        fixture->config.url = urls[i];
        assert_refused(-EINVAL, "http://HOST:PORT");
    }
    fixture->config.url = fixture->url;
    fixture->config.job = "";
    assert_refused(-EINVAL, "empty job name");
    fixture->config.job = "x";
    write_password("secret");
    assert_refused(-EINVAL, "http://USER@127.0.0.1:");
    fixture->config.url = "http://alice@127.0.0.1:1";
    write_password("\n");
    assert_refused(-EINVAL, "one line is expected");
    write_password("secret\nand more\n");
    assert_refused(-EINVAL, "one line is expected");
    assert_null(strstr(fixture->err.text, "secret"));
    fixture->config.password_file = "/nowhere/password";
    assert_refused(-ENOENT, "cannot read the password file /nowhere/password");
}

TEST(the_newest_text_takes_the_place_of_one_that_waits)
{
    start();
    peer_hold(fixture->gateway, "");
    put("n1", "a 1\n");
    assert_str(request(1)->body, "a 1\n");
    put("n1", "a 2\n");
    put("n2", "b 1\n");
    put("n1", "a 3\n");
    peer_release(fixture->gateway);
    wait_until_true(stats_of().pushes == 3);
    assert_int_equal(count_requests(), 3);
    assert_str(request(2)->body, "b 1\n");
    assert_str(request(3)->body, "a 3\n");
    assert_int_equal(stats_of().replaced, 1);
}

/* Waits until it is in back-off, then lets less time pass than that can take, and then all of it.
 */
static void pass_backoff(int64_t seconds)
{
    size_t n = count_requests();

    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, seconds * NS_PER_SEC * 3 / 4 - 1);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(count_requests(), n);
    manual_clock_advance(&fixture->manual, seconds * NS_PER_SEC / 4 + 1);
    request(n + 1);
}

TEST(a_failure_is_tried_again_after_longer_and_longer_times)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    set_status(503, "overloaded");
    put("n1", "a 1\n");
    request(1);
    pass_backoff(4);
    pass_backoff(8);
    pass_backoff(10);
    set_status(202, "");
    pass_backoff(10);
    wait_until_true(stats_of().pushes == 1);
    assert_int_equal(stats_of().failures, 4);
    assert_int_equal(stats_of().replaced, 0);
    assert_str(request(5)->body, "a 1\n");

    /* From the beginning again. */
    set_status(507, "");
    put("n1", "a 2\n");
    request(6);
    set_status(200, "");
    pass_backoff(4);
}

TEST(each_failing_is_told_once_and_so_is_its_end)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    set_status(503, "over\nloaded\x1b[2J");
    put("n1", "a 1\n");
    request(1);
    pass_backoff(4);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(count_logged("\n"), 1);
    assert_int_equal(count_logged("cannot push to the Pushgateway"), 1);
    assert_int_equal(count_logged("answered with status 503; see its log"), 1);
    assert_int_equal(count_logged("answer=\"over\\u000aloaded\\u001b[2J\""), 1);
    set_status(200, "");
    pass_backoff(8);
    wait_until_true(count_logged("\n") == 2);
    assert_int_equal(count_logged("msg=\"the Pushgateway takes what is pushed\""), 1);
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 2);
    assert_int_equal(count_logged("\n"), 2);
}

TEST(a_new_text_does_not_end_the_backoff)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    set_status(413, "");
    put("n1", "a 1\n");
    request(1);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    put("n1", "a 2\n");
    put("n1", "a 3\n");
    set_status(200, "");
    pass_backoff(4);
    wait_until_true(stats_of().pushes == 1);
    assert_str(request(2)->body, "a 3\n");
    assert_int_equal(stats_of().replaced, 2);
}

TEST(a_text_that_was_refused_is_not_sent_again)
{
    static const unsigned statuses[] = { 400, 401, 404, 302 };

    fixture->config.retry_ns = fixture->config.max_backoff_ns = 1;
    start();
    for (size_t i = 0; i < COUNT(statuses); i++) {
        set_status(statuses[i], "it is not good");
        put("n1", "a 1\n");
        wait_until_true(stats_of().failures == i + 1);
    }
    set_status(200, "");
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 1);
    assert_int_equal(count_requests(), COUNT(statuses) + 1);
    for (size_t i = 0; i < COUNT(statuses) + 1; i++)
        assert_string_equal(request(i + 1)->method, "PUT");
    assert_int_equal(count_logged("\n"), 2);
    assert_int_equal(count_logged("answer=\"it is not good\""), 1);
}

TEST(a_slow_gateway_is_not_waited_for)
{
    fixture->config.timeout_ns = NS_PER_SEC / 10;
    fixture->config.max_backoff_ns = fixture->config.retry_ns = NS_PER_MS;
    start();
    peer_hold(fixture->gateway, "");
    put("n1", "a 1\n");
    wait_until_true(stats_of().failures >= 2);
    assert_false(stats_of().is_up);
    assert_int_equal(count_logged("did not answer in time"), 1);
    peer_release(fixture->gateway);
    wait_until_true(stats_of().is_up);
}

TEST(a_gateway_may_go_and_come_back)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    peer_close(fixture->gateway);
    put("n1", "a 2\n");
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, 4 * NS_PER_SEC);
    wait_until_true(stats_of().failures == 2);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    peer_reopen(fixture->gateway);
    manual_clock_advance(&fixture->manual, 10 * NS_PER_SEC);
    assert_str(request(2)->body, "a 2\n");
    wait_until_true(stats_of().is_up);
}

TEST(a_group_that_fails_does_not_hold_up_the_others)
{
    fixture->config.max_backoff_ns = fixture->config.retry_ns = NS_PER_MS;
    fixture->failing = "n1";
    start();
    put("n1", "a 1\n");
    put("n2", "b 1\n");
    put("n3", "c 1\n");
    wait_until_true(stats_of().pushes == 2);
    assert_int_equal(count_logged("\n"), 1);
}

TEST(a_text_over_the_ceiling_is_refused_and_counted)
{
    static char large[MOST_TEXT + 1];

    start();
    pusher_put(fixture->pusher, "n1", (struct str){ large, sizeof(large) });
    pusher_put(fixture->pusher, "n1", (struct str){ large, sizeof(large) });
    assert_int_equal(stats_of().refused, 2);
    assert_int_equal(count_logged("\n"), 1);
    assert_int_equal(count_logged("bytes=1001 most_bytes=1000"), 1);
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    assert_int_equal(count_requests(), 1);
    wait_until_true(count_logged("\n") == 2);
}

TEST(no_more_instances_are_kept_than_there_are_places_for)
{
    char name[PUSH_INSTANCE + 2];

    start();
    for (unsigned i = 0; i < PUSH_GROUPS + 3; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        put(name, "a 1\n");
    }
    assert_int_equal(stats_of().refused, 3);
    assert_int_equal(count_logged("\n"), 1);
    wait_until_true(stats_of().pushes == PUSH_GROUPS);
    put("n0", "a 2\n");
    wait_until_true(stats_of().pushes == PUSH_GROUPS + 1);
    stop(TEST_DEADLINE);
    assert_int_equal(count_requests(), 2 * PUSH_GROUPS + 1);
}

TEST(a_name_that_is_too_long_is_refused)
{
    char name[PUSH_INSTANCE + 2];

    memset(name, '\xff', sizeof(name));
    name[PUSH_INSTANCE + 1] = '\0';
    start();
    put(name, "a 1\n");
    assert_int_equal(stats_of().refused, 1);
    name[PUSH_INSTANCE] = '\0';
    put(name, "a 1\n");
    wait_until_true(stats_of().pushes == 1);
}

TEST(each_group_is_deleted_once_at_the_end)
{
    start();
    put("n1", "a 1\n");
    put("a/b", "b 1\n");
    wait_until_true(stats_of().pushes == 2);
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 3);
    stop(TEST_DEADLINE);
    assert_int_equal(count_requests(), 5);
    assert_string_equal(request(4)->method, "DELETE");
    assert_string_equal(request(4)->target, "/metrics/job/jobs_exporter/instance/n1");
    assert_string_equal(request(5)->method, "DELETE");
    assert_string_equal(request(5)->target, "/metrics/job/jobs_exporter/instance@base64/YS9i");
    assert_string_equal(logged().p, "");
}

TEST(what_is_put_when_the_end_has_begun_is_dropped)
{
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    pusher_end(fixture->pusher, TEST_DEADLINE);
    put("n1", "a 2\n");
    put("n2", "a 1\n");
    assert_string_equal(request(2)->method, "DELETE"); /* before anybody waits for the end */
    stop(0);
    assert_int_equal(count_requests(), 2);
    assert_string_equal(logged().p, "");
}

TEST(what_was_never_pushed_is_not_deleted)
{
    start();
    stop(TEST_DEADLINE);
    assert_int_equal(count_requests(), 0);
}

TEST(a_group_is_deleted_although_pushes_fail)
{
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    set_status(500, "");
    put("n1", "a 2\n");
    wait_until_true(stats_of().failures == 1);
    set_status(202, "");
    stop(TEST_DEADLINE);
    assert_int_equal(count_requests(), 3);
    assert_string_equal(request(3)->method, "DELETE");
}

TEST(the_end_is_not_held_up_by_a_gateway_that_hangs)
{
    start();
    put("n1", "a 1\n");
    put("n2", "a 1\n");
    wait_until_true(stats_of().pushes == 2);
    peer_hold(fixture->gateway, "");
    stop(NS_PER_SEC / 5);
    assert_true(count_requests() <= 3); /* the second is not tried */
    assert_int_equal(count_logged("stays on the Pushgateway"), 1);
    assert_int_equal(count_logged("groups=2"), 1);
}

static void *stop_it(void *arg)
{
    (void)arg;
    stop(TEST_DEADLINE);
    return NULL;
}

TEST(the_end_is_not_held_up_by_a_push_that_hangs)
{
    pthread_t thread;

    fixture->config.clock = &fixture->manual.clock;
    start();
    peer_hold(fixture->gateway, "");
    put("n1", "a 1\n");
    request(1);
    assert_int_equal(thread_start(&thread, "stop", stop_it, NULL, NULL), 0);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, TEST_DEADLINE); /* no time is left for a DELETE */
    pthread_join(thread, NULL);
    assert_int_equal(peer_held(fixture->gateway), 1);
    assert_int_equal(count_requests(), 1);
    assert_int_equal(count_logged("\n"), 1);
    assert_int_equal(count_logged("stays on the Pushgateway"), 1);
}

TEST(a_push_under_way_is_not_overtaken_by_its_delete)
{
    pthread_t thread;

    fixture->config.clock = &fixture->manual.clock;
    start();
    peer_hold(fixture->gateway, "");
    put("n1", "a 1\n");
    request(1);
    assert_int_equal(thread_start(&thread, "stop", stop_it, fixture, NULL), 0);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(count_requests(), 1);
    peer_release(fixture->gateway);
    pthread_join(thread, NULL);
    assert_int_equal(count_requests(), 2);
    assert_string_equal(request(2)->method, "DELETE");
    wait_until_true(atomic_load(&request(1)->was_replied_to));
}

static size_t count_connections(void)
{
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 2);
    stop(TEST_DEADLINE);
    assert_int_equal(count_requests(), 3);
    return peer_connections(fixture->gateway);
}

TEST(a_connection_is_kept_only_where_it_has_tls)
{
    struct certificate *authority = heap_alloc(sizeof(*authority));

    start();
    assert_int_equal(count_connections(), 3);

    peer_free(fixture->gateway);
    fixture->certificate = heap_alloc(sizeof(*fixture->certificate));
    certificate_make(authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(fixture->certificate,
                     &(struct certificate_wish){ .name = "localhost", .signer = authority });
    fixture->config.ca_file = write_file("ca", authority->cert_pem);
    certificate_free(authority);
    free(authority);
    open_gateway();
    snprintf(fixture->url, sizeof(fixture->url), "https://localhost:%d",
             peer_port(fixture->gateway));
    start();
    assert_int_equal(count_connections(), 1);
}

static void *put_many(void *arg)
{
    char text[30];

    (void)arg;
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof(text), "a %d\n", i);
        put(i % 2 ? "n1" : "n2", text);
        stats_of();
    }
    return NULL;
}

TEST(any_number_of_threads_may_put)
{
    pthread_t threads[4];

    start();
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(thread_start(&threads[i], "put", put_many, fixture, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    wait_until_true(stats_of().pushes + stats_of().replaced == 20 * COUNT(threads));
    assert_int_equal(stats_of().failures, 0);
}
