/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report on paper: what matters on the first page, then charts, then all the rest. */
#include "report/paper.h"

#include "base/moment.h"
#include "report/core_charts.h"
#include "report/job_charts.h"
#include "report/outline.h"
#include "report/sheet.h"
#include "report/sheet_section.h"
#include "report/words.h"

#include <cairo-pdf.h>
#include <math.h>

enum { WORDS_MAX = 4096 };

static const double full_width = sheet_right - sheet_left;

struct severity_look {
    uint32_t bar, text;
};

static const struct severity_look severity_looks[] = {
    [SEVERITY_OFF] = { 0x009e73, 0x222222 },
    [SEVERITY_NOTE] = { 0x56b4e9, 0x00588a },
    [SEVERITY_WARNING] = { 0xe69f00, 0x8a5a00 },
    [SEVERITY_CRITICAL] = { 0xd55e00, 0xb03a00 },
};

static void put_meter(struct sheet *sheet, const struct outline_meter *meter)
{
    const double title_width = 76, bar_width = 170, bar_height = 9, percent_width = 46, row = 15;
    double bar = sheet_left + title_width, y = sheet->y;
    double words = bar + bar_width + percent_width + 10;
    struct buf percent;

    sheet_put(sheet, &(struct sheet_text){ .x = sheet_left,
                                           .y = y,
                                           .width = title_width,
                                           .font = FONT_TEXT,
                                           .rgb = SHEET_INK,
                                           .text = str_of(meter->title) });
    sheet_box(sheet, bar, y + 1, bar_width, bar_height, 0xe4e4e4);
    sheet_box(sheet, bar, y + 1, bar_width * fmax(0, fmin(1, meter->ratio)), bar_height,
              severity_looks[meter->severity].bar);
    buf_init(&percent, 64);
    words_percent(&percent, meter->ratio);
    sheet_put(sheet, &(struct sheet_text){ .x = bar + bar_width,
                                           .y = y,
                                           .width = percent_width,
                                           .font = FONT_TEXT,
                                           .anchor = ANCHOR_END,
                                           .rgb = SHEET_INK,
                                           .text = buf_str(&percent) });
    buf_free(&percent);
    sheet_put(sheet, &(struct sheet_text){ .x = words,
                                           .y = y,
                                           .width = sheet_right - words,
                                           .font = FONT_TEXT,
                                           .rgb = SHEET_FAINT,
                                           .most_lines = 1,
                                           .text = meter->words });
    sheet->y += row;
}

static void put_summary(struct sheet *sheet, const struct outline *outline)
{
    sheet_paragraph(sheet, FONT_TITLE, SHEET_INK, 2, outline->title);
    sheet_paragraph(sheet, FONT_TEXT, severity_looks[SEVERITY_WARNING].text, 2, outline->simulated);
    sheet_paragraph(sheet, FONT_TEXT, SHEET_INK, 4, outline->headline);
    sheet_paragraph(sheet, FONT_TEXT, SHEET_FAINT, 6, outline->note);
    sheet->y += outline->n_meters ? 8 : 0;
    for (size_t i = 0; i < outline->n_meters; i++)
        put_meter(sheet, &outline->meter[i]);
}

static void put_finding(struct sheet *sheet, const struct finding *finding)
{
    const double word_width = 58, mark_width = 3;
    const struct severity_look *look = &severity_looks[finding->severity];
    struct sheet_text sentence = {
        .x = sheet_left + word_width + 8,
        .width = full_width - word_width - 8,
        .font = FONT_TEXT,
        .rgb = SHEET_INK,
        .most_lines = 8,
        .text = finding->sentence,
    };
    struct sheet_text link = sentence;
    double height = sheet_measure(sheet, &sentence);

    link.font = FONT_SMALL;
    link.rgb = 0x00588a;
    link.most_lines = 1;
    link.text = link.link = finding->link;
    if (finding->link.n)
        height += sheet_measure(sheet, &link);
    sheet_need(sheet, height);
    sheet_box(sheet, sheet_left, sheet->y + 1, mark_width, height - 1, look->bar);
    sheet_put(sheet, &(struct sheet_text){ .x = sheet_left + mark_width + 5,
                                           .y = sheet->y + 1,
                                           .width = word_width,
                                           .font = FONT_SMALL_BOLD,
                                           .rgb = look->text,
                                           .text = str_of(severity_words[finding->severity]) });
    sentence.y = sheet->y;
    link.y = sheet->y + sheet_put(sheet, &sentence);
    if (finding->link.n)
        sheet_put(sheet, &link);
    sheet->y += height + sheet_line_gap + 1;
}

static void put_findings(struct sheet *sheet, const struct job_report *report,
                         const struct outline *outline)
{
    if (!report->n_findings && !outline->verdict.n)
        return;
    sheet_heading(sheet, "What was found", 30);
    if (!report->n_findings)
        sheet_paragraph(sheet, FONT_TEXT, SHEET_INK, 0, outline->verdict);
    for (size_t i = 0; i < report->n_findings; i++)
        put_finding(sheet, &report->finding[i]);
}

static void put_advice_line(struct sheet *sheet, const struct advice_line *line, double width)
{
    struct sheet_text why = {
        .x = sheet_left + width + 12,
        .width = full_width - width - 12,
        .font = FONT_TEXT,
        .rgb = SHEET_FAINT,
        .most_lines = 4,
        .text = line->why,
    };
    struct sheet_text fixed = {
        .x = sheet_left,
        .width = width,
        .font = FONT_FIXED,
        .rgb = SHEET_INK,
        .most_lines = 2,
        .text = line->line,
    };
    double height = fmax(sheet_measure(sheet, &why), sheet_measure(sheet, &fixed));

    sheet_need(sheet, height);
    why.y = fixed.y = sheet->y;
    sheet_put(sheet, &fixed);
    sheet_put(sheet, &why);
    sheet->y += height + sheet_line_gap;
}

static void put_advice(struct sheet *sheet, const struct advice *advice,
                       const struct outline *outline)
{
    double width = 0;

    if (!advice->n_lines)
        return;
    sheet_heading(sheet, "What to write next time", 30);
    for (size_t i = 0; i < advice->n_lines; i++)
        width = fmax(width, sheet_natural_width(sheet, FONT_FIXED, advice->line[i].line));
    width = fmin(width + 1, full_width / 2);
    for (size_t i = 0; i < advice->n_lines; i++)
        put_advice_line(sheet, &advice->line[i], width);
    sheet_paragraph(sheet, FONT_TEXT, SHEET_INK, 4, outline->gain);
}

/* Charts beside each other, or over the whole width what would be too dense otherwise. */
struct charts {
    struct chart chart[JOB_CHARTS];
    bool is_wide[JOB_CHARTS];
    enum job_chart which[JOB_CHARTS];
    size_t n;
};

static const double narrow_width = (full_width - sheet_column_gap) / 2;
static const double narrow_height = 158, wide_height = 180, pie_height = 128;

static size_t count_cores(const struct job_facts *facts)
{
    size_t n = 0;

    for (size_t i = 0; i < facts->n_nodes; i++)
        n += facts->node[i].n_cores;
    return n;
}

static bool is_dense(const struct job_facts *facts, enum job_chart which)
{
    enum { LINES_BESIDE = 4, CORES_BESIDE = 48 };

    _Static_assert((int)JOB_CHART_GPU_POWER == (int)PLOT_GPU_POWER, "charts begin with the plots");
    if (which < JOB_CHART_TIME)
        return facts->plot[which].n_lines > LINES_BESIDE;
    return which == JOB_CHART_CORES && count_cores(facts) > CORES_BESIDE;
}

static double height_of(const struct job_facts *facts, enum job_chart which, bool is_wide)
{
    const double head = 26, row = 11;
    size_t n_cores = count_cores(facts);

    if (which == JOB_CHART_TIME)
        return pie_height;
    if (which == JOB_CHART_CORES && n_cores <= CORE_WEDGES)
        return fmax(pie_height, head + row * (double)n_cores);
    return is_wide ? wide_height : narrow_height;
}

static bool make_chart(struct charts *charts, size_t i, struct arena *arena,
                       const struct job_facts *facts)
{
    bool is_wide = charts->is_wide[i];

    return job_chart(&charts->chart[i], arena, facts, charts->which[i],
                     is_wide ? full_width : narrow_width,
                     height_of(facts, charts->which[i], is_wide));
}

static bool has_neighbour(const struct charts *charts, size_t i)
{
    return !charts->is_wide[i] && i + 1 < charts->n && !charts->is_wide[i + 1];
}

static void make_charts(struct charts *charts, struct arena *arena, const struct job_facts *facts)
{
    charts->n = 0;
    for (int i = 0; i < JOB_CHARTS; i++) {
        charts->which[charts->n] = (enum job_chart)i;
        charts->is_wide[charts->n] = is_dense(facts, (enum job_chart)i);
        charts->n += make_chart(charts, charts->n, arena, facts);
    }
    /* one alone would leave half of the sheet empty */
    for (size_t i = 0; i < charts->n; i++) {
        if (has_neighbour(charts, i)) {
            i++;
        } else if (!charts->is_wide[i]) {
            charts->is_wide[i] = true;
            make_chart(charts, i, arena, facts);
        }
    }
}

static void put_charts(struct sheet *sheet, const struct charts *charts)
{
    if (!charts->n)
        return;
    sheet_heading(sheet, "Charts", charts->chart[0].height);
    for (size_t i = 0; i < charts->n; i++) {
        const struct chart *chart = &charts->chart[i];
        const struct chart *beside = has_neighbour(charts, i) ? &charts->chart[++i] : NULL;
        double height = fmax(chart->height, beside ? beside->height : 0);

        sheet_need(sheet, height);
        sheet_chart(sheet, sheet_left, sheet->y, chart);
        if (beside)
            sheet_chart(sheet, sheet_left + narrow_width + sheet_column_gap, sheet->y, beside);
        sheet->y += height + sheet_column_gap / 2;
    }
}

struct content {
    const struct job_report *report;
    struct outline outline;
    struct charts charts;
};

static void put_all(struct sheet *sheet, const struct content *content, bool is_drawn)
{
    sheet_begin(sheet, is_drawn);
    put_summary(sheet, &content->outline);
    put_findings(sheet, content->report, &content->outline);
    put_advice(sheet, &content->report->advice, &content->outline);
    put_charts(sheet, &content->charts);
    for (size_t i = 0; i < content->outline.n_sections; i++)
        sheet_section(sheet, &content->outline.section[i]);
    sheet_end(sheet);
}

/* "sonde, 2026-11-16T12:00:00+01:00, from Slurm's accounting (store), agents,
 * http://prometheus:9090" */
static struct str footer_of(const struct job_facts *facts, struct arena *arena)
{
    const struct facts_origin *origin = &facts->origin;
    struct buf words;
    struct str kept;

    buf_init(&words, WORDS_MAX);
    buf_text(&words, origin->is_simulated ? "simulated; sonde, " : "sonde, ");
    moment_put_zoned(&words, origin->asked_time ? origin->asked_time : facts->now);
    buf_printf(&words, ", from %s", outline_teller(facts));
    buf_text(&words, origin->has_agents ? ", agents" : "");
    buf_text(&words, origin->has_summary ? ", a kept summary" : "");
    if (origin->has_series && origin->series.n) {
        buf_text(&words, ", ");
        buf_put(&words, str_head(origin->series, 200));
    }
    kept = arena_str(arena, buf_str(&words));
    buf_free(&words);
    return kept;
}

static void set_metadata(cairo_surface_t *surface, const struct content *content)
{
    const struct job_facts *facts = &content->report->facts;
    struct buf date;

    buf_init(&date, 64);
    moment_put_zoned(&date, facts->now);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, content->outline.title.p);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_AUTHOR, "sonde");
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, date.p);
    buf_free(&date);
}

static int draw_pdf(cairo_surface_t *surface, const struct content *content, struct str footer,
                    struct err *err)
{
    struct sheet sheet = { .cairo = cairo_create(surface), .footer = footer };

    sheet.layout = draw_layout_new(sheet.cairo, err);
    if (sheet.layout) {
        put_all(&sheet, content, false);
        put_all(&sheet, content, true);
        g_object_unref(sheet.layout);
    }
    cairo_destroy(sheet.cairo);
    return sheet.layout ? 0 : -err->code;
}

int report_pdf(struct buf *to, const struct job_report *report, struct err *err)
{
    struct arena arena = { 0 };
    struct content content = { .report = report };
    cairo_surface_t *surface =
        cairo_pdf_surface_create_for_stream(draw_write, to, sheet_width, sheet_height);
    int r;

    outline_make(report, &arena, &content.outline);
    make_charts(&content.charts, &arena, &report->facts);
    set_metadata(surface, &content);
    r = draw_pdf(surface, &content, footer_of(&report->facts, &arena), err);
    cairo_surface_finish(surface);
    if (r == 0)
        r = draw_outcome(cairo_surface_status(surface), to, "the PDF", err);
    cairo_surface_destroy(surface);
    arena_clear(&arena);
    return r;
}
