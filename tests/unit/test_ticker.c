/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of web/ticker: the thread that writes the built-in time series. */
#include "sections.h"

#include "base/buf.h"
#include "base/fetch.h"
#include "files.h"
#include "manual_clock.h"
#include "source/sim.h"
#include "web/ticker.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const int64_t now = 1794225600;

/* ---- what an agent says ---- */

static double value_of(const struct tick_sample *sample, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(sample[i].name, str_of(name)))
            return sample[i].value;
    fail_msg("there is no %s", name);
    return 0;
}

TEST(an_agents_samples_are_kept_under_their_words)
{
    static const char text[] = "# HELP sonde_job_cpu_seconds_total CPU time.\n"
                               "sonde_job_cpu_seconds_total{job_id=\"4711\",node=\"c1\"} 12.5\n"
                               "sonde_job_memory_bytes{job_id=\"4711\",node=\"c1\"} 1024\n"
                               "jobs_rss{slurm_job=\"4711\",instance=\"c1\"} 1\n"
                               "go_goroutines 8\n";
    struct arena arena = { 0 };
    struct tick_sample *sample;
    size_t n, left_out;

    ticker_take_agent(str_of(text), STR("beluga"), &arena, &sample, &n, &left_out);
    assert_int_equal(n, 2);
    assert_true(value_of(sample, n, "job/beluga/4711/c1/cpu_seconds") == 12.5);
    assert_true(value_of(sample, n, "job/beluga/4711/c1/memory_bytes") == 1024);
    arena_clear(&arena);
}

TEST(what_is_told_of_a_gpu_is_kept_for_every_job_that_holds_it)
{
    static const char text[] =
        "sonde_gpu_utilization_ratio{node=\"g1\",gpu=\"0\",gpu_instance=\"\"} 0.75\n"
        "sonde_gpu_utilization_ratio{node=\"g1\",gpu=\"1\",gpu_instance=\"\"} 0.25\n"
        "sonde_gpu_utilization_ratio{node=\"g1\",gpu=\"2\",gpu_instance=\"\"} 0.5\n"
        "sonde_job_gpu_info{job_id=\"7\",node=\"g1\",gpu=\"1\",gpu_instance=\"\"} 1\n"
        "sonde_job_gpu_info{job_id=\"8\",node=\"g1\",gpu=\"1\",gpu_instance=\"\"} 1\n"
        "sonde_job_gpu_info{job_id=\"8\",node=\"g1\",gpu=\"0\",gpu_instance=\"\"} 1\n";
    struct arena arena = { 0 };
    struct tick_sample *sample;
    size_t n, left_out;

    ticker_take_agent(str_of(text), STR("beluga"), &arena, &sample, &n, &left_out);
    assert_int_equal(n, 3);
    assert_true(value_of(sample, n, "job/beluga/7/g1/gpu/1/utilization") == 0.25);
    assert_true(value_of(sample, n, "job/beluga/8/g1/gpu/1/utilization") == 0.25);
    assert_true(value_of(sample, n, "job/beluga/8/g1/gpu/0/utilization") == 0.75);
    arena_clear(&arena);
}

/* Slashes make names: nobody's text may have one. */
TEST(a_label_is_never_more_than_one_part_of_a_name)
{
    static const char text[] =
        "sonde_job_cpu_seconds_total{job_id=\"1/2\",node=\"c1\"} 1\n"
        "sonde_job_cpu_seconds_total{job_id=\"1\",node=\"c1/../x\"} 1\n"
        "sonde_job_cpu_seconds_total{job_id=\"\",node=\"c1\"} 1\n"
        "sonde_job_cpu_seconds_total{job_id=\"1\"} 1\n"
        "sonde_job_gpu_utilization_ratio{job_id=\"1\",node=\"c1\",gpu=\"0/1\"} 1\n";
    struct arena arena = { 0 };
    struct tick_sample *sample;
    size_t n, left_out;

    ticker_take_agent(str_of(text), STR("beluga"), &arena, &sample, &n, &left_out);
    assert_int_equal(n, 0);
    arena_clear(&arena);
}

/* The ceiling holds for what nobody has counted yet, too. */
TEST(samples_past_the_ceiling_are_left_out_and_counted, .is_bulk = true)
{
    struct arena arena = { 0 };
    struct tick_sample *sample;
    size_t n, left_out;
    struct buf text;

    buf_init(&text, 64 << 20);
    for (int i = 0; i < TICKS_SAMPLES_MAX + 7; i++)
        buf_printf(&text, "sonde_job_memory_bytes{job_id=\"%d\",node=\"c1\"} 1\n", i);
    ticker_take_agent(buf_str(&text), STR("beluga"), &arena, &sample, &n, &left_out);
    assert_int_equal(n, TICKS_SAMPLES_MAX);
    assert_int_equal(left_out, 7);
    buf_free(&text);
    arena_clear(&arena);
}

/* ---- whose jobs those are ---- */

static const char of_c1[] = "go_goroutines{node=\"nobody\"} 8\n"
                            "sonde_job_cpu_seconds_total{job_id=\"7\",node=\"c1\"} 12.5\n";

/* A cluster without nodes has not been asked yet. */
static void name_cluster(struct board *board, size_t i, struct str name, const char *node)
{
    board->cluster[i].name = name;
    if (node)
        board->cluster[i].section[KIND_NODES] = nodes_from("%s idle\n", node);
}

static struct board *two_clusters(const char *node, const char *other)
{
    struct board *board = board_new(2, now);

    name_cluster(board, 0, STR("beluga"), node);
    name_cluster(board, 1, STR("mila"), other);
    board_sum(board);
    return board;
}

TEST(the_jobs_of_the_agent_are_of_the_only_cluster)
{
    struct board *board = board_new(1, now);
    struct str cluster;

    assert_false(ticker_cluster(board, str_of(of_c1), &cluster));
    board->cluster[0].name = STR("beluga");
    assert_true(ticker_cluster(board, str_of(of_c1), &cluster));
    assert_str(cluster, "beluga");
    board->cluster[0].name = STR("be/luga"); /* would be two parts of a name */
    assert_false(ticker_cluster(board, str_of(of_c1), &cluster));
    board_unref(board);
}

TEST(of_several_clusters_the_agent_is_of_the_one_that_has_its_node)
{
    static const struct {
        const char *node, *other, *cluster; /* NULL: nobody has said; empty: it cannot be told */
    } cases[] = {
        { "c1", "c2", "beluga" }, { "c2", "c1", "mila" }, { "c2", NULL, NULL },
        { "c2", "c3", NULL },     { "c1", "c1", "" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct board *board = two_clusters(cases[i].node, cases[i].other);
        struct str cluster = STR("");

        assert_int_equal(ticker_cluster(board, str_of(of_c1), &cluster), cases[i].cluster != NULL);
        if (cases[i].cluster)
            assert_str(cluster, cases[i].cluster);
        board_unref(board);
    }
}

/* ---- the thread ---- */

struct fixture {
    struct manual_clock clock;
    const char *path;
    char url[300]; /* of an agent */
    struct log *log;
    struct ticker *ticker;
    int64_t interval_ns;
    _Atomic unsigned taken; /* boards */
    atomic_bool is_away;
    bool has_slurm_time; /* slurmctld's clock is never set */
};

static struct fixture f;

static struct board *take_board(void *ctx, int64_t deadline_ns, struct err *err)
{
    const struct sim sim = { .nodes = 8, .jobs = 20, .seed = 1, .users = 5 };
    struct board *board;

    (void)ctx;
    (void)deadline_ns;
    f.taken++;
    if (f.is_away) {
        err_set(err, ETIMEDOUT, "Slurm hangs");
        return NULL;
    }
    board = board_new(1, now);
    board->cluster[0].name = STR("simulated");
    board->cluster[0].section[KIND_NODES] = sim_section(&sim, KIND_NODES, now);
    board->cluster[0].section[KIND_JOBS] = sim_section(&sim, KIND_JOBS, now);
    if (f.has_slurm_time) {
        struct section *diag = section_new(KIND_DIAG);

        diag->mono_ns = clock_mono(&f.clock.clock);
        diag->diag.time = now + diag->mono_ns / NS_PER_SEC - 50;
        board->cluster[0].section[KIND_DIAG] = diag;
    }
    board_sum(board);
    return board;
}

static void put_more(void *ctx, int64_t time, struct arena *arena, struct tick_sample **ret,
                     size_t *ret_n)
{
    (void)ctx;
    *ret = ARENA_NEW(arena, struct tick_sample);
    (*ret)[0] = (struct tick_sample){ .name = STR("job/simulated/1/c1/cpu_seconds"),
                                      .value = (double)time };
    *ret_n = 1;
}

static void set_up(void)
{
    f = (struct fixture){ .path = test_path("series.db"), .interval_ns = 15 * NS_PER_SEC };
    snprintf(f.url, sizeof(f.url), "unix:%s", test_path("agent.sock"));
    manual_clock_init(&f.clock, now * NS_PER_SEC, 50 * NS_PER_SEC);
    f.log = test_log(&f.clock.clock);
}

static void tear_down(void)
{
    ticker_stop(f.ticker);
    log_free(f.log);
    manual_clock_destroy(&f.clock);
}

FIXTURE(set_up, tear_down)

static int start(bool is_simulated, const char *agent_url, struct err *err)
{
    const struct ticker_config config = {
        .series = { .path = f.path, .is_simulated = is_simulated, .retention_seconds = 86400 },
        .boards = { .take = take_board, .ctx = &f },
        .agent_url = agent_url,
        .more = put_more,
        .interval_ns = f.interval_ns,
        .clock = &f.clock.clock,
        .log = f.log,
    };

    return ticker_start(&config, &f.ticker, err);
}

static bool has_ticked(uint64_t times, struct ticker_stats *ret)
{
    ticker_stats(f.ticker, ret);
    return ret->ticks + ret->failures == times;
}

/* Once it has ticked so often in all, well or not. */
static struct ticker_stats stats_after(uint64_t times)
{
    struct ticker_stats stats;

    if (times > 1) {
        assert_true(manual_clock_await_waiters(&f.clock, 1));
        manual_clock_advance(&f.clock, f.interval_ns);
    }
    wait_until_true(has_ticked(times, &stats));
    return stats;
}

static size_t count_samples(const char *prefix)
{
    struct arena arena = { 0 };
    struct ticks_reader *reader;
    struct ticks_line *line;
    size_t n_lines, n = 0;
    struct err err;

    if (ticks_reader_open(f.path, &reader, &err) < 0 ||
        ticks_read(reader, str_of(prefix), 0, INT64_MAX, 10000, &arena, &line, &n_lines, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n_lines; i++)
        n += line[i].n;
    ticks_reader_close(reader);
    arena_clear(&arena);
    return n;
}

TEST(each_tick_writes_what_clusters_do_and_what_else_there_is)
{
    struct ticker_stats stats;
    struct err err;

    assert_int_equal(start(true, NULL, &err), 0);
    stats = stats_after(1);
    assert_int_equal(stats.ticks, 1);
    assert_true(stats.is_up);
    stats = stats_after(2);
    assert_int_equal(stats.ticks, 2);
    assert_int_equal(f.taken, 2);
    assert_int_equal(count_samples("job/simulated/1/c1/cpu_seconds"), 2);
    assert_int_equal(count_samples("cluster/simulated/cpus/allocated"), 2);
}

static void set_ahead(int64_t seconds)
{
    manual_clock_set_wall(&f.clock, clock_wall(&f.clock.clock) + seconds * NS_PER_SEC);
}

static const int64_t hundred_days = 100 * 86400;

TEST(a_clock_that_is_ahead_over_a_restart_deletes_nothing)
{
    struct err err;

    assert_int_equal(start(true, NULL, &err), 0);
    stats_after(1);
    stats_after(2);
    set_ahead(hundred_days);
    stats_after(3);
    f.ticker = ticker_stop(f.ticker);
    assert_int_equal(start(true, NULL, &err), 0);
    stats_after(1); /* in the same second as the one before */
    stats_after(2);
    assert_int_equal(count_samples("job/simulated/1/"), 4);
}

TEST(a_clock_that_slurmctld_contradicts_deletes_nothing)
{
    struct err err;

    f.has_slurm_time = true;
    f.interval_ns = 3600 * NS_PER_SEC;
    assert_int_equal(start(true, NULL, &err), 0);
    assert_false(stats_after(1).is_retention_paused);
    set_ahead(hundred_days);
    for (uint64_t n = 2; n < 10; n++)
        assert_true(stats_after(n).is_retention_paused);
    assert_int_equal(count_samples("job/simulated/1/"), 9);
    assert_int_equal(count_logged("differs from slurmctld's"), 1);
    assert_int_equal(count_logged("deleted time series"), 0);
}

TEST(what_is_past_its_retention_is_deleted_and_logged)
{
    struct err err;

    f.has_slurm_time = true;
    f.interval_ns = 3600 * NS_PER_SEC;
    assert_int_equal(start(true, NULL, &err), 0);
    for (uint64_t n = 1; n < 40; n++)
        stats_after(n);
    assert_true(count_samples("job/simulated/1/") < 30);
    assert_true(count_logged("deleted time series past their retention") > 0);
}

TEST(a_cluster_that_does_not_answer_leaves_a_gap)
{
    struct ticker_stats stats;
    struct err err;

    f.is_away = true;
    assert_int_equal(start(true, NULL, &err), 0);
    stats_after(1);
    f.is_away = false;
    stats = stats_after(2);
    assert_int_equal(stats.ticks, 2);
    assert_int_equal(count_samples("job/simulated/1/"), 2);
    assert_int_equal(count_samples("cluster/simulated/cpus/allocated"), 1);
}

TEST(an_agent_that_is_away_is_told_and_does_not_hold_up_the_rest)
{
    struct ticker_stats stats;
    struct err err;

    assert_int_equal(start(true, f.url, &err), 0);
    stats = stats_after(1);
    assert_false(stats.is_agent_up);
    assert_true(stats.is_up);
    assert_int_equal(stats.ticks, 1);
}

static int listen_at(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_path("agent.sock"));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

/* How long the agent would be waited for. */
static struct {
    atomic_bool is_cut_short;
    atomic_uint fetches;
    _Atomic int64_t longest_ms;
} patience;

int __real_fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err);
int __wrap_fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err);
int __wrap_fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err)
{
    struct fetch short_one = *fetch;

    if (!patience.is_cut_short)
        return __real_fetch_run(fetch, ret, err);
    patience.fetches++;
    if (fetch->timeout_ms > patience.longest_ms)
        patience.longest_ms = fetch->timeout_ms;
    short_one.timeout_ms = 1;
    return __real_fetch_run(&short_one, ret, err);
}

/* Connections are made, and nobody takes them. */
TEST(an_agent_that_hangs_does_not_hold_up_the_rest)
{
    const uint64_t ticks = 12;
    struct ticker_stats stats;
    int fd = listen_at();
    struct err err;

    f.interval_ns = NS_PER_SEC;
    patience.is_cut_short = true;
    assert_int_equal(start(true, f.url, &err), 0);
    for (uint64_t i = 1; i <= ticks; i++)
        stats = stats_after(i);
    assert_int_equal(stats.ticks, ticks);
    assert_false(stats.is_agent_up);
    assert_int_equal(stats.agent_failures, ticks);
    assert_int_equal(count_samples("cluster/simulated/cpus/allocated"), ticks);
    assert_int_equal(patience.fetches, ticks);
    assert_in_range(patience.longest_ms, 1, 250); /* a quarter of the interval */
    patience.is_cut_short = false;
    close(fd);
}

/* Answers so many requests, of any kind. */
struct standin {
    int fd, requests;
    const char *text;
};

static void *answer(void *arg)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    const struct standin *agent = arg;

    for (int i = 0; i < agent->requests; i++) {
        int fd = accept(agent->fd, NULL, NULL);
        char request[4096];

        if (read(fd, request, sizeof(request)) > 0) {
            (void)!write(fd, reply, sizeof(reply) - 1);
            (void)!write(fd, agent->text, strlen(agent->text));
        }
        close(fd);
    }
    return NULL;
}

/* As the version before has written it. */
static void make_file_without_clusters(void)
{
    const struct ticks_config config = { .path = f.path, .is_simulated = true };
    const struct tick_sample sample = { STR("job/7/c1/cpu_seconds"), 1 };
    struct ticks_writer *writer;
    struct err err;
    sqlite3 *db;

    assert_int_equal(ticks_open(&config, &writer, &err), 0);
    assert_int_equal(ticks_put(writer, now - 60, &sample, 1, &err), 0);
    ticks_close(writer);
    assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 1", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

TEST(what_the_agent_tells_is_kept_by_cluster_also_while_slurm_is_away)
{
    struct standin agent = { .fd = listen_at(), .requests = 3, .text = of_c1 };
    struct ticker_stats stats;
    pthread_t thread;
    struct err err;

    make_file_without_clusters();
    assert_int_equal(pthread_create(&thread, NULL, answer, &agent), 0);
    f.is_away = true;
    assert_int_equal(start(true, f.url, &err), 0);
    stats = stats_after(1);
    assert_true(stats.is_agent_up);
    assert_int_equal(count_samples("job/simulated/7/"), 0); /* nobody knows yet whose it is */
    assert_int_equal(count_samples("job/7/"), 1);
    f.is_away = false;
    stats_after(2);
    assert_int_equal(count_samples("job/simulated/7/c1/cpu_seconds"), 2);
    assert_int_equal(count_samples("job/7/"), 0);
    f.is_away = true;
    stats_after(3);
    assert_int_equal(count_samples("job/simulated/7/c1/cpu_seconds"), 3);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(agent.fd);
}

TEST(an_agent_without_a_fresh_sample_counts_as_one_that_is_away)
{
    struct standin agent = { .fd = listen_at(), .requests = 1, .text = "sonde_agent_up 0\n" };
    struct ticker_stats stats;
    pthread_t thread;
    struct err err;

    assert_int_equal(pthread_create(&thread, NULL, answer, &agent), 0);
    assert_int_equal(start(true, f.url, &err), 0);
    stats = stats_after(1);
    assert_false(stats.is_agent_up);
    assert_int_equal(stats.agent_failures, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(agent.fd);
}

TEST(what_is_simulated_is_never_written_beside_what_is_real)
{
    struct err err;

    assert_int_equal(start(false, NULL, &err), 0);
    stats_after(1);
    f.ticker = ticker_stop(f.ticker);
    assert_int_equal(start(true, NULL, &err), -EINVAL);
    assert_true(err.text[0]);
    assert_int_equal(count_samples("job/simulated/1/"), 1);
}

TEST(a_clock_that_was_set_back_stops_nothing)
{
    struct ticker_stats stats;
    struct err err;

    assert_int_equal(start(true, NULL, &err), 0);
    stats_after(1);
    manual_clock_set_wall(&f.clock, (now - 3600) * NS_PER_SEC);
    stats = stats_after(2);
    assert_int_equal(stats.ticks, 2);
    assert_int_equal(stats.failures, 0);
    assert_true(stats.series.last_time < now);
    assert_int_equal(count_samples("job/simulated/1/"), 2);
}

TEST(a_file_that_cannot_be_made_is_tried_again_at_the_next_tick)
{
    struct ticker_stats stats;
    struct err err;

    assert_int_equal(mkdir(f.path, 0700), 0); /* in the way */
    assert_int_equal(start(true, NULL, &err), 0);
    stats = stats_after(1);
    assert_false(stats.is_up);
    assert_int_equal(stats.failures, 1);
    assert_int_equal(rmdir(f.path), 0);
    stats = stats_after(2);
    assert_true(stats.is_up);
    assert_int_equal(stats.ticks, 1);
}
