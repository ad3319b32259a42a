/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Summaries in a real store, by the real recorder; in place of a Prometheus, the functions below.
 */
#include "test.h"

#include "files.h"
#include "manual_clock.h"
#include "record/summaries.h"
#include "report/gather.h"

#include <fcntl.h>
#include <sqlite3.h>

enum { NOW = 1700000000, BAD_JOB = 666, MOST_ASKED = 100 };

/* What the stand-in was asked, and answers. */
static struct {
    pthread_mutex_t lock;
    bool is_down, knows_nothing;
    uint32_t asked[MOST_ASKED];
    size_t n_asked, n_contacts;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

int prometheus_open(const struct prometheus_settings *settings, struct prometheus **ret,
                    struct err *err)
{
    if (!str_eq(settings->url, STR("http://prometheus:9090")))
        return err_set(err, EINVAL, "no such URL");
    *ret = (struct prometheus *)(void *)&server;
    return 0;
}

struct prometheus *prometheus_close(struct prometheus *prometheus)
{
    (void)prometheus;
    return NULL;
}

const char *prometheus_origin(const struct prometheus *prometheus)
{
    (void)prometheus;
    return "http://prometheus:9090";
}

int prometheus_query(struct prometheus *prometheus, const struct prometheus_query *query,
                     struct prometheus_result *ret, struct err *err)
{
    bool is_down;

    (void)prometheus;
    (void)ret;
    assert_string_equal(query->text, "vector(1)");
    pthread_mutex_lock(&server.lock);
    server.n_contacts++;
    is_down = server.is_down;
    pthread_mutex_unlock(&server.lock);
    return is_down ? err_set(err, ECONNREFUSED, "it is away") : 0;
}

int facts_take_series(struct job_facts *facts, struct arena *arena,
                      const struct series_question *question, struct err *err)
{
    uint32_t id = facts->row.record.id;
    bool fails, knows_nothing;

    assert_str(question->matcher, "cluster=\"north\"");
    assert_false(question->wants_plots);
    pthread_mutex_lock(&server.lock);
    fails = server.is_down || id == BAD_JOB;
    knows_nothing = server.knows_nothing;
    if (server.n_asked < MOST_ASKED)
        server.asked[server.n_asked++] = id;
    pthread_mutex_unlock(&server.lock);
    if (fails)
        return err_set(err, ECONNREFUSED, "it is away");
    if (knows_nothing) {
        facts->origin.why_no_series = STR("it has no samples of it");
        return 0;
    }
    facts->origin.has_series = true;
    facts_node(facts, arena, STR("n1"))->use.busiest_cpus = 3.5;
    return 0;
}

struct fixture {
    struct manual_clock clock;
    const char *path;
    struct log *log;
    struct recorder *recorder;
    struct summaries *summaries;
};

static struct fixture f;

static const atomic_bool never;

static void set_up(void)
{
    const struct recorded_cluster clusters[] = { { .name = STR("north") } };
    struct recorder_config config = { .clusters = clusters, .n_clusters = COUNT(clusters) };
    struct err err;

    f = (struct fixture){ .path = test_path("store.db") };
    server.is_down = server.knows_nothing = false;
    server.n_asked = server.n_contacts = 0;
    manual_clock_init(&f.clock, NOW * NS_PER_SEC, 50 * NS_PER_SEC);
    f.log = test_log(&f.clock.clock);
    config.url = str_of(f.path);
    config.clock = &f.clock.clock;
    config.log = f.log;
    if (recorder_start(&config, &f.recorder, &err) < 0)
        fail_msg("%s", err.text);
}

static void tear_down(void)
{
    summaries_stop(f.summaries);
    recorder_stop(f.recorder);
    log_free(f.log);
    manual_clock_destroy(&f.clock);
}

FIXTURE(set_up, tear_down)

static struct summaries_config config_of(void)
{
    static const struct series_matcher matcher = { STR_INIT("north"),
                                                   STR_INIT("cluster=\"north\"") };

    return (struct summaries_config){
        .recorder = f.recorder,
        .store = str_of(f.path),
        .prometheus = { .url = STR("http://prometheus:9090") },
        .matcher = &matcher,
        .n_matchers = 1,
        .pause_ns = 200 * NS_PER_MS,
        .timeout_ns = 10 * NS_PER_SEC,
        .clock = &f.clock.clock,
        .log = f.log,
    };
}

static void start(void)
{
    const struct summaries_config config = config_of();
    struct err err;

    if (summaries_start(&config, &f.summaries, &err) < 0)
        fail_msg("%s", err.text);
}

/* One that ended that long ago. */
static void put_run(uint32_t id, int64_t ended_seconds_ago)
{
    struct job_record record;
    const struct record_batch batch = { .jobs = &record, .n_jobs = 1 };
    struct err err;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = NOW - ended_seconds_ago - 1000;
    record.start_time = record.submit_time + 10;
    record.end_time = NOW - ended_seconds_ago;
    record.as_of = NOW;
    record.tasks = 1;
    record.cpus = 4;
    record.nodes = STR("n1");
    record.node_count = 1;
    record.state.base = JOB_COMPLETED;
    record.origin = RECORD_ACCOUNTED;
    if (recorder_put(f.recorder, &batch, INT64_MAX, &never, &err) < 0)
        fail_msg("%s", err.text);
}

static size_t n_asked(void)
{
    size_t n;

    pthread_mutex_lock(&server.lock);
    n = server.n_asked;
    pthread_mutex_unlock(&server.lock);
    return n;
}

static struct summaries_stats stats_of(void)
{
    struct summaries_stats stats;

    summaries_stats(f.summaries, &stats);
    return stats;
}

static uint64_t n_done(void)
{
    struct summaries_stats stats = stats_of();

    return stats.written + stats.empty;
}

/* The clock goes on, but not while somebody works. */
static void go_on(void)
{
    const char *name = "any";
    int64_t value;
    struct err err;

    assert_true(manual_clock_await_waiters(&f.clock, 2));
    assert_int_equal(recorder_get_marks(f.recorder, 0, &name, &value, 1, INT64_MAX, &never, &err),
                     0);
    manual_clock_advance(&f.clock, 100 * NS_PER_MS);
}

static bool has_done(uint64_t n)
{
    go_on();
    return n_done() >= n;
}

static bool has_asked(size_t n)
{
    go_on();
    return n_asked() >= n;
}

static struct str kept(uint32_t id, int64_t ended_seconds_ago, struct arena *arena)
{
    const struct run_key key = { NOW - ended_seconds_ago - 1000, id, STR("north") };
    struct store_reader *reader;
    struct str document;
    struct err err;

    if (store_reader_open(str_of(f.path), &reader, &err) < 0 ||
        store_summary(reader, &key, arena, &document, &err) < 0)
        fail_msg("%s", err.text);
    store_reader_close(reader);
    return document;
}

TEST(what_a_finished_run_used_is_kept)
{
    struct arena arena = { 0 };
    struct job_facts facts;
    struct str document;
    struct err err;

    put_run(7, 300);
    start();
    wait_until_true(has_done(1));
    assert_int_equal(stats_of().written, 1);
    assert_true(stats_of().is_up);
    document = kept(7, 300, &arena);
    job_facts_clear(&facts);
    assert_int_equal(facts_take_summary(&facts, &arena, document, &err), 0);
    assert_true(facts.node[0].use.busiest_cpus == 3.5);
    arena_clear(&arena);
}

TEST(a_run_is_left_alone_until_its_last_samples_have_come)
{
    put_run(7, 100);
    put_run(8, 300);
    put_run(9, 90000); /* more than a day */
    start();
    wait_until_true(has_done(1));
    assert_int_equal(server.asked[0], 8);
    assert_int_equal(n_asked(), 1);
    manual_clock_advance(&f.clock, 21 * NS_PER_SEC);
    wait_until_true(has_done(2));
    assert_int_equal(server.asked[1], 7);
}

TEST(those_that_ended_last_come_first_and_few_in_a_second)
{
    for (uint32_t i = 0; i < 5; i++)
        put_run(10 + i, 1000 - 100 * (int64_t)i);
    start();
    assert_true(manual_clock_await_waiters(&f.clock, 2)); /* the recorder's thread is one */
    wait_until_true(n_asked() == 1);
    assert_true(manual_clock_await_waiters(&f.clock, 2));
    assert_int_equal(n_asked(), 1);
    manual_clock_advance(&f.clock, 200 * NS_PER_MS);
    wait_until_true(n_asked() == 2);
    wait_until_true(has_done(5));
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(server.asked[i], 14 - i);
}

TEST(a_run_of_which_nothing_is_known_is_asked_for_once)
{
    struct arena arena = { 0 };

    server.knows_nothing = true;
    put_run(7, 300);
    start();
    wait_until_true(has_done(1));
    assert_int_equal(stats_of().empty, 1);
    assert_int_equal(stats_of().failures, 0);
    assert_int_equal(server.n_contacts, 0);
    assert_int_equal(kept(7, 300, &arena).n, 0);
    put_run(8, 400);
    wait_until_true(has_done(2));
    assert_int_equal(n_asked(), 2);
    assert_int_equal(server.asked[1], 8);
    arena_clear(&arena);
}

TEST(while_prometheus_is_away_nothing_is_given_up)
{
    server.is_down = true;
    put_run(7, 300);
    put_run(8, 400);
    start();
    wait_until_true(!stats_of().is_up);
    wait_until_true(has_asked(3)); /* ever more rarely */
    assert_int_equal(n_done(), 0);
    pthread_mutex_lock(&server.lock);
    server.is_down = false;
    pthread_mutex_unlock(&server.lock);
    wait_until_true(has_done(2));
    assert_int_equal(stats_of().written, 2);
    wait_until_true(stats_of().is_up);
}

TEST(a_run_that_prometheus_cannot_tell_of_is_not_in_the_way_of_others)
{
    put_run(BAD_JOB, 300);
    put_run(8, 400);
    start();
    wait_until_true(has_done(2));
    assert_int_equal(stats_of().written, 1);
    assert_int_equal(stats_of().failures, 1);
    assert_int_equal(server.n_contacts, 1);
}

TEST(a_prometheus_that_cannot_be_asked_is_told_at_once)
{
    struct summaries_config config = config_of();
    struct err err;

    config.prometheus.url = STR("what");
    assert_int_equal(summaries_start(&config, &f.summaries, &err), -EINVAL);
    f.summaries = NULL;
}
