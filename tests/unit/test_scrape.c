/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole scrape: the exporter's routes on a real server, over a simulated cluster. */
#include "test.h"

#include "count_allocations.h"
#include "http_client.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "http/metrics.h"

#include <fcntl.h>

enum { SCRAPES = 300 };

static struct manual_clock clock_of_test; /* stands still: what is fresh stays fresh */
static struct log *quiet;
static struct metrics *metrics;
static struct http_server *server;
static struct client client;

static struct engine *make_engine(collector_set collectors_on)
{
    const struct source_settings settings = { .spec = STR_INIT("sim:nodes=50,jobs=200,seed=3") };
    struct engine *engine = heap_alloc(sizeof(*engine));
    struct refresh_config config = {
        .tuning = {
            .timeout_ns = 10 * NS_PER_SEC,
            .stale_limit_ns = 300 * NS_PER_SEC,
            .retry_ns = 10 * NS_PER_SEC,
            .max_backoff_ns = 60 * NS_PER_SEC,
            .publish = { .max_segment = 16 << 20, .clock = &clock_of_test.clock },
        },
        .clock = &clock_of_test.clock,
        .log = quiet,
        .changed = metrics_changed,
        .ctx = metrics,
    };
    struct feed *slurm = &engine->clusters[0].feeds[FEED_SLURM];
    struct err err;

    assert_int_equal(source_open(&settings, &clock_of_test.clock, &slurm->source, &err), 0);
    for (size_t i = 0; collectors[i]; i++)
        if (!(slurm->source->class->kinds & KIND_BIT(collectors[i]->kind)))
            collectors_on &= ~((collector_set)1 << i);
    config.tuning.publish.collectors = collectors_on;
    engine->n_clusters = 1;
    engine->collectors = collectors_on;
    config.source = slurm->source;
    for (int kind = 0; kind < KINDS; kind++)
        config.tuning.poll_limit_ns[kind] = 10 * NS_PER_SEC;
    engine->patience_ns = 20 * NS_PER_SEC;
    assert_int_equal(refresher_start(&config, &slurm->refresher, &err), 0);
    return engine;
}

static int no_reload(void *ctx, struct err *err)
{
    (void)ctx;
    return err_set(err, EINVAL, "there is nothing to reload here");
}

static void set_up(void)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    const struct metrics_config config = {
        .path = "/metrics",
        .clock = &clock_of_test.clock,
        .reload = no_reload,
    };
    struct http_config http = {
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 10,
        .workers = 1,
        .queue = 4,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = &clock_real,
    };
    struct err err;

    /* Behind the server's real clock, which says until when a request may wait: also just after
     * boot. */
    manual_clock_init(&clock_of_test, 1794744000 * NS_PER_SEC, NS_PER_SEC);
    quiet = log_new(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_ERROR, &clock_real);
    metrics = metrics_new(&config);
    metrics_set_engine(metrics, make_engine(~(collector_set)0));
    http.routes = metrics_routes(metrics);
    http.ctx = metrics;
    http.log = quiet;
    if (http_start(&http, &server, &err) < 0)
        fail_msg("%s", err.text);
    metrics_set_server(metrics, server);
    client_open(&client, http_address(server, 0));
}

static void tear_down(void)
{
    client_close(&client);
    metrics_stop(metrics);
    http_stop(server);
    metrics_free(metrics);
    log_free(quiet);
    manual_clock_destroy(&clock_of_test);
}

FIXTURE(set_up, tear_down)

TEST(a_scrape_of_fresh_sections_allocates_nothing)
{
    static const char *const wishes[] = {
        "Accept: text/plain\r\n",
        "Accept: text/plain\r\nAccept-Encoding: gzip\r\n",
        "Accept: application/openmetrics-text\r\nAccept-Encoding: gzip\r\n",
    };

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

TEST(what_sonde_says_of_itself_is_made_anew_once_a_second)
{
    unsigned long before;

    for (int i = 0; i < 2; i++)
        client_get(&client, "/metrics");
    before = atomic_load(&n_allocations);
    client_get(&client, "/metrics");
    assert_int_equal(atomic_load(&n_allocations), before);
    manual_clock_advance(&clock_of_test, NS_PER_SEC);
    client_get(&client, "/metrics");
    assert_true(atomic_load(&n_allocations) > before);
}

TEST(another_engine_takes_over_between_scrapes)
{
    struct reply reply = client_get(&client, "/metrics");

    assert_true(str_find_str(reply.body, STR("slurm_user_state_total")) < reply.body.n);
    metrics_set_engine(metrics, make_engine((collector_set)1 << collector_find(STR("nodes"))));
    reply = client_get(&client, "/metrics");
    assert_int_equal(reply.status, 200);
    assert_true(str_find_str(reply.body, STR("slurm_cpus_total")) < reply.body.n);
    assert_int_equal(str_find_str(reply.body, STR("slurm_user_state_total")), reply.body.n);
}

TEST(many_combinations_of_collectors_are_served)
{
    for (int round = 0; round < 3; round++) {
        for (unsigned set = 1; set < 1u << 4; set++) {
            char path[200] = "/metrics?";
            struct reply reply;

            for (int i = 0; i < 4; i++)
                if (set & 1u << i)
                    snprintf(path + strlen(path), sizeof(path) - strlen(path), "collect[]=%s&",
                             collectors[i]->name);
            for (int gzip = 0; gzip < 2; gzip++) {
                reply = client_get_with(&client, path, gzip ? "Accept-Encoding: gzip\r\n" : "");
                assert_int_equal(reply.status, 200);
                if (!gzip)
                    assert_int_equal(str_find_str(reply.body, STR("slurm_user_state_total")) <
                                         reply.body.n,
                                     (set & 2) != 0);
            }
        }
    }
}
