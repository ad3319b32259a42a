/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of a job in a real file of series, and what they tell of its run. */
#include "test.h"

#include "collector/usage.h"
#include "files.h"
#include "report/facts_kept.h"
#include "report/kept_words.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { BEGIN = 1700006400, STEP = 15 };

struct fixture {
    struct ticks_writer *writer;
    struct ticks_reader *reader;
    struct arena arena;
    struct job_row row;
    struct job_facts facts;
    struct err err;
};

#define OK(f, call)                                                                                \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, (f)->err.text);                                              \
    } while (0)

/* Job 7, which ended after so many seconds. */
static void begin(struct fixture *f, int64_t seconds, uint32_t nodes)
{
    struct ticks_config config = { .path = test_path("series.db"), .retention_seconds = 86400 };

    *f = (struct fixture){ .row = { .gpus = MODEL_UNKNOWN_U64, .elapsed_seconds = seconds } };
    OK(f, ticks_open(&config, &f->writer, &f->err));
    OK(f, ticks_reader_open(config.path, &f->reader, &f->err));
    job_record_clear(&f->row.record);
    f->row.record.id = 7;
    f->row.key.cluster = STR("beluga");
    f->row.record.submit_time = f->row.first_submit_time = BEGIN - 100;
    f->row.record.start_time = BEGIN;
    f->row.record.end_time = BEGIN + seconds;
    f->row.record.node_count = nodes;
    f->row.record.state.base = JOB_COMPLETED;
    job_facts_clear(&f->facts);
}

static void end(struct fixture *f)
{
    ticks_reader_close(f->reader);
    ticks_close(f->writer);
    arena_clear(&f->arena);
}

static void put(struct fixture *f, int64_t time, const char *name, double value)
{
    const struct tick_sample sample = { str_of(name), value };

    OK(f, ticks_put(f->writer, time, &sample, 1, &f->err));
}

/* Several at one time, ended by one without a name. */
static void put_all(struct fixture *f, int64_t time, const struct tick_sample *sample)
{
    size_t n = 0;

    while (sample[n].name.p)
        n++;
    OK(f, ticks_put(f->writer, time, sample, n, &f->err));
}

static void take(struct fixture *f)
{
    facts_take_row(&f->facts, &f->arena, &f->row, BEGIN + 100000);
    OK(f, facts_take_kept(&f->facts, &f->arena, f->reader, true, &f->err));
    facts_finish(&f->facts);
}

TEST(amounts_of_each_node_are_taken)
{
    struct fixture f;

    begin(&f, 600, 2);
    put_all(&f, BEGIN + 15,
            (const struct tick_sample[]){ { STR("job/beluga/7/c1/cpu_seconds"), 20 },
                                          { STR("job/beluga/7/c2/cpu_seconds"), 5 },
                                          { STR("job/beluga/7/c1/files"), 9 },
                                          { STR("job/beluga/77/c1/cpu_seconds"), 999 },
                                          { { NULL, 0 }, 0 } });
    put_all(&f, BEGIN + 30,
            (const struct tick_sample[]){ { STR("job/beluga/7/c1/cpu_seconds"), 50 },
                                          { STR("job/beluga/7/c2/cpu_seconds"), 10 },
                                          { STR("job/beluga/7/c1/files"), 4 },
                                          { STR("job/beluga/7/c1/oom_kills"), 1 },
                                          { STR("job/beluga/7/c1/what_is_this"), 3 },
                                          { STR("job/beluga/7/c1"), 3 },
                                          { STR("job/beluga/7/c1/cpu_seconds/x"), 3 },
                                          { { NULL, 0 }, 0 } });
    take(&f);
    assert_true(f.facts.origin.has_series);
    assert_str(f.facts.origin.series, "the embedded series");
    assert_int_equal(f.facts.origin.why_no_series.n, 0);
    assert_int_equal(f.facts.n_nodes, 2);
    assert_true(f.facts.node[0].use.cpu_seconds == 50);
    assert_true(f.facts.node[1].use.cpu_seconds == 10);
    assert_true(f.facts.node[0].use.files_peak == 9);
    assert_true(isnan(f.facts.node[1].use.files_peak));
    assert_true(f.facts.node[0].use.oom_kills == 1);
    assert_true(f.facts.total.cpu_seconds == 60);
    assert_true(f.facts.node[0].use.busiest_cpus == 2);
    assert_true(fabs(f.facts.total.busiest_cpus - 35.0 / 15) < 1e-9);
    end(&f);
}

TEST(a_known_number_does_not_become_smaller)
{
    struct fixture f;

    begin(&f, 600, 1);
    put(&f, BEGIN + 15, "job/beluga/7/c1/cpu_seconds", 20);
    facts_node(&f.facts, &f.arena, STR("c1"))->use.cpu_seconds = 30;
    take(&f);
    assert_true(f.facts.node[0].use.cpu_seconds == 30);
    end(&f);
}

TEST(samples_of_other_times_are_not_taken)
{
    struct fixture f;

    begin(&f, 600, 1);
    put(&f, BEGIN - 15, "job/beluga/7/c1/memory_bytes", 900);
    put(&f, BEGIN + 300, "job/beluga/7/c1/memory_bytes", 100);
    put(&f, BEGIN + 630, "job/beluga/7/c1/cpu_seconds", 70); /* shown a while after the end */
    put(&f, BEGIN + 700, "job/beluga/7/c1/memory_bytes", 900);
    take(&f);
    assert_true(f.facts.node[0].use.memory_peak_bytes == 100);
    assert_true(f.facts.node[0].use.cpu_seconds == 70);
    end(&f);
}

TEST(what_the_run_before_left_is_not_taken)
{
    struct fixture f;

    begin(&f, 600, 1);
    f.row.record.restarts = 1;
    put(&f, BEGIN + 15, "job/beluga/7/c1/cpu_seconds", 5000);
    put(&f, BEGIN + 300, "job/beluga/7/c1/cpu_seconds", 30);
    take(&f);
    assert_true(f.facts.node[0].use.cpu_seconds == 30);
    end(&f);
}

/* Ids overlap between clusters. */
TEST(a_job_of_another_cluster_that_has_the_same_id_is_another)
{
    struct fixture f;

    begin(&f, 600, 1);
    put_all(&f, BEGIN + 15,
            (const struct tick_sample[]){ { STR("job/beluga/7/c1/cpu_seconds"), 20 },
                                          { STR("job/mila/7/c1/cpu_seconds"), 5000 },
                                          { STR("job/mila/7/c2/cpu_seconds"), 5000 },
                                          { STR("job/7/c3/cpu_seconds"), 5000 },
                                          { { 0 }, 0 } });
    take(&f);
    assert_int_equal(f.facts.n_nodes, 1);
    assert_true(f.facts.node[0].use.cpu_seconds == 20);
    end(&f);
}

TEST(a_job_whose_cluster_is_unknown_is_not_looked_for)
{
    struct fixture f;

    begin(&f, 600, 1);
    f.row.key.cluster = STR("");
    put(&f, BEGIN + 15, "job//7/c1/cpu_seconds", 20);
    facts_take_row(&f.facts, &f.arena, &f.row, BEGIN + 100000);
    assert_int_equal(facts_take_kept(&f.facts, &f.arena, f.reader, true, &f.err), -EINVAL);
    assert_contains(f.err.text, "--cluster");
    end(&f);
}

TEST(the_kernels_peak_counts_before_what_was_seen)
{
    struct fixture f;

    begin(&f, 600, 2);
    put_all(&f, BEGIN + 15,
            (const struct tick_sample[]){ { STR("job/beluga/7/c1/memory_peak_bytes"), 50 },
                                          { STR("job/beluga/7/c1/memory_bytes"), 40 },
                                          { STR("job/beluga/7/c1/resident_bytes"), 90 },
                                          { STR("job/beluga/7/c2/resident_bytes"), 60 },
                                          { { NULL, 0 }, 0 } });
    take(&f);
    assert_true(f.facts.node[0].use.memory_peak_bytes == 50);
    assert_true(f.facts.node[1].use.memory_peak_bytes == 60);
    assert_true(facts_has_sampled_peak(&f.facts)); /* that of c2 */
    assert_int_equal(f.facts.plot[PLOT_MEMORY].n_lines, 2);
    assert_true(f.facts.plot[PLOT_MEMORY].line[0].value[1] == 40);
    assert_true(f.facts.plot[PLOT_MEMORY].line[1].value[1] == 60);
    end(&f);
}

TEST(gpus_have_their_spread)
{
    struct fixture f;

    begin(&f, 600, 1);
    for (int i = 0; i < 4; i++)
        put_all(&f, BEGIN + 15 + 15 * i,
                (const struct tick_sample[]){
                    { STR("job/beluga/7/g1/gpu/0/utilization"), i * 0.25 },
                    { STR("job/beluga/7/g1/gpu/0/job_utilization"), 0.99 },
                    { STR("job/beluga/7/g1/gpu/0/memory_bytes"), 80 },
                    { STR("job/beluga/7/g1/gpu/0/energy_joules"), i == 2 ? 10 : 1000 + i * 100 },
                    { STR("job/beluga/7/g1/gpu/1.3/job_utilization"), 0.5 },
                    { { NULL, 0 }, 0 } });
    take(&f);
    assert_int_equal(f.facts.n_gpus, 2);
    assert_str(f.facts.gpu[0].gpu, "0");
    assert_true(f.facts.gpu[0].utilization_ratio.min == 0);
    assert_true(f.facts.gpu[0].utilization_ratio.mean == 0.375);
    assert_true(f.facts.gpu[0].utilization_ratio.max == 0.75);
    assert_true(f.facts.gpu[0].memory_bytes == 80);
    assert_true(f.facts.gpu[0].energy_joules == 100 + 1290);
    assert_str(f.facts.gpu[1].gpu, "1.3");
    assert_true(f.facts.gpu[1].utilization_ratio.mean == 0.5);
    assert_int_equal(f.facts.plot[PLOT_GPU].n_lines, 2);
    assert_str(f.facts.plot[PLOT_GPU].line[0].name, "g1 0");
    assert_str(f.facts.plot[PLOT_GPU].line[1].name, "g1 1.3");
    assert_true(f.facts.plot[PLOT_GPU].line[0].value[2] == 0.25);
    end(&f);
}

TEST(a_mean_is_of_the_time_and_not_of_the_samples)
{
    struct fixture f;

    begin(&f, 3000, 1);
    for (int64_t time = 0; time <= 600; time += 300)
        put(&f, BEGIN + time, "job/beluga/7/g1/gpu/0/power_watts", 100);
    for (int64_t time = 615; time <= 900; time += 15)
        put(&f, BEGIN + time, "job/beluga/7/g1/gpu/0/power_watts", 400);
    take(&f);
    /* 615 s and 300 s */
    assert_true(fabs(f.facts.gpu[0].power_watts.mean - (615 * 100.0 + 300 * 400) / 915) < 1e-9);
    end(&f);
}

TEST(rates_are_drawn_with_gaps_and_resets)
{
    const struct facts_plot *plot;
    struct fixture f;

    begin(&f, 600, 1);
    for (int64_t tick = 1; tick <= 40; tick++) {
        double seconds = (double)(tick < 30 ? tick : tick - 30) * 30;

        if (tick < 10 || tick >= 20)
            put(&f, BEGIN + tick * STEP, "job/beluga/7/c1/cpu_seconds", seconds);
    }
    take(&f);
    plot = &f.facts.plot[PLOT_CPU];
    assert_int_equal(plot->begin, BEGIN);
    assert_int_equal(plot->step_seconds, STEP);
    assert_int_equal(plot->n_points, 41);
    assert_int_equal(plot->n_lines, 1);
    assert_int_equal(plot->n_members, 1);
    assert_str(plot->line[0].name, "c1");
    for (size_t i = 0; i < plot->n_points; i++) {
        bool is_gap = i < 2 || (i > 9 && i < 21) || i == 30;

        if (is_gap)
            assert_true(isnan(plot->line[0].value[i]));
        else
            assert_true(fabs(plot->line[0].value[i] - 2) < 1e-9);
    }
    assert_true(f.facts.node[0].use.cpu_seconds == 29 * 30);
    end(&f);
}

TEST(gauges_are_drawn_with_gaps)
{
    const struct facts_plot *plot;
    struct fixture f;

    begin(&f, 600, 1);
    for (int64_t tick = 1; tick <= 40; tick++)
        if (tick < 10 || tick >= 20)
            put(&f, BEGIN + tick * STEP, "job/beluga/7/c1/memory_bytes", (double)tick);
    take(&f);
    plot = &f.facts.plot[PLOT_MEMORY];
    for (size_t i = 0; i < plot->n_points; i++)
        if (i < 1 || (i > 9 && i < 20))
            assert_true(isnan(plot->line[0].value[i]));
        else
            assert_true(plot->line[0].value[i] == (double)i);
    end(&f);
}

/* As what was computed of the past, before live samples follow. */
TEST(a_change_of_the_interval_is_no_gap)
{
    struct fixture f;
    int64_t time;

    begin(&f, 86400, 1);
    for (time = 0; time < 80000; time += 300)
        put_all(
            &f, BEGIN + time,
            (const struct tick_sample[]){ { STR("job/beluga/7/c1/cpu_seconds"), (double)time * 4 },
                                          { STR("job/beluga/7/c1/memory_bytes"), 7 },
                                          { { NULL, 0 }, 0 } });
    for (; time <= 86400; time += 15)
        put_all(
            &f, BEGIN + time,
            (const struct tick_sample[]){ { STR("job/beluga/7/c1/cpu_seconds"), (double)time * 4 },
                                          { STR("job/beluga/7/c1/memory_bytes"), 7 },
                                          { { NULL, 0 }, 0 } });
    take(&f);
    assert_true(f.facts.plot[PLOT_CPU].n_points <= PLOT_POINTS_MAX);
    for (size_t i = 1; i < f.facts.plot[PLOT_CPU].n_points; i++) {
        assert_true(fabs(f.facts.plot[PLOT_CPU].line[0].value[i] - 4) < 1e-6);
        assert_true(f.facts.plot[PLOT_MEMORY].line[0].value[i] == 7);
    }
    assert_true(fabs(f.facts.total.busiest_cpus - 4) < 1e-6);
    end(&f);
}

TEST(many_nodes_become_their_median_and_range)
{
    enum { NODES = PLOT_LINES_MAX + 1 };
    struct tick_sample sample[NODES];
    char name[NODES][40];
    struct fixture f;

    begin(&f, 600, NODES);
    for (int64_t tick = 1; tick < 40; tick++) {
        for (size_t i = 0; i < NODES; i++) {
            snprintf(name[i], sizeof(name[i]), "job/beluga/7/c%02zu/memory_bytes", i);
            sample[i] = (struct tick_sample){ str_of(name[i]), (double)i };
        }
        OK(&f, ticks_put(f.writer, BEGIN + tick * STEP, sample, NODES, &f.err));
    }
    take(&f);
    assert_int_equal(f.facts.n_nodes, NODES);
    assert_int_equal(f.facts.plot[PLOT_MEMORY].n_lines, 3);
    assert_int_equal(f.facts.plot[PLOT_MEMORY].n_members, NODES);
    assert_str(f.facts.plot[PLOT_MEMORY].line[0].name, "median");
    assert_true(f.facts.plot[PLOT_MEMORY].line[0].value[5] == 25);
    assert_str(f.facts.plot[PLOT_MEMORY].line[1].name, "lowest");
    assert_true(f.facts.plot[PLOT_MEMORY].line[1].value[5] == 0);
    assert_str(f.facts.plot[PLOT_MEMORY].line[2].name, "highest");
    assert_true(f.facts.plot[PLOT_MEMORY].line[2].value[5] == 50);
    end(&f);
}

TEST(without_samples_it_says_why)
{
    struct fixture f;

    begin(&f, 600, 1);
    put(&f, BEGIN + 15, "job/beluga/8/c1/cpu_seconds", 1);
    take(&f);
    assert_false(f.facts.origin.has_series);
    assert_str(f.facts.origin.why_no_series,
               "the embedded series have no samples of job 7 from the time of this run");
    end(&f);
}

TEST(a_job_that_has_not_begun_is_not_asked_for)
{
    struct fixture f;

    begin(&f, 600, 1);
    f.row.record.start_time = f.row.record.end_time = 0;
    f.row.record.state.base = JOB_PENDING;
    take(&f);
    assert_false(f.facts.origin.has_series);
    assert_int_equal(f.facts.origin.why_no_series.n, 0);
    end(&f);
}

/* ---- the table ---- */

static void note_word(void *ctx, const struct metric_sample *sample)
{
    const struct kept_word **word = ctx;

    *word = kept_word_of_sample(sample);
}

static const char *word_of(struct str line)
{
    const struct kept_word *word = NULL;

    assert_int_equal(metric_read(line, note_word, &word), 0);
    return word ? word->word : "";
}

TEST(samples_of_the_agent_have_their_word)
{
    assert_string_equal(word_of(STR("sonde_job_cpu_seconds_total{job_id=\"7\",node=\"c\"} 1\n")),
                        "cpu_seconds");
    assert_string_equal(
        word_of(STR("sonde_job_pressure_waiting_seconds_total{node=\"c\",resource=\"io\"} 1\n")),
        "io_waiting_seconds");
    assert_string_equal(word_of(STR("sonde_job_pressure_waiting_seconds_total 1\n")), "");
    assert_string_equal(word_of(STR("sonde_job_cpu_seconds 1\n")), "");
}

/* Otherwise nothing would ever be kept under that word. */
TEST(every_family_of_the_table_is_one_of_the_agent)
{
    for (size_t i = 0; i < n_kept_words; i++) {
        bool is_known = false;

        for (size_t k = 0; usage_collectors[k] && !is_known; k++)
            for (size_t m = 0; m < usage_collectors[k]->n_families; m++)
                if (strcmp(usage_collectors[k]->families[m].name, kept_words[i].family) == 0)
                    is_known = true;
        if (!is_known)
            fail_msg("no agent tells %s", kept_words[i].family);
        assert_ptr_equal(kept_word_of(str_of(kept_words[i].word), kept_words[i].is_of_gpu),
                         &kept_words[i]);
    }
}
