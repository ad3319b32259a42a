/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the parts of a job's page. */
#include "web/job_parts.h"

#include "model/hostlist.h"
#include "report/core_charts.h"
#include "report/job_charts.h"
#include "report/words.h"
#include "web/html.h"

#include <math.h>

enum { NODE_LINKS = 64, ADDRESS_MAX = 4096, WORDS_MAX = 1024 };

static void put_words(struct buf *out, const char *tag, struct str words)
{
    buf_printf(out, "<%s>", tag);
    html_text(out, words);
    buf_printf(out, "</%s>", tag);
}

void job_put_meters(struct site_call *call, const struct outline *outline)
{
    struct buf *out = &call->out, words;

    if (!outline->n_meters)
        return;
    buf_init(&words, WORDS_MAX);
    buf_text(out, "<section><h2>Given and used</h2>\n<dl class=\"facts\">\n");
    for (size_t i = 0; i < outline->n_meters; i++) {
        const struct outline_meter *meter = &outline->meter[i];

        buf_reset(&words);
        words_percent(&words, meter->ratio);
        if (meter->words.n) {
            buf_text(&words, ": ");
            buf_put(&words, meter->words);
        }
        put_words(out, "dt", str_of(meter->title));
        buf_text(out, "<dd>");
        html_meter(out, meter->ratio,
                   meter->severity == SEVERITY_OFF ? NULL : severity_words[meter->severity],
                   buf_str(&words));
        buf_text(out, "</dd>\n");
    }
    buf_text(out, "</dl></section>\n");
    buf_free(&words);
}

/* Only what a browser takes to the web: a site's settings may hold anything. */
static void put_web_link(struct buf *out, struct str url)
{
    bool is_web = str_starts(url, STR("https://")) || str_starts(url, STR("http://"));

    if (is_web) {
        buf_text(out, "<a rel=\"noreferrer\" href=\"");
        html_text(out, url);
        buf_text(out, "\">");
    }
    html_text(out, url);
    buf_text(out, is_web ? "</a>" : "");
}

void job_put_finding(struct site_call *call, enum severity severity, struct str sentence,
                     struct str link)
{
    struct buf *out = &call->out;

    buf_printf(out, "<li class=\"%s\"><span class=\"severity\">%s</span> ",
               severity_words[severity], severity_words[severity]);
    html_text(out, sentence);
    if (link.n) {
        buf_byte(out, ' ');
        put_web_link(out, link);
    }
    buf_text(out, "</li>\n");
}

void job_put_findings(struct site_call *call, const struct job_report *report,
                      const struct outline *outline)
{
    struct buf *out = &call->out;

    if (!report->n_findings && !outline->verdict.n)
        return;
    buf_text(out, "<section><h2>What was found</h2>\n");
    if (!report->n_findings) {
        buf_text(out, "<p>");
        html_text(out, outline->verdict);
        buf_text(out, "</p></section>\n");
        return;
    }
    buf_text(out, "<ul class=\"notes\">\n");
    for (size_t i = 0; i < report->n_findings; i++)
        job_put_finding(call, report->finding[i].severity, report->finding[i].sentence,
                        report->finding[i].link);
    buf_text(out, "</ul></section>\n");
}

void job_put_advice(struct site_call *call, const struct advice *advice, struct str gain)
{
    struct buf *out = &call->out;

    if (!advice->n_lines)
        return;
    buf_text(out, "<section><h2>What to write next time</h2>\n<dl class=\"facts\">\n");
    for (size_t i = 0; i < advice->n_lines; i++) {
        buf_text(out, "<dt>");
        put_words(out, "code", advice->line[i].line);
        buf_text(out, "</dt>");
        put_words(out, "dd", advice->line[i].why);
        buf_byte(out, '\n');
    }
    buf_text(out, "</dl>\n");
    if (gain.n)
        put_words(out, "p", gain);
    buf_text(out, "</section>\n");
}

/* What each chart is called by who does not see it, and when there is one. */
enum chart_need { CHART_SERIES, CHART_GPUS, CHART_MODES, CHART_CORES };

static const struct {
    enum chart_need need;
    const char *words;
} charts[JOB_CHARTS] = {
    [JOB_CHART_CPU] = { CHART_SERIES, "CPUs in use over time, by node" },
    [JOB_CHART_MEMORY] = { CHART_SERIES, "Memory in use over time, by node" },
    [JOB_CHART_READ] = { CHART_SERIES, "Bytes read per second, by node" },
    [JOB_CHART_WRITTEN] = { CHART_SERIES, "Bytes written per second, by node" },
    [JOB_CHART_GPU] = { CHART_GPUS, "GPU utilisation over time" },
    [JOB_CHART_GPU_MEMORY] = { CHART_GPUS, "GPU memory in use over time" },
    [JOB_CHART_GPU_POWER] = { CHART_GPUS, "GPU power over time" },
    [JOB_CHART_TIME] = { CHART_MODES, "CPU time in user and system mode" },
    [JOB_CHART_CORES] = { CHART_CORES, "CPU time by core" },
};

static bool can_be_drawn(const struct job_facts *facts, enum chart_need need)
{
    switch (need) {
    case CHART_SERIES:
        return facts->origin.has_series;
    case CHART_GPUS:
        return facts->origin.has_series && facts->n_gpus;
    case CHART_MODES:
        return time_pie_has_data(facts);
    case CHART_CORES:
        return core_chart_has_data(facts);
    }
    return false;
}

/* "/plot/4711/cpu.svg?key=…" and "/api/v1/series/4711?plot=cpu&key=…" */
static void put_chart(struct site_call *call, const struct job_found *found, enum job_chart which,
                      bool goes_on)
{
    bool is_over_time = charts[which].need == CHART_SERIES || charts[which].need == CHART_GPUS;
    struct str key = job_key(&call->arena, &found->row.key);
    struct buf src, series;

    buf_init(&src, ADDRESS_MAX);
    buf_init(&series, ADDRESS_MAX);
    buf_printf(&src, "/plot/%u/%s.svg?key=%.*s", (unsigned)found->row.key.job_id,
               job_chart_names[which], STR_ARG(key));
    if (is_over_time)
        buf_printf(&series, "/api/v1/series/%u?plot=%s&key=%.*s", (unsigned)found->row.key.job_id,
                   job_chart_names[which], STR_ARG(key));
    html_chart(&call->out, &(struct html_chart){ buf_str(&src), buf_str(&series),
                                                 str_of(charts[which].words), goes_on });
    buf_free(&series);
    buf_free(&src);
}

void job_put_charts(struct site_call *call, const struct job_found *found,
                    const struct job_facts *facts)
{
    struct buf *out = &call->out;
    bool has_any = false;

    if (facts->row.elapsed_seconds < 0)
        return; /* it has not run */
    buf_text(out, "<section><h2>Charts</h2>\n<div class=\"charts\">\n");
    for (size_t i = 0; i < JOB_CHARTS && found->is_kept; i++)
        if (can_be_drawn(facts, charts[i].need)) {
            put_chart(call, found, (enum job_chart)i, facts->is_running);
            has_any = true;
        }
    buf_text(out, "</div>\n");
    if (!facts->origin.has_series && facts->origin.why_no_series.n) {
        buf_text(out, "<p class=\"empty\">No series: ");
        html_text(out, facts->origin.why_no_series);
        buf_text(out, "</p>\n");
    } else if (!has_any) {
        html_empty(out, "No series: nobody has measured this job over time.");
    }
    buf_text(out, "</section>\n");
}

/* Where what a fact says is a page of its own, or a filter of the jobs. */
static const struct {
    const char *label;
    size_t offset; /* in struct job_record */
    const char *path, *argument;
} links[] = {
    { "User", offsetof(struct job_record, user), "/user/", NULL },
    { "Account", offsetof(struct job_record, account), "/account/", NULL },
    { "Partition", offsetof(struct job_record, partition), "/jobs", "partition" },
    { "QOS", offsetof(struct job_record, qos), "/jobs", "qos" },
    { "Reservation", offsetof(struct job_record, reservation), "/jobs", "reservation" },
    { "Name", offsetof(struct job_record, name), "/jobs?kept=1", "name" },
};

static bool put_fact_link(struct site_call *call, const struct job_facts *facts,
                          const struct outline_fact *fact)
{
    for (size_t i = 0; i < COUNT(links); i++) {
        const struct str *value =
            (const void *)((const char *)&facts->row.record + links[i].offset);
        struct html_address address;

        if (strcmp(links[i].label, fact->label) != 0)
            continue;
        address = html_begin_link(&call->out, links[i].path);
        if (links[i].argument)
            html_argument(&address, links[i].argument, *value);
        else
            html_part(&address, *value);
        if (links[i].argument)
            html_argument(&address, "cluster", facts->row.key.cluster);
        html_end_link(&address, fact->value);
        return true;
    }
    return false;
}

/* Where it says when: in the reader's zone, as everywhere on the page. */
static const struct {
    const char *label;
    size_t offset; /* in struct job_record */
} times[] = {
    { "Submitted", offsetof(struct job_record, submit_time) },
    { "Could start from", offsetof(struct job_record, eligible_time) },
    { "Started", offsetof(struct job_record, start_time) },
    { "Ended", offsetof(struct job_record, end_time) },
};

static bool put_fact_time(struct site_call *call, const struct job_facts *facts,
                          const struct outline_fact *fact)
{
    for (size_t i = 0; i < COUNT(times); i++)
        if (strcmp(times[i].label, fact->label) == 0) {
            html_time(&call->out,
                      *(const int64_t *)((const char *)&facts->row.record + times[i].offset));
            return true;
        }
    if (strcmp("As of", fact->label) != 0)
        return false;
    html_time(&call->out, facts->now);
    return true;
}

/* Each of them, if they are not too many. */
static bool put_node_links(struct site_call *call, const struct job_facts *facts)
{
    struct hostlist list;
    struct err err;

    if (hostlist_expand(facts->row.record.nodes, &call->arena, NODE_LINKS, &list, &err) < 0)
        return false;
    for (size_t i = 0; i < list.n; i++) {
        buf_text(&call->out, i ? " " : "");
        html_link(&call->out, "/node/", list.hosts[i], facts->row.key.cluster);
    }
    return list.n > 0;
}

static void put_fact(struct site_call *call, const struct job_facts *facts,
                     const struct outline_fact *fact)
{
    bool is_nodes = strcmp(fact->label, "Node") == 0 || strcmp(fact->label, "Nodes") == 0;

    put_words(&call->out, "dt", str_of(fact->label));
    buf_text(&call->out, "<dd>");
    if (fact->is_link)
        put_web_link(&call->out, fact->value);
    else if (!(is_nodes && put_node_links(call, facts)) && !put_fact_link(call, facts, fact) &&
             !put_fact_time(call, facts, fact))
        html_text(&call->out, fact->value);
    buf_text(&call->out, "</dd>\n");
}

/* A name that was cut is nobody's. */
static bool is_whole_name(struct str name)
{
    return name.n && !str_ends(name, STR("…")) && str_find(name, '?') == name.n;
}

static void put_cells(struct html_table *html, const struct outline_table *table, size_t row,
                      bool has_nodes, struct str cluster)
{
    html_begin_row(html);
    for (size_t i = 0; i < table->n_columns; i++) {
        struct str cell = table->cell[row * table->n_columns + i];

        html_begin_cell(html, i);
        if (i == 0 && has_nodes && is_whole_name(cell))
            html_link(html->to, "/node/", cell, cluster);
        else
            html_text(html->to, cell.n ? cell : STR("–"));
    }
    html_end_row(html);
}

/* The cells of the first column may be names of nodes: links. */
static void put_table(struct site_call *call, const char *caption,
                      const struct outline_table *table, bool has_nodes, struct str cluster)
{
    struct html_column *column;
    struct html_table html;
    struct buf notes;

    if (!table->n_rows)
        return;
    column = ARENA_ARRAY(&call->arena, struct html_column, table->n_columns);
    for (size_t i = 0; i < table->n_columns; i++)
        column[i] = (struct html_column){ table->title[i], NULL, i && !table->is_text };
    html_begin_table(&html, &call->out, caption, column, table->n_columns, STR(""), false, STR(""));
    for (size_t i = 0; i < table->n_rows; i++)
        put_cells(&html, table, i, has_nodes, cluster);
    html_end_table(&html);
    buf_init(&notes, WORDS_MAX);
    outline_put_notes(&notes, table);
    if (notes.n) {
        buf_text(&call->out, "<p class=\"note\">");
        html_text(&call->out, buf_str(&notes));
        buf_text(&call->out, "</p>\n");
    }
    buf_free(&notes);
}

void job_put_sections(struct site_call *call, const struct job_facts *facts,
                      const struct outline *outline)
{
    struct buf *out = &call->out;

    for (size_t i = 0; i < outline->n_sections; i++) {
        const struct outline_section *section = &outline->section[i];
        bool has_nodes = strcmp(section->title, "By node") == 0;

        if (strcmp(section->title, "Life") == 0)
            continue; /* it stands above, drawn */
        buf_text(out, "<section>");
        put_words(out, "h2", str_of(section->title));
        buf_text(out, section->n_facts ? "\n<dl class=\"facts\">\n" : "\n");
        for (size_t j = 0; j < section->n_facts; j++)
            put_fact(call, facts, &section->fact[j]);
        buf_text(out, section->n_facts ? "</dl>\n" : "");
        put_table(call, section->title, &section->table, has_nodes, facts->row.key.cluster);
        buf_text(out, "</section>\n");
    }
}
