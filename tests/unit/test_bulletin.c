/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of snapshot/bulletin: the agent's rendered metrics. */
#include "test.h"

#include "usage_standin.h"

#include "base/arena.h"
#include "base/thread.h"
#include "snapshot/bulletin.h"

enum { TEXT = FORMAT_BIT(METRIC_TEXT), OPENMETRICS = FORMAT_BIT(METRIC_OPENMETRICS) };

static const struct bulletin_config everything = {
    .collectors = STANDIN_ALL,
    .max_segment = 1 << 20,
};

static struct bulletin *post(const struct bulletin_config *config, size_t n_jobs, uint64_t ticks,
                             unsigned formats)
{
    const struct usage usage = {
        .n_jobs = n_jobs, .gpu_up = -1, .host = "n1", .agent = { .ticks = ticks }
    };

    return bulletin_new(config, &usage, formats, ticks);
}

static struct buf text_of(const struct bulletin *bulletin, size_t collector,
                          enum metric_format format)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    assert_non_null(bulletin->collectors[collector].packed[format]);
    assert_true(segment_inflate(bulletin->collectors[collector].packed[format], &text));
    return text;
}

TEST(a_bulletin_keeps_what_each_collector_wrote_compressed)
{
    struct bulletin *bulletin = post(&everything, 2, 7, TEXT | OPENMETRICS);
    struct buf text = text_of(bulletin, STANDIN_ALPHA, METRIC_TEXT);
    struct buf other = text_of(bulletin, STANDIN_ALPHA, METRIC_OPENMETRICS);

    assert_str(buf_str(&text), "# HELP alpha_seconds_total Ticks, as a counter.\n"
                               "# TYPE alpha_seconds_total counter\n"
                               "alpha_seconds_total{job_id=\"0\"} 7\n"
                               "alpha_seconds_total{job_id=\"1\"} 7\n"
                               "# HELP alpha_bytes Ticks, as a gauge.\n"
                               "# TYPE alpha_bytes gauge\n"
                               "alpha_bytes{job_id=\"0\"} 7\n"
                               "alpha_bytes{job_id=\"1\"} 7\n");
    assert_contains(other.p, "# TYPE alpha_seconds counter\n");
    assert_int_equal(bulletin->collectors[STANDIN_ALPHA].packed[METRIC_TEXT]->text.n, 0);
    assert_int_equal(bulletin->collectors[STANDIN_ALPHA].samples, 4);
    assert_int_equal(bulletin->agent.ticks, 7);
    assert_int_equal(bulletin->gpu_up, -1);
    buf_free(&text);
    buf_free(&other);
    assert_null(bulletin_unref(bulletin));
}

TEST(only_what_is_on_and_wanted_is_rendered)
{
    struct bulletin_config config = everything;
    struct bulletin *bulletin;
    struct buf text;

    config.collectors = (usage_collector_set)1 << STANDIN_ALPHA;
    config.excluded[STANDIN_ALPHA] = 1;
    bulletin = post(&config, 1, 3, OPENMETRICS);
    assert_int_equal(bulletin->formats, OPENMETRICS);
    assert_null(bulletin->collectors[STANDIN_BETA].packed[METRIC_OPENMETRICS]);
    assert_null(bulletin->collectors[STANDIN_ALPHA].packed[METRIC_TEXT]);
    text = text_of(bulletin, STANDIN_ALPHA, METRIC_OPENMETRICS);
    assert_int_equal(str_find_str(buf_str(&text), STR("alpha_seconds")), text.n);
    assert_contains(text.p, "alpha_bytes{job_id=\"0\"} 3\n");
    buf_free(&text);
    bulletin_unref(bulletin);
}

TEST(one_past_its_ceiling_is_empty_and_told_and_the_others_whole)
{
    struct bulletin_config config = everything;
    struct bulletin *bulletin;
    struct buf text;

    config.max_segment = 1600; /* enough for one family of thirty jobs, not for two */
    bulletin = post(&config, 30, 5, TEXT);
    assert_true(bulletin->collectors[STANDIN_ALPHA].is_over);
    assert_int_equal(bulletin->collectors[STANDIN_ALPHA].samples, 0);
    text = text_of(bulletin, STANDIN_ALPHA, METRIC_TEXT);
    assert_int_equal(text.n, 0);
    buf_free(&text);
    assert_false(bulletin->collectors[STANDIN_BETA].is_over);
    text = text_of(bulletin, STANDIN_BETA, METRIC_TEXT);
    assert_contains(text.p, "beta_bytes{job_id=\"29\"} 5\n");
    buf_free(&text);
    bulletin_unref(bulletin);
}

TEST(the_newest_hangs_and_older_ones_live_as_long_as_somebody_reads_them)
{
    struct bulletin_board *board = bulletin_board_new();
    struct bulletin *first, *second;

    assert_null(bulletin_board_take(board));
    bulletin_board_put(board, post(&everything, 1, 1, TEXT));
    first = bulletin_board_take(board);
    bulletin_board_put(board, post(&everything, 1, 2, TEXT));
    second = bulletin_board_take(board);
    assert_int_equal(first->serial, 1);
    assert_int_equal(second->serial, 2);
    assert_int_equal(first->agent.ticks, 1);
    bulletin_unref(first);
    assert_null(bulletin_board_free(board));
    assert_int_equal(second->collectors[STANDIN_ALPHA].samples, 2);
    bulletin_unref(second);
}

TEST(formats_are_wanted_for_a_while)
{
    struct bulletin_board *board = bulletin_board_new();

    assert_int_equal(bulletin_board_wanted(board, -1), TEXT);
    bulletin_board_want(board, METRIC_OPENMETRICS, 100);
    assert_int_equal(bulletin_board_wanted(board, 50), OPENMETRICS);
    bulletin_board_want(board, METRIC_TEXT, 120);
    bulletin_board_want(board, METRIC_TEXT, 110);
    assert_int_equal(bulletin_board_wanted(board, 100), TEXT | OPENMETRICS);
    assert_int_equal(bulletin_board_wanted(board, 115), TEXT);
    assert_int_equal(bulletin_board_wanted(board, 121), TEXT);
    bulletin_board_free(board);
}

enum { ROUNDS = 300 };

static void *put_many(void *board)
{
    for (uint64_t i = 1; i <= ROUNDS; i++)
        bulletin_board_put(board, post(&everything, 1, i, TEXT));
    return NULL;
}

TEST(whoever_takes_meets_one_whole_bulletin)
{
    struct bulletin_board *board = bulletin_board_new();
    uint64_t last = 0;
    pthread_t thread;
    struct err err;

    assert_int_equal(thread_start(&thread, "puts", put_many, board, &err), 0);
    while (last < ROUNDS) {
        struct bulletin *bulletin = bulletin_board_take(board);

        if (!bulletin)
            continue;
        assert_true(bulletin->serial >= last);
        assert_int_equal(bulletin->agent.ticks, bulletin->serial);
        last = bulletin->serial;
        bulletin_unref(bulletin);
    }
    pthread_join(thread, NULL);
    bulletin_board_free(board);
}
