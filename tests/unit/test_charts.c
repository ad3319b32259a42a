/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the charts in src/report. */
#include "made_plots.h"
#include "report/axis.h"
#include "report/core_charts.h"
#include "report/job_charts.h"
#include "test.h"

#include "files.h"

#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OUT_MAX = 1 << 22, BEGIN = 1790000000 };

static const double gib = 0x1p30;

struct fixture {
    struct arena arena;
    struct job_facts facts;
    struct chart chart;
    struct buf out;
};

static struct fixture *f;

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void set_up(void)
{
    f = calloc(1, sizeof(*f));
    set_zone("UTC");
    job_facts_clear(&f->facts);
    buf_init(&f->out, OUT_MAX);
}

static void tear_down(void)
{
    buf_free(&f->out);
    arena_clear(&f->arena);
    free(f);
}

FIXTURE(set_up, tear_down)

static void add_node(const char *name, double cpus, double memory_bytes)
{
    struct node_facts *node = facts_node(&f->facts, &f->arena, str_of(name));

    node->use.cpus = cpus;
    node->use.memory_bytes = memory_bytes;
    f->facts.row.record.node_count = (uint32_t)f->facts.n_nodes;
}

static void add_cores(const char *node_name, uint32_t n, double seconds)
{
    struct node_facts *node = facts_node(&f->facts, &f->arena, str_of(node_name));

    node->core = ARENA_ARRAY(&f->arena, struct core_facts, n);
    node->n_cores = n;
    for (uint32_t i = 0; i < n; i++)
        node->core[i] = (struct core_facts){ i, seconds };
}

/* One line of these values, a minute apart. */
static void plot_values(enum facts_plot_kind kind, const double *value, size_t n)
{
    struct plot_line *line = ARENA_NEW(&f->arena, struct plot_line);

    line->name = STR("c1");
    line->value = ARENA_ARRAY(&f->arena, double, n);
    memcpy(line->value, value, n * sizeof(*value));
    f->facts.plot[kind] = (struct facts_plot){ BEGIN, 60, n, line, 1, 1 };
}

static void draw(enum job_chart which)
{
    assert_true(job_chart(&f->chart, &f->arena, &f->facts, which, 640, 240));
}

static const struct mark *find_mark(const struct chart *chart, enum mark_kind kind, int ink,
                                    size_t nth)
{
    for (size_t i = 0; i < chart->n_marks; i++)
        if (chart->mark[i].kind == kind && chart->mark[i].ink == ink && nth-- == 0)
            return &chart->mark[i];
    return NULL;
}

static size_t count_marks(const struct chart *chart, enum mark_kind kind, int ink)
{
    size_t n = 0;

    while (find_mark(chart, kind, ink, n))
        n++;
    return n;
}

static const struct mark *find_text(const struct chart *chart, const char *text)
{
    for (size_t i = 0; i < chart->n_marks; i++)
        if (chart->mark[i].kind == MARK_TEXT && str_eq(chart->mark[i].text, str_of(text)))
            return &chart->mark[i];
    return NULL;
}

/* The longest line of an ink: not its sample in the legend. */
static const struct mark *find_line(const struct chart *chart, int ink)
{
    const struct mark *mark, *best = NULL;
    double longest = 20;

    for (size_t i = 0; (mark = find_mark(chart, MARK_LINE, ink, i)); i++) {
        double length = mark->point[mark->n_points - 1].x - mark->point[0].x;

        if (length > longest) {
            longest = length;
            best = mark;
        }
    }
    return best;
}

/* What stands at a height, by the marks "0" and `label`, which stands at `value`. */
static double value_at(const struct chart *chart, double y, const char *label, double value)
{
    const struct mark *zero = find_text(chart, "0"), *other = find_text(chart, label);

    assert_non_null(zero);
    assert_non_null(other);
    return value * (zero->at.y - y - 2.5) / (zero->at.y - other->at.y);
}

static void assert_axis(enum axis_unit unit, double highest, size_t n_steps, const char *expected)
{
    struct axis axis;
    struct buf text;

    axis_init(&axis, unit, highest, n_steps);
    buf_init(&text, 1024);
    for (size_t i = 0; (double)i * axis.step <= axis.most * 1.0001; i++) {
        buf_text(&text, i ? ", " : "");
        axis_put(&text, &axis, (double)i * axis.step);
    }
    assert_str(buf_str(&text), expected);
    buf_free(&text);
}

TEST(an_axis_has_steps_of_1_2_and_5_in_units_for_people)
{
    assert_axis(AXIS_NUMBER, 31.9, 4, "0, 10, 20, 30, 40");
    assert_axis(AXIS_NUMBER, 1, 5, "0, 0.2, 0.4, 0.6, 0.8, 1");
    assert_axis(AXIS_NUMBER, 51200, 3, "0, 20000, 40000, 60000");
    assert_axis(AXIS_BYTES, 1.6 * gib, 4, "0, 0.5 GiB, 1 GiB, 1.5 GiB, 2 GiB");
    assert_axis(AXIS_BYTES, 1000 * 0x1p20, 5, "0, 200 MiB, 400 MiB, 600 MiB, 800 MiB, 1000 MiB");
    assert_axis(AXIS_BYTES_PER_SECOND, 3 * 0x1p20, 3, "0, 1 MiB/s, 2 MiB/s, 3 MiB/s");
    assert_axis(AXIS_RATIO, 1, 5, "0, 20 %, 40 %, 60 %, 80 %, 100 %");
    assert_axis(AXIS_SECONDS, 5400, 3, "0, 50 min, 100 min");
    assert_axis(AXIS_SECONDS, 7200, 4, "0, 0.5 h, 1 h, 1.5 h, 2 h");
}

TEST(an_axis_of_nothing_or_of_nonsense_can_still_be_drawn)
{
    assert_axis(AXIS_NUMBER, 0, 2, "0, 0.5, 1");
    assert_axis(AXIS_BYTES, NAN, 2, "0, 0.5 KiB, 1 KiB");
    assert_axis(AXIS_RATIO, INFINITY, 2, "0, 50 %, 100 %");
}

static void assert_moments(int64_t begin, int64_t end, size_t most, const char *expected)
{
    struct axis_moments moments;
    struct buf text;

    axis_moments(&moments, begin, end, most);
    buf_init(&text, 4096);
    for (size_t i = 0; i < moments.n; i++) {
        buf_text(&text, i ? ", " : "");
        axis_put_clock(&text, moments.moment[i], moments.step_seconds);
    }
    assert_str(buf_str(&text), expected);
    buf_free(&text);
}

TEST(times_are_marked_at_whole_minutes_hours_and_days_of_the_readers_zone)
{
    set_zone("Asia/Kolkata"); /* 5:30 ahead: 2026-09-21 19:43:20 */
    assert_moments(BEGIN, BEGIN + 90, 4, "19:43:30, 19:44:00, 19:44:30");
    assert_moments(BEGIN, BEGIN + 7200, 5, "20:00, 20:30, 21:00, 21:30");
    assert_moments(BEGIN, BEGIN + 86400, 5, "00:00, 06:00, 12:00, 18:00");
    assert_moments(BEGIN, BEGIN + 4 * 86400, 5, "22 Sep, 23 Sep, 24 Sep, 25 Sep");
}

TEST(midnight_is_midnight_also_after_clocks_were_put_back)
{
    const int64_t before =
        1792854000; /* 2026-10-24 17:00 in Berlin; they are put back on the 25th */

    set_zone("Europe/Berlin");
    assert_moments(before, before + 40 * 3600, 8,
                   "18:00, 00:00, 06:00, 12:00, 18:00, 00:00, 06:00");
}

TEST(no_time_has_more_marks_than_wanted_or_marks_outside)
{
    static const char *const zones[] = { "UTC", "Europe/Berlin", "America/St_Johns",
                                         "Pacific/Apia" };

    for (size_t z = 0; z < COUNT(zones); z++) {
        set_zone(zones[z]);
        for (int64_t seconds = 1; seconds < INT64_C(40000000000); seconds = seconds * 3 / 2 + 1) {
            struct axis_moments moments;

            axis_moments(&moments, BEGIN, BEGIN + seconds, 7);
            assert_in_range(moments.n, seconds > 5 ? 1 : 0, 7);
            for (size_t i = 0; i < moments.n; i++) {
                assert_true(moments.moment[i] >= BEGIN && moments.moment[i] <= BEGIN + seconds);
                assert_true(i == 0 || moments.moment[i] > moments.moment[i - 1]);
            }
        }
    }
}

TEST(the_zone_is_named)
{
    static const char *const zones[][2] = { { "UTC", "UTC" },
                                            { "Europe/Berlin", "CEST (UTC+02:00)" },
                                            { "America/Sao_Paulo", "UTC-03:00" } };

    for (size_t i = 0; i < COUNT(zones); i++) {
        set_zone(zones[i][0]);
        buf_reset(&f->out);
        axis_put_zone(&f->out, BEGIN);
        assert_str(buf_str(&f->out), zones[i][1]);
    }
}

TEST(the_dashed_line_stands_at_80_percent_of_a_nodes_cpus)
{
    const struct mark *limit;

    add_node("c1", 32, 64 * gib);
    add_node("c2", 32, 64 * gib);
    plot_values(PLOT_CPU, (double[]){ 3, 31, 16 }, 3);
    draw(JOB_CHART_CPU);
    limit = find_line(&f->chart, INK_LIMIT);
    assert_non_null(limit);
    assert_int_equal(limit->dash, DASH_LIMIT);
    assert_float_equal(value_at(&f->chart, limit->point[0].y, "40", 40), 25.6, 0.1);
    assert_non_null(find_text(&f->chart, "80 % of 32 CPUs a node"));
}

TEST(the_dashed_line_of_memory_stands_at_what_was_allocated)
{
    const struct mark *limit;

    add_node("c1", 32, 48 * gib);
    plot_values(PLOT_MEMORY, (double[]){ 3 * gib, 4 * gib }, 2);
    draw(JOB_CHART_MEMORY);
    limit = find_line(&f->chart, INK_LIMIT);
    assert_non_null(limit);
    assert_float_equal(value_at(&f->chart, limit->point[1].y, "50 GiB", 50), 48, 0.2);
    assert_non_null(find_text(&f->chart, "allocated: 48 GiB"));
}

TEST(nodes_with_different_shares_have_a_line_at_their_mean)
{
    add_node("c1", 8, NAN);
    add_node("c2", 16, NAN);
    plot_values(PLOT_CPU, (double[]){ 3, 4 }, 2);
    draw(JOB_CHART_CPU);
    assert_non_null(find_text(&f->chart, "80 % of 12 CPUs a node on average"));
}

TEST(what_is_not_known_has_no_dashed_line)
{
    plot_values(PLOT_CPU, (double[]){ 3, 4 }, 2);
    plot_values(PLOT_MEMORY, (double[]){ gib, 2 * gib }, 2);
    draw(JOB_CHART_CPU);
    assert_null(find_mark(&f->chart, MARK_LINE, INK_LIMIT, 0));
    draw(JOB_CHART_MEMORY);
    assert_null(find_mark(&f->chart, MARK_LINE, INK_LIMIT, 0));
}

TEST(a_line_goes_through_its_values)
{
    static const double values[] = { 0, 10, 20, 5 };
    const struct mark *line;

    plot_values(PLOT_CPU, values, COUNT(values));
    draw(JOB_CHART_CPU);
    line = find_line(&f->chart, INK_FIRST);
    assert_int_equal(line->n_points, COUNT(values));
    for (size_t i = 0; i < COUNT(values); i++) {
        assert_float_equal(value_at(&f->chart, line->point[i].y, "20", 20), values[i], 0.1);
        assert_float_equal(line->point[i].x - line->point[0].x,
                           (line->point[3].x - line->point[0].x) * (double)i / 3, 0.1);
    }
    assert_str(f->chart.title, "CPUs in use by node");
    assert_str(f->chart.summary, "CPUs in use by node: c1 between 0 and 20, 8.8 on average");
}

/* 40 CPUs, of which 30 or 20 are allocated: no mean over the three lines is true of anything. */
TEST(a_summary_describes_each_line_and_no_mean_of_unlike_ones)
{
    static double allocated[] = { 30, 20 }, idle[] = { 10, 20 }, unusable[] = { 0, 0 };
    static double unknown[] = { NAN, NAN };
    struct plot_line line[] = { { STR("allocated"), allocated },
                                { STR("idle"), idle },
                                { STR("unusable"), unusable },
                                { STR("none"), unknown } };
    const struct facts_plot plot = { BEGIN, 60, 2, line, COUNT(line), COUNT(line) };

    chart_init(&f->chart, &f->arena, 400, 200);
    assert_true(time_chart(&f->chart, &(struct time_chart){ .title = "CPUs",
                                                            .members = "lines",
                                                            .unit = AXIS_NUMBER,
                                                            .from = &plot,
                                                            .limit = NAN }));
    assert_str(f->chart.summary, "CPUs: allocated between 20 and 30, 25 on average; idle between "
                                 "10 and 20, 15 on average; unusable 0");
}

TEST(a_summary_of_many_lines_has_their_number_and_range)
{
    make_plots(
        &f->facts, &f->arena,
        &(struct made_plots){ .n_lines = 9, .n_points = 3, .begin = BEGIN, .step_seconds = 60 });
    for (size_t i = 0; i < 9; i++)
        for (size_t k = 0; k < 3; k++)
            f->facts.plot[PLOT_CPU].line[i].value[k] = (double)(i + k);
    draw(JOB_CHART_CPU);
    assert_str(f->chart.summary, "CPUs in use by node: 9 nodes between 0 and 10");
}

TEST(a_gap_stays_a_gap_and_a_value_alone_is_a_dot)
{
    static const double values[] = { 1, 2, NAN, INFINITY, 3, NAN, 4, 5 };
    const struct mark *line, *dots;

    plot_values(PLOT_CPU, values, COUNT(values));
    draw(JOB_CHART_CPU);
    line = find_line(&f->chart, INK_FIRST);
    assert_int_equal(line->n_points, 7);
    for (size_t i = 0; i < line->n_points; i++)
        assert_int_equal(isnan(line->point[i].y), i == 2 || i == 4);
    dots = line + 1;
    assert_int_equal(dots->ink, INK_FIRST);
    assert_true(dots->width > 2 * line->width);
    assert_float_equal(dots->point[0].x, line->point[3].x, 0.01);
    assert_int_equal(dots->n_points, 2);
}

TEST(one_value_is_a_dot_in_the_middle)
{
    const struct mark *dot;

    plot_values(PLOT_READ, (double[]){ 1e6 }, 1);
    draw(JOB_CHART_READ);
    dot = find_mark(&f->chart, MARK_LINE, INK_FIRST, 2); /* behind the legend's and the line */
    assert_non_null(dot);
    assert_float_equal(dot->point[0].x, 340, 30);
}

TEST(thinning_keeps_the_highest_and_the_lowest)
{
    double values[PLOT_POINTS_MAX];
    const struct mark *line;
    double top = INFINITY, bottom = 0;

    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = 10 + (double)(i % 3);
    values[537] = 20;
    values[538] = 1;
    plot_values(PLOT_CPU, values, COUNT(values));
    draw(JOB_CHART_CPU);
    line = find_line(&f->chart, INK_FIRST);
    assert_true(line->n_points < 600);
    for (size_t i = 0; i < line->n_points; i++) {
        top = fmin(top, line->point[i].y);
        bottom = fmax(bottom, line->point[i].y);
    }
    assert_float_equal(value_at(&f->chart, top, "20", 20), 20, 0.1);
    assert_float_equal(value_at(&f->chart, bottom, "20", 20), 1, 0.1);
}

TEST(many_members_are_a_median_and_a_band)
{
    const struct mark *band;

    make_plots(&f->facts, &f->arena, &(struct made_plots){ 3, 100, 4000, BEGIN, 60, 0 });
    draw(JOB_CHART_CPU);
    assert_int_equal(count_marks(&f->chart, MARK_AREA, INK_BAND), 2); /* before and after the gap */
    band = find_mark(&f->chart, MARK_AREA, INK_BAND, 1);
    assert_float_equal(value_at(&f->chart, band->point[50].y, "30", 30), 30, 0.5);
    assert_float_equal(value_at(&f->chart, band->point[band->n_points - 51].y, "30", 30), 6, 0.5);
    assert_non_null(find_text(&f->chart, "median of 4,000 nodes"));
    assert_non_null(find_text(&f->chart, "lowest to highest"));
    assert_int_equal(count_marks(&f->chart, MARK_LINE, INK_FIRST + 1), 0);
}

TEST(eight_lines_are_named_and_differ_in_colour_and_dash)
{
    make_plots(&f->facts, &f->arena, &(struct made_plots){ 8, 100, 0, BEGIN, 60, 0 });
    draw(JOB_CHART_CPU);
    assert_non_null(find_text(&f->chart, "node01"));
    assert_non_null(find_text(&f->chart, "node08"));
    for (int i = 1; i < 8; i++) {
        const struct mark *line = find_line(&f->chart, INK_FIRST + i);

        assert_non_null(line);
        assert_int_not_equal(line->dash, find_line(&f->chart, INK_FIRST + i - 1)->dash);
        assert_int_not_equal(ink_look(line->ink)->rgb, ink_look(line->ink - 1)->rgb);
    }
}

TEST(more_lines_are_told_by_their_number)
{
    make_plots(&f->facts, &f->arena, &(struct made_plots){ 50, 1000, 0, BEGIN, 60, 0.5 });
    draw(JOB_CHART_CPU);
    assert_non_null(find_text(&f->chart, "50 nodes"));
    assert_null(find_text(&f->chart, "node01"));
    assert_str(find_mark(&f->chart, MARK_LINE, INK_FIRST + 49, 0)->text, "node50");
}

TEST(days_are_told_where_they_begin)
{
    const struct mark *midnight, *date;

    make_plots(&f->facts, &f->arena, &(struct made_plots){ 1, 400, 0, BEGIN, 300, 0 });
    draw(JOB_CHART_CPU);
    midnight = find_text(&f->chart, "00:00");
    date = find_text(&f->chart, "22 Sep 2026");
    assert_non_null(midnight);
    assert_non_null(date);
    assert_float_equal(midnight->at.x, date->at.x, 0.01);
    assert_non_null(find_text(&f->chart, "21 Sep 2026"));
    assert_non_null(find_text(&f->chart, "UTC"));
}

TEST(there_is_no_chart_of_nothing)
{
    for (int i = 0; i < JOB_CHARTS; i++)
        assert_false(job_chart(&f->chart, &f->arena, &f->facts, (enum job_chart)i, 640, 240));
    plot_values(PLOT_CPU, (double[]){ NAN, NAN }, 2);
    assert_false(job_chart(&f->chart, &f->arena, &f->facts, JOB_CHART_CPU, 640, 240));
    f->facts.total.user_seconds = f->facts.total.system_seconds = 0;
    assert_false(job_chart(&f->chart, &f->arena, &f->facts, JOB_CHART_TIME, 640, 240));
    add_cores("c1", 4, 0);
    assert_false(job_chart(&f->chart, &f->arena, &f->facts, JOB_CHART_CORES, 640, 240));
}

/* Its slices would be labeled 0 s. */
TEST(there_is_no_pie_of_less_time_than_is_written)
{
    f->facts.total.user_seconds = 0.002;
    f->facts.total.system_seconds = 0.001;
    assert_false(job_chart(&f->chart, &f->arena, &f->facts, JOB_CHART_TIME, 640, 240));
    assert_false(time_pie_has_data(&f->facts));
    add_cores("c1", 2, 0.001);
    assert_false(job_chart(&f->chart, &f->arena, &f->facts, JOB_CHART_CORES, 640, 240));
    assert_false(core_chart_has_data(&f->facts));
    f->facts.total.user_seconds = 0.01;
    assert_true(time_pie_has_data(&f->facts));
    add_cores("c2", 2, 0.01);
    assert_true(core_chart_has_data(&f->facts));
}

TEST(a_pie_divides_the_time_between_user_and_system)
{
    const struct mark *user, *kernel;

    f->facts.total.user_seconds = 2700;
    f->facts.total.system_seconds = 900;
    draw(JOB_CHART_TIME);
    user = find_mark(&f->chart, MARK_WEDGE, INK_FIRST, 0);
    kernel = find_mark(&f->chart, MARK_WEDGE, INK_FIRST + 1, 0);
    assert_float_equal(user->to - user->from, 0.75, 0.01);
    assert_float_equal(kernel->to - kernel->from, 0.25, 0.01);
    assert_non_null(find_text(&f->chart, "user: 75 %, 00:45:00"));
    assert_non_null(find_text(&f->chart, "25 %"));
    assert_str(f->chart.summary,
               "CPU time: user and system: user: 75 %, 00:45:00, system: 25 %, 00:15:00");
}

TEST(up_to_twelve_cores_are_a_pie_and_more_are_bars)
{
    size_t n = 0;

    add_cores("c1", CORE_WEDGES, 100);
    draw(JOB_CHART_CORES);
    for (int i = 0; i < CORE_WEDGES; i++)
        n += count_marks(&f->chart, MARK_WEDGE, INK_FIRST + i);
    assert_int_equal(n, CORE_WEDGES);
    add_cores("c2", 1, 50);
    draw(JOB_CHART_CORES);
    assert_int_equal(count_marks(&f->chart, MARK_RECTANGLE, INK_FIRST), CORE_WEDGES + 1);
    assert_non_null(find_text(&f->chart, "c1"));
    assert_non_null(find_line(&f->chart, INK_LIMIT));
}

TEST(very_many_cores_are_grouped_the_busiest_first)
{
    const struct mark *first, *last;
    size_t n;

    add_cores("c1", 60000, 10);
    add_cores("c2", 60000, 1000);
    draw(JOB_CHART_CORES);
    n = count_marks(&f->chart, MARK_RECTANGLE, INK_FIRST);
    assert_in_range(n, 100, 500);
    first = find_mark(&f->chart, MARK_RECTANGLE, INK_FIRST, 0);
    last = find_mark(&f->chart, MARK_RECTANGLE, INK_FIRST, n - 1);
    assert_float_equal(first->size.y / last->size.y, 100, 1);
    assert_str(f->chart.summary, "CPU time by core, the busiest first: between 10 s and 00:16:40, "
                                 "00:08:25 on average");
}

TEST(charts_are_found_by_our_names_and_petricores)
{
    enum job_chart chart;

    for (int i = 0; i < JOB_CHARTS; i++) {
        assert_true(job_chart_find(str_of(job_chart_names[i]), &chart));
        assert_int_equal(chart, i);
    }
    assert_true(job_chart_find(STR("jobs_rss"), &chart));
    assert_int_equal(chart, JOB_CHART_MEMORY);
    assert_false(job_chart_find(STR("jobs_rss_"), &chart));
    assert_false(job_chart_find(STR(""), &chart));
}

/* What an XML reader sees. */
struct seen {
    struct buf texts, elements;
};

static void see_element(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    struct seen *seen = ctx;

    (void)attributes;
    buf_text(&seen->elements, name);
    buf_byte(&seen->elements, '\n');
}

static void see_text(void *ctx, const XML_Char *text, int n)
{
    struct seen *seen = ctx;

    buf_put(&seen->texts, (struct str){ text, (size_t)n });
}

static void parse(const struct buf *svg, struct seen *seen)
{
    XML_Parser parser = XML_ParserCreate(NULL);

    buf_init(&seen->texts, OUT_MAX);
    buf_init(&seen->elements, OUT_MAX);
    XML_SetUserData(parser, seen);
    XML_SetElementHandler(parser, see_element, NULL);
    XML_SetCharacterDataHandler(parser, see_text);
    if (XML_Parse(parser, svg->p, (int)svg->n, 1) != XML_STATUS_OK)
        fail_msg("line %zu: %s", (size_t)XML_GetCurrentLineNumber(parser),
                 XML_ErrorString(XML_GetErrorCode(parser)));
    XML_ParserFree(parser);
}

static void forget(struct seen *seen)
{
    buf_free(&seen->texts);
    buf_free(&seen->elements);
}

TEST(a_strangers_text_stays_text_and_the_svg_valid)
{
    static const struct str texts[] = {
        STR_INIT("</title></text></svg><script>alert(1)</script><h1>"),
        STR_INIT("\" onload=\"x\" '&amp;&#0;]]>"),
        STR_INIT(
            "\x01\x02\x7f\xff\xfe\xc0\x80\xed\xa0\x80\xef\xbf\xbe\xef\xbf\xbf\xf0\x9f\x92\xa9"),
        STR_INIT("a\0b\r\nBcc: x"),
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct seen seen;

        plot_values(PLOT_CPU, (double[]){ 1, 2 }, 2);
        f->facts.plot[PLOT_CPU].line->name = texts[i];
        draw(JOB_CHART_CPU);
        f->chart.title = f->chart.summary = texts[i];
        buf_reset(&f->out);
        chart_svg(&f->out, &f->chart, "a-");
        parse(&f->out, &seen);
        assert_null(strstr(seen.elements.p, "script"));
        assert_null(strstr(seen.elements.p, "h1"));
        assert_null(strstr(f->out.p, " onload=\"x\""));
        forget(&seen);
    }
}

TEST(an_svg_has_real_text_titles_and_ids_of_its_own)
{
    struct seen seen;

    add_node("c1", 4, NAN);
    plot_values(PLOT_CPU, (double[]){ 1, 2 }, 2);
    draw(JOB_CHART_CPU);
    chart_svg(&f->out, &f->chart, "cpu-");
    parse(&f->out, &seen);
    assert_contains(f->out.p, "role=\"img\" aria-labelledby=\"cpu-title cpu-summary\"");
    assert_contains(f->out.p, "<title id=\"cpu-title\">CPUs in use by node</title>");
    assert_contains(f->out.p, "class=\"sonde-line-1\"");
    assert_contains(f->out.p, "fill=\"currentColor\"");
    assert_contains(seen.texts.p, "80 % of 4 CPUs");
    assert_contains(seen.elements.p, "text\n");
    forget(&seen);
}

TEST(eight_lines_of_a_thousand_points_are_less_than_30_kb)
{
    make_plots(&f->facts, &f->arena, &(struct made_plots){ 8, 1000, 0, BEGIN, 60, 0.9 });
    draw(JOB_CHART_CPU);
    chart_svg(&f->out, &f->chart, "cpu-");
    assert_in_range(f->out.n, 10000, 30000);
}

TEST(no_number_makes_an_svg_that_cannot_be_read)
{
    static const double values[][3] = {
        { 0, 0, 0 },           { 1e308, 1e308, 1 },   { -5, 3, -1e300 },
        { 5e-324, 0, 1e-300 }, { NAN, 1, -INFINITY },
    };

    for (size_t i = 0; i < COUNT(values); i++) {
        for (int kind = 0; kind < FACTS_PLOTS; kind++) {
            struct seen seen;

            plot_values((enum facts_plot_kind)kind, values[i], 3);
            draw((enum job_chart)kind);
            buf_reset(&f->out);
            chart_svg(&f->out, &f->chart, "");
            parse(&f->out, &seen);
            assert_null(strcasestr(f->out.p, "nan"));
            assert_null(strcasestr(f->out.p, "inf"));
            forget(&seen);
        }
    }
}

TEST(a_line_has_the_colour_of_the_state_that_it_is_named_by)
{
    static const struct {
        struct str name;
        int ink;
    } lines[] = {
        { STR_INIT("gpu07"), INK_FIRST + 1 },    { STR_INIT("IDLE"), INK_FIRST + 2 },
        { STR_INIT("allocated"), INK_FIRST },    { STR_INIT("drained"), INK_FIRST + 4 },
        { STR_INIT("draining"), INK_FIRST + 3 }, /* its own is taken */
    };
    struct plot_line line[COUNT(lines)];
    const struct facts_plot plot = { .line = line, .n_lines = COUNT(lines) };
    int ink[COUNT(lines)];

    for (size_t i = 0; i < COUNT(lines); i++)
        line[i] = (struct plot_line){ .name = lines[i].name };
    time_chart_inks(&plot, ink);
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(ink[i], lines[i].ink);
}

/* WCAG 2.1, "relative luminance". */
static double linear(uint32_t rgb, int shift)
{
    double value = (rgb >> shift & 255) / 255.0;

    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double luminance(uint32_t rgb)
{
    return 0.2126 * linear(rgb, 16) + 0.7152 * linear(rgb, 8) + 0.0722 * linear(rgb, 0);
}

static double contrast(uint32_t a, uint32_t b)
{
    double x = luminance(a) + 0.05, y = luminance(b) + 0.05;

    return x > y ? x / y : y / x;
}

TEST(colours_can_be_seen_on_white_and_on_dark_pages)
{
    for (int ink = INK_FIRST; ink < INK_FIRST + INK_SERIES; ink++) {
        assert_true(contrast(ink_look(ink)->rgb, 0xffffff) >= 3);
        assert_true(contrast(ink_look(ink)->dark_rgb, 0x14191d) >= 3);
    }
    assert_true(contrast(ink_look(INK_TEXT)->rgb, 0xffffff) >= 7);
    assert_true(contrast(ink_look(INK_TEXT)->dark_rgb, 0x14191d) >= 7);
}

/* What those see who lack a kind of cone: Machado, Oliveira and Fernandes, "A Physiologically-based
 * Model for Simulation of Color Vision Deficiency" (2009), severity 1; then in Oklab. */
static const double visions[][3][3] = {
    { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
    { { 0.152286, 1.052583, -0.204868 },
      { 0.114503, 0.786281, 0.099216 },
      { -0.003882, -0.048116, 1.051998 } },
    { { 0.367322, 0.860646, -0.227968 },
      { 0.280085, 0.672501, 0.047413 },
      { -0.011820, 0.042940, 0.968881 } },
};

static void see(uint32_t rgb, const double vision[3][3], double ret[3])
{
    const double light[] = { linear(rgb, 16), linear(rgb, 8), linear(rgb, 0) };
    double seen[3], l, m, s;

    for (size_t i = 0; i < 3; i++)
        seen[i] = fmax(0, fmin(1, vision[i][0] * light[0] + vision[i][1] * light[1] +
                                      vision[i][2] * light[2]));
    l = cbrt(0.4122214708 * seen[0] + 0.5363325363 * seen[1] + 0.0514459929 * seen[2]);
    m = cbrt(0.2119034982 * seen[0] + 0.6806995451 * seen[1] + 0.1073969566 * seen[2]);
    s = cbrt(0.0883024619 * seen[0] + 0.2817188376 * seen[1] + 0.6299787005 * seen[2]);
    ret[0] = 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
    ret[1] = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s;
    ret[2] = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
}

static void assert_apart(uint32_t a, uint32_t b)
{
    const double least = 0.075; /* a step of lightness of 7.5 % */

    for (size_t i = 0; i < COUNT(visions); i++) {
        double x[3], y[3];

        see(a, visions[i], x);
        see(b, visions[i], y);
        if (hypot(hypot(x[0] - y[0], x[1] - y[1]), x[2] - y[2]) < least)
            fail_msg("#%06x and #%06x look alike", (unsigned)a, (unsigned)b);
    }
}

TEST(the_colour_blind_tell_colours_apart)
{
    for (int i = INK_FIRST; i < INK_FIRST + INK_SERIES; i++)
        for (int k = INK_FIRST; k < i; k++) {
            assert_apart(ink_look(i)->rgb, ink_look(k)->rgb);
            assert_apart(ink_look(i)->dark_rgb, ink_look(k)->dark_rgb);
        }
}

TEST(charts_have_the_colours_of_the_pages)
{
    static const char *const words[INK_SERIES] = { "blue",  "red",  "green", "purple",
                                                   "amber", "teal", "grey",  "olive" };
    const char *style = read_file(source_path("src/web/static/sonde.css")).p;
    const char *dark = strstr(style, "prefers-color-scheme: dark");

    assert_non_null(dark);
    for (int i = 0; i < INK_SERIES; i++) {
        const struct ink_look *look = ink_look(INK_FIRST + i);
        char rule[64];

        snprintf(rule, sizeof(rule), "--%s: #%06x;", words[i], (unsigned)look->rgb);
        assert_contains(style, rule);
        snprintf(rule, sizeof(rule), "--%s: #%06x;", words[i], (unsigned)look->dark_rgb);
        assert_contains(dark, rule);
        snprintf(rule, sizeof(rule), ".sonde-line-%s { stroke: var(--%s); }", look->name, words[i]);
        assert_contains(style, rule);
    }
}

TEST(an_image_brings_its_colours_and_a_chart_in_a_page_does_not)
{
    struct seen seen;

    plot_values(PLOT_CPU, (double[]){ 1, 2 }, 2);
    draw(JOB_CHART_CPU);
    chart_svg(&f->out, &f->chart, "cpu-");
    assert_null(strstr(f->out.p, "<style"));
    buf_reset(&f->out);
    chart_svg_image(&f->out, &f->chart);
    parse(&f->out, &seen);
    assert_contains(f->out.p, "@media screen and (prefers-color-scheme:dark){svg{color:#dfe6ea}}");
    assert_contains(f->out.p, ".sonde-line-1{stroke:#3d9bf0}.sonde-fill-1{fill:#3d9bf0}");
    forget(&seen);
}

TEST(a_chart_is_drawn_as_before)
{
    set_zone("Europe/Berlin");
    add_node("node01", 32, NAN);
    add_node("node02", 32, NAN);
    make_plots(&f->facts, &f->arena, &(struct made_plots){ 2, 40, 0, BEGIN, 300, 0.2 });
    draw(JOB_CHART_CPU);
    chart_svg(&f->out, &f->chart, "cpu-");
    assert_golden(buf_str(&f->out), "tests/data/report/cpu.svg");
}
