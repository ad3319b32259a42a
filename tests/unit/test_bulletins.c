/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's routes on a real server, over bulletins that the test hangs up itself. */
#include "test.h"

#include "count_allocations.h"
#include "http_client.h"
#include "manual_clock.h"
#include "usage_standin.h"

#include "base/arena.h"
#include "base/thread.h"
#include "http/bulletins.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <zlib.h>

enum {
    SCRAPES = 300,
    TEXT = FORMAT_BIT(METRIC_TEXT),
    OPENMETRICS = FORMAT_BIT(METRIC_OPENMETRICS),
};

#define WANT_GZIP        "Accept-Encoding: gzip\r\n"
#define WANT_OPENMETRICS "Accept: application/openmetrics-text\r\n"

static struct manual_clock clock_of_test;
static struct log *quiet;
static struct bulletin_board *board;
static struct bulletins *bulletins;
static struct http_server *server;
static struct client client;

static struct bulletins_tuning tuning;

static const char *_Atomic stands_for_peer; /* or NULL */

/* Every address of a test is of this machine. */
struct str __real_http_peer(const struct http_exchange *x);
struct str __wrap_http_peer(const struct http_exchange *x);
struct str __wrap_http_peer(const struct http_exchange *x)
{
    return stands_for_peer ? str_of(stands_for_peer) : __real_http_peer(x);
}

static int no_reload(void *ctx, struct err *err)
{
    (void)ctx;
    return err_set(err, EINVAL, "there is nothing to reload here");
}

static void tell_pushes(void *ctx, struct agent_self *to)
{
    (void)ctx;
    to->is_pushing = true;
    to->pushes = 12;
}

static void set_up(void)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct bulletins_config config = {
        .path = "/metrics",
        .node = "n1<&",
        .clock = &clock_of_test.clock,
        .reload = no_reload,
        .tell_pushes = tell_pushes,
    };
    struct http_config http = {
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 20,
        .workers = 1,
        .queue = 4,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = &clock_real,
    };
    struct err err;

    manual_clock_init(&clock_of_test, 1794744000 * NS_PER_SEC, 1000 * NS_PER_SEC);
    quiet = log_new(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_ERROR, &clock_real);
    board = config.board = bulletin_board_new();
    tuning = (struct bulletins_tuning){ .collectors = 1 << STANDIN_ALPHA | 1 << STANDIN_BETA,
                                        .stale_ns = 300 * NS_PER_SEC };
    bulletins = bulletins_new(&config, &tuning);
    http.routes = bulletins_routes(bulletins);
    http.ctx = bulletins;
    http.log = quiet;
    if (http_start(&http, &server, &err) < 0)
        fail_msg("%s", err.text);
    bulletins_set_server(bulletins, server);
    client_open(&client, http_address(server, 0));
}

static void tear_down(void)
{
    client_close(&client);
    http_stop(server);
    stands_for_peer = NULL;
    bulletins_free(bulletins);
    bulletin_board_free(board);
    log_free(quiet);
    manual_clock_destroy(&clock_of_test);
}

FIXTURE(set_up, tear_down)

static void hang(size_t n_jobs, uint64_t ticks, unsigned formats)
{
    const struct bulletin_config config = { .collectors = tuning.collectors,
                                            .max_segment = 1 << 20 };
    const struct usage usage = {
        .n_jobs = n_jobs,
        .gpu_up = -1,
        .host = "n1",
        .agent = { .ticks = ticks,
                   .leftover_cgroups = 3,
                   .sampled_wall_ns = clock_wall(&clock_of_test.clock),
                   .sampled_mono_ns = clock_mono(&clock_of_test.clock) },
    };

    bulletin_board_put(board, bulletin_new(&config, &usage, formats, ticks));
}

static bool has(struct str text, const char *part)
{
    return str_find_str(text, str_of(part)) < text.n;
}

/* As one gzip member with nothing behind it, the checksum verified. */
static struct str gunzip(struct str packed)
{
    static char text[1 << 20];
    z_stream stream = { .next_in = (unsigned char *)packed.p, .avail_in = (unsigned)packed.n };

    assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
    stream.next_out = (unsigned char *)text;
    stream.avail_out = sizeof(text);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    inflateEnd(&stream);
    return (struct str){ text, stream.total_out };
}

TEST(before_the_first_bulletin_it_is_not_ready_and_says_so)
{
    struct reply reply = client_get(&client, "/-/ready");

    assert_int_equal(reply.status, 503);
    assert_int_equal(client_get(&client, "/-/healthy").status, 200);
    for (int gzip = 0; gzip < 2; gzip++) {
        struct str text;

        reply = client_get_with(&client, "/metrics", gzip ? WANT_GZIP : "");
        text = gzip ? gunzip(reply.body) : reply.body;
        assert_int_equal(reply.status, 200);
        assert_true(has(text, "\nsonde_agent_up 0\n"));
        assert_false(has(text, "alpha_bytes"));
        assert_false(has(text, "sonde_agent_sample_age_seconds"));
        assert_true(has(text, "sonde_collector_success{collector=\"alpha\"} 0\n"));
    }
    hang(1, 1, TEXT);
    assert_int_equal(client_get(&client, "/-/ready").status, 200);
}

TEST(a_bulletin_is_served_in_every_form)
{
    static const struct {
        const char *headers, *type, *line;
    } rows[] = {
        { "", "text/plain; version=0.0.4", "# TYPE alpha_seconds_total counter\n" },
        { WANT_OPENMETRICS, "application/openmetrics-text", "# TYPE alpha_seconds counter\n" },
        { WANT_GZIP, "text/plain; version=0.0.4", "# TYPE alpha_seconds_total counter\n" },
        { WANT_GZIP WANT_OPENMETRICS, "application/openmetrics-text",
          "# TYPE alpha_seconds counter\n" },
    };
    /* what was rendered: both, or one of which the other has to be made */
    static const unsigned rendered[] = { TEXT | OPENMETRICS, TEXT, OPENMETRICS };

    for (size_t k = 0; k < COUNT(rendered); k++) {
        hang(2, k + 1, rendered[k]);
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct reply reply = client_get_with(&client, "/metrics", rows[i].headers);
            bool is_packed = str_eq(reply_header(&reply, "Content-Encoding"), STR("gzip"));
            bool is_rendered = rendered[k] & FORMAT_BIT(i % 2 ? METRIC_OPENMETRICS : METRIC_TEXT);
            struct str text;
            char sample[60];

            assert_int_equal(reply.status, 200);
            assert_true(str_starts(reply_header(&reply, "Content-Type"), str_of(rows[i].type)));
            assert_int_equal(is_packed, i >= 2 && is_rendered);
            text = is_packed ? gunzip(reply.body) : reply.body;
            snprintf(sample, sizeof(sample), "\nalpha_seconds_total{job_id=\"1\"} %zu\n", k + 1);
            assert_true(has(text, rows[i].line));
            assert_true(has(text, sample));
            assert_true(has(text, "beta_bytes{job_id=\"0\"}"));
            assert_true(has(text, "\nsonde_agent_up 1\n"));
            assert_true(has(text, "\nsonde_agent_leftover_cgroups 3\n"));
            assert_true(has(text, "\nsonde_agent_pushes_total 12\n"));
            assert_true(has(text, "\npromhttp_metric_handler_requests_in_flight 1\n"));
            assert_int_equal(str_ends(text, STR("# EOF\n")), i % 2);
        }
    }
}

TEST(a_format_that_was_asked_for_is_wanted_from_then_on)
{
    hang(1, 1, TEXT);
    assert_int_equal(bulletin_board_wanted(board, 1), TEXT);
    client_get_with(&client, "/metrics", WANT_OPENMETRICS WANT_GZIP);
    assert_int_equal(bulletin_board_wanted(board, 1), OPENMETRICS);
    client_get_with(&client, "/metrics", WANT_GZIP);
    assert_int_equal(bulletin_board_wanted(board, 1), TEXT | OPENMETRICS);
}

TEST(a_compressed_scrape_of_an_unchanged_bulletin_allocates_nothing)
{
    static const char *const wishes[] = { WANT_GZIP, WANT_OPENMETRICS WANT_GZIP };

    hang(100, 1, TEXT | OPENMETRICS);
    for (size_t i = 0; i < COUNT(wishes); i++) {
        unsigned long before;

        for (int k = 0; k < 2; k++)
            assert_int_equal(client_get_with(&client, "/metrics", wishes[i]).status, 200);
        before = atomic_load(&n_allocations);
        for (int k = 0; k < SCRAPES; k++)
            assert_int_equal(client_get_with(&client, "/metrics", wishes[i]).status, 200);
        assert_int_equal(atomic_load(&n_allocations) - before, 0);
    }
}

TEST(a_new_bulletin_and_a_second_later_the_tail_are_shown)
{
    struct str text;

    hang(1, 1, TEXT);
    text = gunzip(client_get_with(&client, "/metrics", WANT_GZIP).body);
    assert_true(has(text, "alpha_bytes{job_id=\"0\"} 1\n"));
    assert_true(has(text, "sonde_agent_sample_age_seconds 0\n"));
    hang(1, 2, TEXT);
    text = gunzip(client_get_with(&client, "/metrics", WANT_GZIP).body);
    assert_true(has(text, "alpha_bytes{job_id=\"0\"} 2\n"));
    manual_clock_advance(&clock_of_test, 5 * NS_PER_SEC);
    text = gunzip(client_get_with(&client, "/metrics", WANT_GZIP).body);
    assert_true(has(text, "sonde_agent_sample_age_seconds 5\n"));
}

TEST(old_values_are_withdrawn_when_the_sampler_hangs)
{
    hang(1, 1, TEXT);
    manual_clock_advance(&clock_of_test, 301 * NS_PER_SEC);
    for (int gzip = 0; gzip < 2; gzip++) {
        struct reply reply = client_get_with(&client, "/metrics", gzip ? WANT_GZIP : "");
        struct str text = gzip ? gunzip(reply.body) : reply.body;

        assert_false(has(text, "alpha_bytes"));
        assert_true(has(text, "\nsonde_agent_up 0\n"));
        assert_true(has(text, "\nsonde_agent_sample_age_seconds 301\n"));
    }
}

TEST(it_is_healthy_while_the_newest_sample_is_fresh)
{
    struct reply reply;

    manual_clock_advance(&clock_of_test, 300 * NS_PER_SEC);
    assert_int_equal(client_get(&client, "/-/healthy").status, 200);
    manual_clock_advance(&clock_of_test, NS_PER_SEC);
    assert_int_equal(client_get(&client, "/-/healthy").status, 503); /* no sample at all */
    hang(1, 1, TEXT);
    assert_int_equal(client_get(&client, "/-/healthy").status, 200);
    manual_clock_advance(&clock_of_test, 301 * NS_PER_SEC);
    reply = client_get(&client, "/-/healthy");
    assert_int_equal(reply.status, 503);
    assert_true(has(reply.body, "the last sample is 301 s old"));
}

TEST(collectors_can_be_chosen_and_an_unknown_one_is_named)
{
    struct reply reply;

    hang(1, 1, TEXT);
    for (int gzip = 0; gzip < 2; gzip++) {
        struct str text;

        reply = client_get_with(&client, "/metrics?collect[]=beta", gzip ? WANT_GZIP : "");
        text = gzip ? gunzip(reply.body) : reply.body;
        assert_true(has(text, "beta_bytes"));
        assert_false(has(text, "alpha_bytes"));
        /* one that is off is as unknown as one that is not there */
        reply = client_get_with(&client, "/metrics?collect[]=gamma", gzip ? WANT_GZIP : "");
        assert_int_equal(reply.status, 400);
        assert_true(has(reply.body, "\"gamma\""));
    }
    reply = client_get(&client, "/metrics");
    assert_true(has(reply.body, "promhttp_metric_handler_requests_total{code=\"400\"} 2\n"));
}

TEST(other_settings_take_effect_at_once)
{
    struct str text;

    hang(1, 1, TEXT);
    client_get_with(&client, "/metrics", WANT_GZIP);
    tuning.collectors = 1 << STANDIN_BETA;
    for (size_t i = 0; i < n_agent_self_families; i++)
        if (strcmp(agent_self_families[i].name, "sonde_agent_up") == 0)
            tuning.excluded |= FAMILY_BIT(i);
    bulletins_tune(bulletins, &tuning);
    text = gunzip(client_get_with(&client, "/metrics", WANT_GZIP).body);
    assert_true(has(text, "beta_bytes"));
    assert_false(has(text, "alpha_bytes"));
    assert_false(has(text, "sonde_agent_up"));
    assert_int_equal(client_get(&client, "/metrics?collect[]=alpha").status, 400);
}

TEST(the_landing_page_tells_the_node_and_its_collectors)
{
    struct reply reply = client_get(&client, "/");

    assert_int_equal(reply.status, 200);
    assert_true(has(reply.body, "<title>sonde agent</title>"));
    assert_true(has(reply.body, "node n1&lt;&amp;"));
    assert_true(has(reply.body, "<a href=\"/metrics?collect[]=alpha\">alpha</a>"));
    assert_false(has(reply.body, "gamma"));
}

TEST(a_failed_reload_says_why)
{
    struct reply reply;

    client_send_text(&client, "POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 500);
    assert_true(has(reply.body, "nothing to reload here"));
}

TEST(without_passwords_another_host_can_not_reload)
{
    struct reply reply;

    stands_for_peer = "10.1.2.3";
    client_send_text(&client, "POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 403);
    assert_true(has(reply.body, "--web.config.file"));
}

/* Some 4 MB of text, more than sockets buffer. */
static void hang_large(void)
{
    const struct bulletin_config config = { .collectors = tuning.collectors,
                                            .max_segment = 16 << 20 };
    const struct usage usage = {
        .n_jobs = 50000,
        .gpu_up = -1,
        .agent = { .sampled_mono_ns = clock_mono(&clock_of_test.clock) },
    };

    bulletin_board_put(board, bulletin_new(&config, &usage, TEXT, 1));
}

TEST(slow_readers_of_plain_text_do_not_eat_the_memory)
{
    enum { READERS = 12 };
    struct client *slow = heap_alloc(READERS * sizeof(*slow));
    bool is_refused = false;

    hang_large();
    for (int i = 0; i < READERS; i++) {
        char first[13] = "";

        client_open(&slow[i], http_address(server, 0));
        client_send_text(&slow[i], "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_int_equal(recv(slow[i].fd, first, 12, MSG_PEEK | MSG_WAITALL), 12);
        is_refused |= strcmp(first, "HTTP/1.1 503") == 0;
    }
    assert_true(is_refused);
    /* Whoever takes it compressed is served all the same. */
    assert_int_equal(client_get_with(&client, "/metrics?collect[]=beta", WANT_GZIP).status, 200);
    for (int i = 0; i < READERS; i++)
        client_close(&slow[i]);
    free(slow);
}

enum { ROUNDS = 400 };

static void *hang_many(void *arg)
{
    (void)arg;
    for (uint64_t i = 2; i < ROUNDS; i++)
        hang(2, i, i % 3 ? TEXT : OPENMETRICS);
    hang(2, ROUNDS, TEXT);
    return NULL;
}

static uint64_t value_after(struct str text, const char *series)
{
    uint64_t value = 0;

    text = str_skip(text, str_find_str(text, str_of(series)));
    assert_true(text.n > 0);
    text = str_skip(text, strlen(series));
    for (; text.n && text.p[0] >= '0' && text.p[0] <= '9'; text = str_skip(text, 1))
        value = value * 10 + (uint64_t)(text.p[0] - '0');
    return value;
}

TEST(an_answer_is_of_one_bulletin_alone)
{
    static const char *const wishes[] = { "", WANT_GZIP, WANT_OPENMETRICS };
    uint64_t last = 0;
    pthread_t thread;
    struct err err;

    hang(2, 1, TEXT);
    assert_int_equal(thread_start(&thread, "hangs", hang_many, NULL, &err), 0);
    for (size_t i = 0; last < ROUNDS; i++) {
        struct reply reply = client_get_with(&client, "/metrics", wishes[i % 3]);
        bool is_packed = str_eq(reply_header(&reply, "Content-Encoding"), STR("gzip"));
        struct str text = is_packed ? gunzip(reply.body) : reply.body;

        assert_int_equal(reply.status, 200);
        last = value_after(text, "alpha_seconds_total{job_id=\"0\"} ");
        assert_int_equal(value_after(text, "alpha_bytes{job_id=\"1\"} "), last);
        assert_int_equal(value_after(text, "beta_bytes{job_id=\"1\"} "), last);
        assert_int_equal(value_after(text, "sonde_agent_samples_total{cause=\"tick\"} "), last);
    }
    pthread_join(thread, NULL);
}
