/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trend as an image, and its data for the script: the pages do not wait for either. */
#include "base/num.h"
#include "report/plot.h"
#include "report/time_chart.h"
#include "report/words.h"
#include "web/allocation_rows.h"
#include "web/cluster_pages.h"
#include "web/series_json.h"
#include "web/show_cluster.h"

#include <math.h>

enum { POINTS = 360, LINES = 6 };

static const double points_of_pixel = 0.75;

struct asked {
    struct site_call *call;
    const struct board_cluster *cluster;
    struct trend_question question;
    const struct trend_row *row;
};

static bool find_trend(struct str name, enum trend *ret)
{
    for (enum trend i = 0; i < TRENDS; i++) {
        if (!str_eq(name, str_of(trend_rows[i].name)))
            continue;
        *ret = i;
        return true;
    }
    return false;
}

static int read_hours(struct site_call *call, int64_t *ret)
{
    struct str text = site_argument(call, "hours");
    uint64_t hours = SHOW_HOURS;

    if (text.n && (!num_get_u64(text, &hours) || !hours || hours > SHOW_HOURS_MAX))
        return site_refuse(call, 400, "hours is a number from 1 to %d", SHOW_HOURS_MAX);
    *ret = (int64_t)hours;
    return 0;
}

static int read_question(struct site_call *call, struct str name, struct asked *ret)
{
    struct trend_question *question = &ret->question;
    int64_t hours = 0;
    int code = read_hours(call, &hours);

    *ret = (struct asked){ .call = call, .cluster = board_find(call->board, call->cluster) };
    if (code)
        return code;
    if (!find_trend(name, &question->trend))
        return site_not_found(call, "trend", name);
    if (!ret->cluster)
        return site_refuse(call, 400, "say of which cluster: ?cluster=NAME");
    ret->row = &trend_rows[question->trend];
    question->node = site_argument(call, "node");
    if (ret->row->is_of_node && show_is_private(call, ret->cluster, PRIVATE_NODES))
        return site_refuse(call, 403, "nodes %s", show_why_private(ret->cluster));
    if (ret->row->is_of_node && !board_node(ret->cluster, question->node))
        return site_not_found(call, "node", question->node);
    question->cluster = ret->cluster->name;
    question->from = call->now - hours * 3600;
    question->to = call->now;
    question->most_points = POINTS;
    question->deadline_ns = call->deadline_ns;
    return 0;
}

/* Why there is nothing is for staff: it names hosts and files. */
static int read_plot(const struct asked *asked, struct facts_plot *ret, struct str *ret_why)
{
    struct site_call *call = asked->call;
    struct trends *trends = site_trends(call);

    *ret_why = STR("nothing keeps numbers over time here");
    if (!trends)
        return -ENOENT;
    if (trends_read(trends, &asked->question, &call->arena, ret, &call->err) == 0) {
        *ret_why = STR("none was kept of this time");
        return ret->n_points ? 0 : -ENODATA;
    }
    *ret_why = call->viewer.is_staff ? arena_str(&call->arena, str_of(call->err.text))
                                     : STR("they cannot be read at the moment");
    return -EIO;
}

/* A sentence in lines, cut between words. */
static void put_sentence(struct chart *chart, struct str text)
{
    const double row = 12, letter = 0.6 * plot_font_size;
    const size_t most = (size_t)(chart->width / letter);
    double y = chart->height / 2 - row;

    for (size_t i = 0; i < LINES && text.n; i++) {
        size_t n = text.n < most ? text.n : most;

        while (n < text.n && n > 1 && text.p[n] != ' ')
            n--;
        plot_text(chart, (struct point){ chart->width / 2, y }, ANCHOR_MIDDLE, INK_FAINT,
                  str_trim(str_head(text, n)));
        text = str_trim(str_skip(text, n));
        y += row;
    }
}

static void draw_nothing(struct chart *chart, const struct asked *asked, struct str why)
{
    struct buf text;

    buf_init(&text, 600);
    buf_text(&text, "no data: ");
    buf_put(&text, why);
    chart->title = str_of(asked->row->title);
    chart->summary = arena_str(chart->arena, buf_str(&text));
    plot_title(chart);
    put_sentence(chart, chart->summary);
    buf_free(&text);
}

/* The dashed line: what was promised to all accounts together. */
static double limit_of(const struct asked *asked, struct str *ret_words)
{
    static const struct {
        enum trend trend;
        enum allocation_of what;
    } limits[] = { { TREND_CPUS, ALLOCATION_CPUS }, { TREND_GPUS, ALLOCATION_GPUS } };
    struct allocation_rows rows;
    struct buf words;
    double limit = NAN;

    for (size_t i = 0; i < COUNT(limits); i++) {
        if (limits[i].trend != asked->question.trend)
            continue;
        allocation_rows_find(asked->call, asked->cluster, &rows);
        limit = allocation_rows_steady(&rows, limits[i].what);
    }
    buf_init(&words, 100);
    buf_text(&words, "promised: ");
    words_number(&words, limit);
    *ret_words = arena_str(&asked->call->arena, buf_str(&words));
    buf_free(&words);
    return limit;
}

static int make_chart(struct site_call *call, const char **ret_type)
{
    struct asked asked;
    struct facts_plot plot;
    struct time_chart ask = { .members = "lines", .from = &plot };
    struct chart chart;
    struct str why;
    struct str name = call->rest;
    int code;

    if (str_ends(name, STR(".svg")))
        name.n -= STR(".svg").n;
    code = read_question(call, name, &asked);
    if (code)
        return code;
    ask.title = asked.row->title;
    ask.unit = asked.row->unit;
    chart_init(&chart, &call->arena,
               (site_argument(call, "narrow").n ? HTML_CHART_NARROW : HTML_CHART_WIDTH) *
                   points_of_pixel,
               HTML_CHART_HEIGHT * points_of_pixel);
    if (read_plot(&asked, &plot, &why) == 0) {
        ask.limit = limit_of(&asked, &ask.limit_text);
        code = time_chart(&chart, &ask) ? 0 : -ENODATA;
    } else {
        code = -ENODATA;
    }
    if (code < 0)
        draw_nothing(&chart, &asked, why);
    chart_svg_image(&call->out, &chart);
    *ret_type = "image/svg+xml";
    return 0;
}

static int make_data(struct site_call *call, const char **ret_type)
{
    struct asked asked;
    struct facts_plot plot;
    struct time_chart ask = { .from = &plot };
    struct str why;
    int code = read_question(call, call->rest, &asked);

    if (code)
        return code;
    code = read_plot(&asked, &plot, &why);
    if (code == -EIO)
        return site_refuse(call, 503, "there is no data: %.*s", STR_ARG(why));
    if (code < 0)
        plot = (struct facts_plot){ 0 };
    ask.title = asked.row->title;
    ask.unit = asked.row->unit;
    ask.limit = limit_of(&asked, &ask.limit_text);
    series_json(&call->out, &ask, &call->arena);
    *ret_type = "application/json";
    return 0;
}

const struct site_page show_trend_chart = {
    .path = "/chart/*",
    .needs = SITE_BOARD,
    .make = make_chart,
};

const struct site_page show_trend_data = {
    .path = "/api/v1/trends/*",
    .needs = SITE_BOARD,
    .make = make_data,
};
