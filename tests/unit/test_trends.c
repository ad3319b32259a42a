/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trends from embedded series that the test writes, and from a Prometheus in this process that
 * notes what it is asked. */
#include "sections.h"

#include "base/buf.h"
#include "files.h"
#include "http_peer.h"
#include "store/ticks.h"
#include "web/trends.h"

#include <math.h>
#include <unistd.h>

enum { BEGIN = 1700000100 /* a whole minute */, MINUTE = 60, HOUR = 3600 };

struct fixture {
    const char *path;
    struct ticks_writer *writer;
    struct http_peer *peer; /* in place of a Prometheus */
    struct prometheus_settings settings;
    struct arena arena;
    struct facts_plot plot;
    struct err err;
};

static struct fixture *fixture;

static void setup(void)
{
    struct ticks_config config = { .path = test_path("series.db"), .retention_seconds = 86400 };

    fixture = heap_alloc(sizeof(*fixture));
    fixture->path = config.path;
    assert_int_equal(ticks_open(&config, &fixture->writer, &fixture->err), 0);
}

static void teardown(void)
{
    peer_free(fixture->peer);
    ticks_close(fixture->writer);
    arena_clear(&fixture->arena);
    free(fixture);
}

FIXTURE(setup, teardown)

/* Of a cluster with 64 CPUs; all else is unknown. */
static struct cluster_sums sums_of(double allocated)
{
    const struct sums_amount unknown = { NAN, NAN, NAN, NAN };

    return (struct cluster_sums){ .cpus = { 64, allocated, 64 - allocated, 0 },
                                  .memory_bytes = unknown };
}

static void put_tick(int64_t time, const struct cluster_sums *sums, struct str cluster,
                     const struct section *nodes)
{
    struct tick_sample *sample;
    size_t n;

    trends_samples(sums, cluster, nodes, &fixture->arena, &sample, &n);
    assert_int_equal(ticks_put(fixture->writer, time, sample, n, &fixture->err), 0);
}

static int ask_config(const struct trends_config *config, const struct trend_question *question)
{
    struct trends *trends;
    int code;

    assert_int_equal(trends_open(config, &trends, &fixture->err), 0);
    code = trends_read(trends, question, &fixture->arena, &fixture->plot, &fixture->err);
    trends_close(trends);
    return code;
}

static struct trend_question question_of(enum trend trend, int64_t from, int64_t to)
{
    return (struct trend_question){
        .trend = trend,
        .cluster = STR("one"),
        .from = from,
        .to = to,
        .most_points = 100,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
    };
}

static void ask(enum trend trend, int64_t from, int64_t to)
{
    const struct trend_question question = question_of(trend, from, to);

    if (ask_config(&(struct trends_config){ .series_path = fixture->path }, &question) < 0)
        fail_msg("%s", fixture->err.text);
}

static const struct plot_line *find_line(const char *name)
{
    for (size_t i = 0; i < fixture->plot.n_lines; i++)
        if (str_eq(fixture->plot.line[i].name, str_of(name)))
            return &fixture->plot.line[i];
    return NULL;
}

/* The value of a line at a time. */
static double at(const char *name, int64_t time)
{
    const struct facts_plot *plot = &fixture->plot;
    const struct plot_line *line = find_line(name);
    int64_t point = (time - plot->begin) / plot->step_seconds;

    if (!line)
        fail_msg("there is no line %s", name);
    assert_int_equal((time - plot->begin) % plot->step_seconds, 0);
    assert_in_range(point, 0, plot->n_points - 1);
    return line->value[point];
}

TEST(what_is_written_at_a_tick_is_read_back)
{
    for (int i = 0; i < 10; i++) {
        struct cluster_sums sums = sums_of(i);

        put_tick(BEGIN + i * MINUTE, &sums, STR("one"), NULL);
    }
    ask(TREND_CPUS, BEGIN, BEGIN + 9 * MINUTE);
    assert_int_equal(fixture->plot.n_lines, 3);
    assert_int_equal(fixture->plot.n_members, 3);
    assert_true(at("allocated", BEGIN) == 0);
    assert_true(at("allocated", BEGIN + 9 * MINUTE) == 9);
    assert_true(at("idle", BEGIN + 9 * MINUTE) == 55);
    assert_true(at("unusable", BEGIN + 9 * MINUTE) == 0);
}

TEST(what_is_unknown_is_not_written)
{
    struct cluster_sums sums = sums_of(1);

    put_tick(BEGIN, &sums, STR("one"), NULL);
    ask(TREND_MEMORY, BEGIN - MINUTE, BEGIN + MINUTE);
    assert_int_equal(fixture->plot.n_points, 0);
    ask(TREND_GPUS, BEGIN - MINUTE, BEGIN + MINUTE);
    assert_int_equal(fixture->plot.n_points, 0);
}

TEST(a_sample_holds_for_five_minutes_and_then_there_is_a_gap)
{
    struct cluster_sums sums = sums_of(7);

    put_tick(BEGIN, &sums, STR("one"), NULL);
    put_tick(BEGIN + 20 * MINUTE, &sums, STR("one"), NULL);
    ask(TREND_CPUS, BEGIN - MINUTE, BEGIN + 21 * MINUTE);
    assert_true(isnan(at("allocated", BEGIN - MINUTE)));
    assert_true(at("allocated", BEGIN + 4 * MINUTE) == 7);
    assert_true(isnan(at("allocated", BEGIN + 5 * MINUTE)));
    assert_true(at("allocated", BEGIN + 20 * MINUTE) == 7);
}

TEST(a_sample_from_before_the_beginning_holds_there)
{
    struct cluster_sums sums = sums_of(7);

    put_tick(BEGIN - 2 * MINUTE, &sums, STR("one"), NULL);
    ask(TREND_CPUS, BEGIN, BEGIN + HOUR);
    assert_true(at("allocated", BEGIN) == 7);
}

TEST(after_a_clock_was_set_back_a_chart_ends_now_and_shows_what_is_new)
{
    struct cluster_sums before = sums_of(9), after = sums_of(2);

    for (int i = 0; i <= 10; i++)
        put_tick(BEGIN + i * MINUTE, &before, STR("one"), NULL);
    for (int i = 2; i <= 4; i++)
        put_tick(BEGIN + i * MINUTE, &after, STR("one"), NULL);
    ask(TREND_CPUS, BEGIN, BEGIN + 4 * MINUTE);
    assert_true(at("allocated", BEGIN + MINUTE) == 9);
    assert_true(at("allocated", BEGIN + 2 * MINUTE) == 2);
    assert_true(at("allocated", BEGIN + 4 * MINUTE) == 2);
    assert_int_equal(fixture->plot.begin +
                         (int64_t)(fixture->plot.n_points - 1) * fixture->plot.step_seconds,
                     BEGIN + 4 * MINUTE);
}

TEST(a_state_in_which_nothing_is_left_is_none_beside_the_others)
{
    struct sums_state states[] = { { STR("idle"), 5, 0 }, { STR("down"), 2, 0 } };
    struct cluster_sums sums = sums_of(0);

    sums.state = states;
    sums.n_states = 2;
    put_tick(BEGIN, &sums, STR("one"), NULL);
    states[0].nodes = 7;
    sums.n_states = 1;
    put_tick(BEGIN + MINUTE, &sums, STR("one"), NULL);
    ask(TREND_NODES, BEGIN, BEGIN + 10 * MINUTE);
    assert_true(at("down", BEGIN) == 2);
    assert_true(at("down", BEGIN + MINUTE) == 0);
    assert_true(at("idle", BEGIN + MINUTE) == 7);
    assert_true(isnan(at("down", BEGIN + 10 * MINUTE)));
}

TEST(of_many_states_the_rarest_are_added_up)
{
    static const char *const words[] = { "A", "B", "C", "D", "E", "F", "G", "H", "I", "J" };
    struct sums_by_word rows[COUNT(words)];
    struct cluster_sums sums = sums_of(0);

    for (size_t i = 0; i < COUNT(words); i++)
        rows[i] = (struct sums_by_word){ str_of(words[i]), { .jobs = (double)(i + 1) } };
    sums.job_state = rows;
    sums.n_job_states = COUNT(words);
    put_tick(BEGIN, &sums, STR("one"), NULL);
    ask(TREND_JOBS, BEGIN, BEGIN + MINUTE);
    assert_int_equal(fixture->plot.n_lines, 7);
    assert_true(at("J", BEGIN) == 10);
    assert_true(at("E", BEGIN) == 5);
    assert_null(find_line("D"));
    assert_true(at("others", BEGIN) == 4 + 3 + 2 + 1);
}

TEST(a_cluster_whose_name_begins_alike_is_another)
{
    struct cluster_sums sums = sums_of(7);

    put_tick(BEGIN, &sums, STR("one-more"), NULL);
    ask(TREND_CPUS, BEGIN - MINUTE, BEGIN + MINUTE);
    assert_int_equal(fixture->plot.n_points, 0);
}

/* Nodes n0, n1, … with 8 CPUs allocated and a load of 3. */
static struct section *make_nodes(int n)
{
    struct section *section = section_new(KIND_NODES);

    for (int i = 0; i < n; i++)
        section_add(section, "n%d unknown cpus_alloc=8 cpu_load=3\n", i);
    return section;
}

TEST(nodes_are_written_if_there_are_few)
{
    struct trend_question question = question_of(TREND_NODE_CPUS, BEGIN - MINUTE, BEGIN + HOUR);
    const struct trends_config config = { .series_path = fixture->path };
    struct section *few = make_nodes(2), *many = make_nodes(TRENDS_NODES_MAX + 1);
    struct cluster_sums sums = sums_of(7);

    question.node = STR("n1");
    put_tick(BEGIN, &sums, STR("other"), few);
    put_tick(BEGIN + MINUTE, &sums, STR("one"), many);
    assert_int_equal(ask_config(&config, &question), 0);
    assert_int_equal(fixture->plot.n_points, 0);
    question.cluster = STR("other");
    assert_int_equal(ask_config(&config, &question), 0);
    assert_true(at("allocated", BEGIN) == 8);
    assert_true(at("load", BEGIN) == 3);
    section_unref(few);
    section_unref(many);
}

TEST(no_more_points_are_given_than_were_asked_for)
{
    struct trend_question question = question_of(TREND_CPUS, 0, 0);
    const struct trends_config config = { .series_path = fixture->path };
    struct cluster_sums sums = sums_of(7);
    const int64_t spans[] = { 15, 59, HOUR, 7 * HOUR, 31 * 24 * HOUR, 4000 * 24 * HOUR };

    for (int i = 24 * HOUR; i >= 0; i -= 5 * MINUTE)
        put_tick(BEGIN - i, &sums, STR("one"), NULL);
    for (size_t i = 0; i < COUNT(spans); i++) {
        question.from = BEGIN - spans[i];
        question.to = BEGIN;
        assert_int_equal(ask_config(&config, &question), 0);
        assert_in_range(fixture->plot.n_points, i < 4 ? 1 : 0, 100);
    }
}

TEST(a_time_that_is_none_is_refused)
{
    const struct trends_config config = { .series_path = fixture->path };
    const struct trend_question back = question_of(TREND_CPUS, BEGIN, BEGIN - 1),
                                far = question_of(TREND_CPUS, BEGIN, INT64_MAX),
                                early = question_of(TREND_CPUS, INT64_MIN, BEGIN);

    assert_int_equal(ask_config(&config, &back), -EINVAL);
    assert_int_equal(ask_config(&config, &far), -EINVAL);
    assert_int_equal(ask_config(&config, &early), -EINVAL);
}

TEST(series_that_are_not_there_are_an_error_with_a_sentence)
{
    const struct trends_config config = { .series_path = "/nonexistent/series.db" };
    const struct trend_question question = question_of(TREND_CPUS, BEGIN, BEGIN + HOUR);

    assert_true(ask_config(&config, &question) < 0);
    assert_contains(fixture->err.text, "/nonexistent/series.db");
}

/* ---- a Prometheus ---- */

static struct str matcher_of(void *ctx, struct str cluster)
{
    (void)ctx;
    assert_str(cluster, "one");
    return STR("cluster=\"one\"");
}

static struct trends_config serve(const char *answer)
{
    fixture->peer = peer_open(NULL);
    peer_reply_with(fixture->peer,
                    (struct peer_reply){ .type = "application/json", .body = str_of(answer) });
    fixture->settings = (struct prometheus_settings){ .url = str_of(peer_url(fixture->peer)),
                                                      .max_answer = 1 << 20 };
    return (struct trends_config){ .prometheus = &fixture->settings, .matcher = matcher_of };
}

#define MATRIX(result)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" result "]}}"

TEST(a_prometheus_is_asked_for_the_exporters_own_names)
{
    const struct trends_config config =
        serve(MATRIX("{\"metric\":{\"use\":\"allocated\"},\"values\":[[1700000100,\"3\"],"
                     "[1700000160,\"4.5\"]]},"
                     "{\"metric\":{\"use\":\"idle\"},\"values\":[[1700000160,\"NaN\"]]}"));
    const struct trend_question question = question_of(TREND_CPUS, BEGIN, BEGIN + HOUR);
    const struct peer_request *asked;

    assert_int_equal(ask_config(&config, &question), 0);
    asked = peer_request(fixture->peer, 1);
    assert_string_equal(peer_argument(asked, "query"),
                        "sum by(use)(max by(state,use)(slurm_state_cpus{cluster=\"one\"}))");
    assert_string_equal(peer_argument(asked, "start"), "1700000100");
    assert_string_equal(peer_argument(asked, "end"), "1700003700");
    assert_string_equal(peer_argument(asked, "step"), "60");
    assert_int_equal(fixture->plot.n_lines, 1);
    assert_true(at("allocated", BEGIN) == 3);
    assert_true(at("allocated", BEGIN + MINUTE) == 4.5);
    assert_true(isnan(at("allocated", BEGIN + 2 * MINUTE)));
}

TEST(a_nodes_name_is_no_promql)
{
    const struct trends_config config = serve(MATRIX(""));
    struct trend_question question = question_of(TREND_NODE_CPUS, BEGIN, BEGIN + HOUR);

    question.node = STR("n1\"} or vector(1) #\\");
    assert_int_equal(ask_config(&config, &question), 0);
    assert_contains(peer_argument(peer_request(fixture->peer, 1), "query"),
                    "slurm_node_cpu_load{node=\"n1\\\"} or vector(1) #\\\\\",cluster=\"one\"}");
    assert_int_equal(fixture->plot.n_points, 0);
}

TEST(a_prometheus_that_hangs_is_waited_for_until_the_deadline)
{
    const struct trends_config config = serve(MATRIX(""));
    struct trend_question question = question_of(TREND_CPUS, BEGIN, BEGIN + HOUR);

    peer_hold(fixture->peer, "");
    question.deadline_ns = clock_mono(&clock_real) + 300 * NS_PER_MS;
    assert_int_equal(ask_config(&config, &question), -ETIMEDOUT);
    assert_int_equal(ask_config(&config, &question), -ETIMEDOUT); /* which has passed */
}

TEST(what_a_prometheus_complains_of_is_told)
{
    const struct trends_config config =
        serve("{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many\"}");
    const struct trend_question question = question_of(TREND_CPUS, BEGIN, BEGIN + HOUR);

    assert_true(ask_config(&config, &question) < 0);
    assert_contains(fixture->err.text, "too many");
}
