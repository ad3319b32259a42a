/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's charts, as images and as the numbers that the script draws: /plot/ID/METRIC is also that
 * of petricore, whose images are PNG. */
#include "web/job_image.h"

#include "report/job_charts.h"
#include "report/outline.h"
#include "web/html.h"
#include "web/job_pages.h"
#include "web/report_child.h"
#include "web/series_json.h"

#include <math.h>

enum {
    ADVICE_MAX = 300,
    JOB_ID_BYTES = 64,
    IMAGE_HEIGHT = HTML_CHART_HEIGHT * 3 / 4, /* points */
};

static int refuse_chart(struct site_call *call)
{
    char list[ADVICE_MAX] = "";
    size_t n = 0;

    for (size_t i = 0; i < JOB_CHARTS && n < sizeof(list); i++)
        n +=
            (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", job_chart_names[i]);
    return site_refuse(call, 404, "there is no such chart: there are %s", list);
}

static double image_width(const struct site_call *call)
{
    return (site_argument(call, "narrow").n ? HTML_CHART_NARROW : HTML_CHART_WIDTH) * 3 / 4.0;
}

/* An image in place of one that cannot be drawn: it says why. */
static void draw_words(struct site_call *call, const char *words)
{
    struct chart chart;

    chart_init(&chart, &call->arena, image_width(call), IMAGE_HEIGHT);
    chart.title = STR("No data");
    chart.summary = str_of(words);
    chart_add(&chart, &(struct mark){ .kind = MARK_TEXT,
                                      .ink = INK_FAINT,
                                      .at = { chart.width / 2, chart.height / 2 },
                                      .anchor = ANCHOR_MIDDLE,
                                      .font_size = 12,
                                      .text = str_of(words) });
    chart_svg_image(&call->out, &chart);
}

static int draw_svg(struct site_call *call, const struct job_found *found, enum job_chart which)
{
    struct job_report report;
    struct chart chart;
    int code = job_make_report(call, found, true, &report);

    if (code)
        return code;
    if (job_chart(&chart, &call->arena, &report.facts, which, image_width(call), IMAGE_HEIGHT))
        chart_svg_image(&call->out, &chart);
    else
        draw_words(call, "There is nothing to draw.");
    return 0;
}

static const struct {
    int code;
    unsigned status;
    const char *sentence;
} failures[] = {
    { -ENODATA, 404, "there is nothing to draw of this job" },
    { -ETIMEDOUT, 504, "this took too long: try again" },
    { -EBUSY, 503, "others are being made at the moment: try again" },
};

static int refuse_failure(struct site_call *call, int code)
{
    for (size_t i = 0; i < COUNT(failures); i++)
        if (failures[i].code == code)
            return site_refuse(call, failures[i].status, "%s", failures[i].sentence);
    LOG(call->config->log, LOG_ERROR, "sonde-report failed", LOG_STR("error", call->err.text));
    return site_refuse(call, 503, "it cannot be made at the moment: sonde's log says why");
}

int job_image_by_child(struct site_call *call, const struct job_found *found, const char *form,
                       const char *more)
{
    struct report_child *child = site_report_child(call);
    struct report_question question = { .form = { form, more }, .deadline_ns = call->deadline_ns };
    struct buf name;
    bool is_newest;
    int code;

    if (!child)
        return site_refuse(call, 503, "sonde-report is not here: SVG, text and JSON are");
    code = job_is_newest(call, found, &is_newest);
    if (code < 0)
        return code;
    if (!is_newest)
        return site_refuse(call, 404,
                           "this is made of the newest run of a job only: others have a page, "
                           "text and JSON");
    buf_init(&name, JOB_ID_BYTES);
    outline_put_id(&name, &found->row.record);
    question.job = buf_str(&name);
    question.cluster = found->row.key.cluster;
    code = report_child_run(child, &question, &call->out, &call->err);
    buf_free(&name);
    return code < 0 ? refuse_failure(call, code) : 0;
}

static int draw_png(struct site_call *call, const struct job_found *found, enum job_chart which)
{
    char form[64];

    snprintf(form, sizeof(form), "--chart=%s", job_chart_names[which]);
    return job_image_by_child(call, found, form, "--png");
}

static int draw(struct site_call *call, struct str job, struct str metric, const char **ret_type)
{
    bool is_svg = str_ends(metric, STR(".svg")), is_png = str_ends(metric, STR(".png"));
    struct job_found found;
    enum job_chart which;
    int code = job_find_one(call, job, &found);

    if (code)
        return code;
    if (is_svg || is_png)
        metric = str_head(metric, metric.n - 4);
    if (!job_chart_find(metric, &which))
        return refuse_chart(call);
    *ret_type = is_svg ? "image/svg+xml" : "image/png";
    return is_svg ? draw_svg(call, &found, which) : draw_png(call, &found, which);
}

static int make_plot(struct site_call *call, const char **ret_type)
{
    struct str metric = call->rest, job = str_cut(&metric, '/');

    return draw(call, job, metric.p ? metric : STR(""), ret_type);
}

/* petricore has a slash at its end. */
static int make_pie(struct site_call *call, const char **ret_type)
{
    struct str rest = call->rest;

    return draw(call, str_cut(&rest, '/'), STR("time"), ret_type);
}

/* The charts over time, in the order of the plots that they show. */
_Static_assert(JOB_CHART_CPU == (int)PLOT_CPU && JOB_CHART_GPU_POWER == (int)PLOT_GPU_POWER &&
                   FACTS_PLOTS == JOB_CHART_GPU_POWER + 1,
               "a chart over time has the number of its plot");

static int make_series(struct site_call *call, const char **ret_type)
{
    struct job_found found;
    struct job_report report;
    struct time_chart chart;
    enum job_chart which;
    int code = job_find_one(call, call->rest, &found);

    if (code)
        return code;
    if (!job_chart_find(site_argument(call, "plot"), &which))
        return refuse_chart(call);
    if (which >= (int)FACTS_PLOTS)
        return site_refuse(call, 404, "this chart is not over time: /plot draws it");
    code = job_make_report(call, &found, true, &report);
    if (code)
        return code;
    job_chart_over_time(&report.facts, which, &call->arena, &chart);
    series_json(&call->out, &chart, &call->arena);
    *ret_type = "application/json";
    return 0;
}

const struct site_page show_plot = {
    .path = "/plot/*",
    .needs = SITE_MAY_STORE,
    .make = make_plot,
};

const struct site_page show_pie = {
    .path = "/pie/*",
    .needs = SITE_MAY_STORE,
    .make = make_pie,
};

const struct site_page show_series = {
    .path = "/api/v1/series/*",
    .needs = SITE_MAY_STORE,
    .make = make_series,
};
