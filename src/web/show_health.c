/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How sonde itself is: what it was told and when, and, for staff, what its work costs. */
#include "report/plot.h"
#include "report/words.h"
#include "web/health_facts.h"
#include "web/cluster_pages.h"
#include "web/show_cluster.h"

#include <math.h>

/* ---- what was told ---- */

static void put_kind(struct site_call *call, struct html_table *table,
                     const struct section *section)
{
    int64_t time = section->wall_ns / NS_PER_SEC;

    html_begin_row(table);
    html_begin_cell(table, 0);
    html_textz(table->to, kind_name(section->kind));
    html_begin_cell(table, 1);
    html_time(table->to, time);
    html_begin_cell(table, 2);
    html_span(table->to, (double)(call->now > time ? call->now - time : 0));
    html_begin_cell(table, 3);
    html_bytes(table->to, (double)section->bytes_read);
    html_begin_cell(table, 4);
    html_number(table->to, (double)section->skipped);
    html_end_row(table);
}

static void put_cluster(struct site_call *call, const struct board_cluster *cluster)
{
    static const struct html_column columns[] = {
        { "what", NULL, false },
        { "told", NULL, false },
        { "age", NULL, true },
        { "read", NULL, true },
        { "records passed over", NULL, true },
    };
    struct html_table table;

    show_begin_cluster(call, cluster);
    if (cluster->trouble.n) {
        buf_text(&call->out, "<p class=\"state critical\">");
        html_text(&call->out, viewer_trouble(&call->viewer, cluster));
        buf_text(&call->out, "</p>\n");
    }
    html_begin_table(&table, &call->out, "What was told", columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (enum kind i = 0; i < KINDS; i++)
        if (cluster->section[i])
            put_kind(call, &table, cluster->section[i]);
    html_end_table(&table);
    show_end_cluster(call);
}

/* ---- what its work costs ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* "last 12 ms, usually 11 ms, at most 40 ms" */
static void put_summary(struct buf *to, const struct health_stage *stage, double *ret_most)
{
    double sorted[HEALTH_SECONDS];
    const struct {
        const char *before;
        size_t at;
    } words[] = { { ", usually ", stage->n / 2 }, { ", at most ", stage->n - 1 } };

    memcpy(sorted, stage->second, stage->n * sizeof(*sorted));
    qsort(sorted, stage->n, sizeof(*sorted), by_size);
    buf_text(to, "last ");
    words_number(to, stage->second[stage->n - 1] * 1e3);
    buf_text(to, " ms");
    for (size_t i = 0; i < COUNT(words); i++) {
        buf_text(to, words[i].before);
        words_number(to, sorted[words[i].at] * 1e3);
        buf_text(to, " ms");
    }
    *ret_most = sorted[stage->n - 1] * 1e3;
}

static void add_bars(struct plot *plot, const struct health_stage *stage)
{
    double width = (plot->right - plot->left) / HEALTH_SECONDS;

    for (size_t i = 0; i < stage->n; i++) {
        double y = plot_height_of(plot, stage->second[i] * 1e3);
        struct buf words;

        buf_init(&words, 100);
        words_number(&words, stage->second[i] * 1e3);
        buf_text(&words, " ms");
        chart_add(plot->chart,
                  &(struct mark){
                      .kind = MARK_RECTANGLE,
                      .ink = INK_FIRST,
                      .at = { plot->left + width * (double)(i + HEALTH_SECONDS - stage->n), y },
                      .size = { width * 0.8, fmax(0.5, plot->bottom - y) },
                      .text = buf_str(&words),
                  });
        buf_free(&words);
    }
}

static void put_stage(struct site_call *call, const struct health_stage *stage, size_t number)
{
    const double width = 300, height = 110;
    const struct legend legend = { .n = 0 };
    struct chart chart;
    struct plot plot;
    struct buf words;
    char prefix[40];
    double most;

    if (!stage->n)
        return;
    buf_init(&words, 300);
    put_summary(&words, stage, &most);
    chart_init(&chart, &call->arena, width, height);
    chart.title = STR("Milliseconds, the last on the right");
    chart.summary = buf_str(&words);
    plot_title(&chart);
    plot_init(&plot, &chart, AXIS_NUMBER, most, 0, &legend);
    add_bars(&plot, stage);
    snprintf(prefix, sizeof(prefix), "stage-%zu-", number);
    buf_text(&call->out, "<div class=\"card\"><h3>");
    html_text(&call->out, stage->name);
    buf_text(&call->out, "</h3>\n");
    chart_svg(&call->out, &chart, prefix);
    buf_text(&call->out, "<p>");
    html_text(&call->out, buf_str(&words));
    buf_text(&call->out, "</p></div>\n");
    buf_free(&words);
}

/* "read_errors" as "read errors". */
static void put_name(struct buf *out, struct str name)
{
    for (struct str rest = name; rest.p;) {
        html_text(out, str_cut(&rest, '_'));
        buf_text(out, rest.p ? " " : "");
    }
}

static void put_time(struct buf *to, double seconds)
{
    html_time(to, fabs(seconds) < 1e12 ? (int64_t)seconds : 0);
}

/* What a number is; without a unit it is but a number. */
static const struct unit {
    struct str end; /* of the name, which is then shown without it */
    void (*put)(struct buf *to, double value);
} units[] = {
    { STR_INIT("_seconds"), html_span },
    { STR_INIT("_bytes"), html_bytes },
    { STR_INIT("_time"), put_time },
    { STR_INIT(""), html_number },
};

static void put_fact(struct buf *out, const struct health_fact *fact)
{
    const struct unit *unit = units;
    struct str name = fact->name;

    while (!str_ends(fact->name, unit->end))
        unit++;
    if (!isnan(fact->number))
        name.n -= unit->end.n;
    buf_text(out, "<dt>");
    put_name(out, name);
    buf_text(out, "</dt><dd>");
    if (isnan(fact->number))
        html_text(out, fact->text);
    else
        unit->put(out, fact->number);
    buf_text(out, "</dd>\n");
}

static void put_facts(struct buf *out, const struct health_facts *facts)
{
    for (size_t i = 0; i < facts->n_facts; i++) {
        const struct health_fact *fact = &facts->fact[i];
        bool begins = i == 0 || !str_eq(fact->group, facts->fact[i - 1].group);

        if (begins && i)
            buf_text(out, "</dl></div>\n");
        if (begins) {
            buf_text(out, "<div class=\"card\"><h3>");
            put_name(out, fact->group.n ? fact->group : STR("sonde"));
            buf_text(out, "</h3><dl class=\"facts\">\n");
        }
        put_fact(out, fact);
    }
    if (facts->n_facts)
        buf_text(out, "</dl></div>\n");
}

static void put_own(struct site_call *call)
{
    struct health_facts facts;
    struct str document = call->config->health(call->config->health_ctx, &call->arena);

    if (health_facts_read(document, &call->arena, &facts, &call->err) < 0) {
        html_empty(&call->out, call->err.text);
        return;
    }
    buf_text(&call->out, "<section id=\"own\" data-live>\n<h2>sonde</h2>\n<div class=\"cards\">\n");
    put_facts(&call->out, &facts);
    buf_text(&call->out, "</div>\n<h2>What each stage took, the last hundred times</h2>\n"
                         "<div class=\"cards\">\n");
    for (size_t i = 0; i < facts.n_stages; i++)
        put_stage(call, &facts.stage[i], i);
    buf_text(&call->out, "</div>\n</section>\n");
}

/* Of `sonde up`: one machine keeps little, beside what a Prometheus does. */
static const char advice[] =
    "<h2>Moving to Prometheus</h2>\n"
    "<p>This address answers <a href=\"/metrics\">/metrics</a> too, and what is shown here can "
    "come "
    "from a Prometheus. In its configuration:</p>\n"
    "<pre>scrape_configs:\n"
    "  - job_name: sonde\n"
    "    static_configs:\n"
    "      - targets: [HOST:8080]</pre>\n"
    "<p>Run <code>sonde agent</code> on the compute nodes and let it scrape them on port 9798. "
    "Once "
    "it has as much as you need, run <code>sonde exporter</code> and <code>sonde web</code> in "
    "place of <code>sonde up</code>, with the same store, and tell the second where to ask:</p>\n"
    "<pre>prometheus:\n"
    "  url: http://PROMETHEUS:9090</pre>\n"
    "<p>The series that are kept here are then no longer written; those of before are not moved."
    "</p>\n";

static int show(struct site_call *call)
{
    call->title = STR("Health");
    buf_text(&call->out, "<h1>sonde's own health</h1>\n");
    if (!call->board)
        html_empty(&call->out, "Nothing is known of any cluster at present.");
    for (size_t i = 0; call->board && i < call->board->n_clusters; i++)
        if (site_shows(call, &call->board->cluster[i]))
            put_cluster(call, &call->board->cluster[i]);
    buf_text(&call->out, "<p id=\"store\" data-live>");
    if (call->reader)
        buf_text(&call->out, "The store can be read.");
    else
        html_text(&call->out, call->why_no_store);
    buf_text(&call->out, "</p>\n");
    if (call->config->health && call->viewer.is_staff)
        put_own(call);
    if (call->config->is_up)
        buf_text(&call->out, advice);
    return 0;
}

const struct site_page show_health = {
    .path = "/health",
    .nav = "Health",
    .needs = SITE_MAY_STORE,
    .show = show,
};
