/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report as a page that stands alone, and as the HTML part of a mail. Mail programs keep tables
 * and inline styles, and throw away style sheets, SVG and most of the rest:
 * https://www.caniemail.com */
#include "base/shown.h"
#include "report/job_charts.h"
#include "report/outline.h"
#include "report/words.h"

#include <ctype.h>
#include <math.h>

enum { CHART_WIDTH = 680, CHART_HEIGHT = 240, MAIL_METER_PIXELS = 200 };

struct html {
    struct buf *to;
    enum html_kind kind;
};

/* What a thing is: a class of the page's style sheet, and how it looks in a mail. */
enum role {
    ROLE_SIMULATED,
    ROLE_HEADLINE,
    ROLE_NOTE,
    ROLE_HEADING,
    ROLE_FACTS,
    ROLE_LABEL,
    ROLE_VALUE,
    ROLE_TEXT_CELL,
    ROLE_NUMBER,
    ROLE_FINDING,
    ROLE_ADVICE,
    ROLES,
};

#define MAIL_FONT "font-family:sans-serif;font-size:14px;color:#222222;"
/* A name without spaces must not make all of the mail as wide as it is. */
#define MAIL_WRAP "word-break:break-word;"

static const struct {
    const char *class, *style;
} looks[ROLES] = {
    [ROLE_SIMULATED] = { "simulated",
                         MAIL_FONT "font-weight:bold;border:2px solid #b58900;padding:6px;" },
    [ROLE_HEADLINE] = { "headline", MAIL_FONT },
    [ROLE_NOTE] = { "note", MAIL_FONT "font-style:italic;" },
    [ROLE_HEADING] = { "heading", MAIL_FONT "font-size:16px;margin:20px 0 6px 0;" },
    [ROLE_FACTS] = { "facts", "border-collapse:collapse;" },
    [ROLE_LABEL] = { "label", MAIL_FONT "color:#555555;font-weight:normal;text-align:left;"
                                        "vertical-align:top;padding:2px 16px 2px 0;" },
    [ROLE_VALUE] = { "value", MAIL_FONT MAIL_WRAP "vertical-align:top;padding:2px 12px 2px 0;" },
    [ROLE_TEXT_CELL] = { "text", MAIL_FONT "text-align:left;padding:2px 16px 2px 0;" },
    [ROLE_NUMBER] = { "number",
                      MAIL_FONT "text-align:right;white-space:nowrap;padding:2px 16px 2px 0;" },
    [ROLE_FINDING] = { "finding", MAIL_FONT MAIL_WRAP "vertical-align:top;padding:4px 0;" },
    [ROLE_ADVICE] = { "advice", "font-family:monospace;font-size:14px;color:#222222;" MAIL_WRAP
                                "vertical-align:top;padding:2px 16px 2px 0;" },
};

/* White text is readable on each: 4.5 to 1 at least (WCAG 2.1). */
static const char *const severity_colours[SEVERITIES] = {
    [SEVERITY_OFF] = "#20744a",
    [SEVERITY_NOTE] = "#1f5fa8",
    [SEVERITY_WARNING] = "#8f5600",
    [SEVERITY_CRITICAL] = "#b3261e",
};

static const char style_sheet[] =
    ":root{color-scheme:light dark;--ink:#222;--faint:#666;--paper:#fff;--rule:#ddd;"
    "--off:#20744a;--note:#1f5fa8;--warning:#8f5600;--critical:#b3261e}"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--faint:#a0a0a0;--paper:#16181c;"
    "--rule:#3a3d43;--off:#5fc28f;--note:#7db4f0;--warning:#e6a94a;--critical:#ff8a80}}"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:60rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem;"
    "border-bottom:1px solid var(--rule)}"
    "table{border-collapse:collapse}.wide{overflow-x:auto;margin-top:.75rem}.wide td,.wide "
    "th{white-space:nowrap}"
    "th,td{padding:.15rem 1rem .15rem 0;text-align:left;vertical-align:top}"
    ".label,.note,.more{color:var(--faint);font-weight:normal}"
    ".simulated{font-weight:bold;border:2px solid #b58900;padding:.4rem .8rem}"
    ".number{text-align:right;font-variant-numeric:tabular-nums}"
    ".bar{width:12rem;height:.8rem;margin-top:.35rem;border:1px solid var(--faint)}"
    ".bar div{height:100%;background:var(--off);print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}"
    ".bar .note{background:var(--note)}.bar .warning{background:var(--warning)}"
    ".bar .critical{background:var(--critical)}"
    ".severity,.label{white-space:nowrap}.severity{font-weight:bold;text-transform:uppercase;color:"
    "var(--off)}"
    ".severity.note{color:var(--note)}.severity.warning{color:var(--warning)}"
    ".severity.critical{color:var(--critical)}"
    ".advice{font-family:ui-monospace,monospace;white-space:pre-wrap}"
    "figure{margin:1rem 0}svg{width:100%;height:auto}a{color:var(--note)}"
    "@media print{:root{--ink:#000;--faint:#444;--paper:#fff;--rule:#999;--off:#20744a;"
    "--note:#1f5fa8;--warning:#8f5600;--critical:#b3261e}body{font-size:10pt}"
    "main{max-width:none;padding:0}h2{break-after:avoid}tr,figure{break-inside:avoid}}";

/* Without control characters, in text and in quoted attributes. */
static void put_text(struct html *html, struct str text)
{
    while (text.n)
        buf_html(html->to, shown_take(&text));
}

static void open_tag(struct html *html, const char *tag, enum role role)
{
    if (html->kind == HTML_MAIL)
        buf_printf(html->to, "<%s style=\"%s\">", tag, looks[role].style);
    else
        buf_printf(html->to, "<%s class=\"%s\">", tag, looks[role].class);
}

static void close_tag(struct html *html, const char *tag)
{
    buf_printf(html->to, "</%s>\n", tag);
}

static void element(struct html *html, const char *tag, enum role role, struct str text)
{
    open_tag(html, tag, role);
    put_text(html, text);
    close_tag(html, tag);
}

static void open_table(struct html *html)
{
    if (html->kind == HTML_MAIL)
        buf_text(html->to,
                 "<table summary=\"\" cellpadding=\"0\" cellspacing=\"0\" border=\"0\">\n");
    else
        buf_text(html->to, "<table>\n");
}

/* Only what a browser takes to the web: a site's settings may hold anything. */
static void put_link(struct html *html, struct str url)
{
    bool is_web = str_starts(url, STR("https://")) || str_starts(url, STR("http://"));

    if (is_web) {
        buf_text(html->to, "<a href=\"");
        put_text(html, url);
        buf_text(html->to, "\">");
    }
    put_text(html, url);
    buf_text(html->to, is_web ? "</a>" : "");
}

static void put_head(struct html *html, struct str title)
{
    if (html->kind == HTML_MAIL)
        buf_text(html->to, "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\" "
                           "\"http://www.w3.org/TR/html4/loose.dtd\">\n<html lang=\"en\"><head>\n"
                           "<meta http-equiv=\"Content-Type\" content=\"text/html; "
                           "charset=utf-8\">\n<title>");
    else
        buf_text(html->to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width,"
                           "initial-scale=1\">\n<title>");
    put_text(html, title);
    buf_text(html->to, "</title>\n");
    if (html->kind == HTML_PAGE) {
        buf_printf(html->to, "<style>%s", style_sheet);
        chart_dark_rules(html->to);
        buf_text(html->to, "</style>\n");
    }
    buf_text(html->to, html->kind == HTML_MAIL ? "</head><body bgcolor=\"#ffffff\">\n"
                                               : "</head><body><main>\n");
}

static double clamp(double ratio)
{
    return ratio < 0 ? 0 : ratio > 1 ? 1 : ratio;
}

static void put_page_bar(struct html *html, const struct outline_meter *meter)
{
    buf_printf(html->to, "<div class=\"bar\"><div class=\"%s\" style=\"width:%.1f%%\"></div></div>",
               severity_words[meter->severity], clamp(meter->ratio) * 100);
}

/* Two cells beside each other; one of no width would still be drawn. */
static void put_mail_bar(struct html *html, const struct outline_meter *meter)
{
    int filled = (int)lround(clamp(meter->ratio) * MAIL_METER_PIXELS);
    const struct {
        int pixels;
        const char *colour;
    } cells[] = { { filled, severity_colours[meter->severity] },
                  { MAIL_METER_PIXELS - filled, "#dddddd" } };

    buf_printf(
        html->to,
        "<table summary=\"\" cellpadding=\"0\" cellspacing=\"0\" border=\"0\" width=\"%d\"><tr>",
        MAIL_METER_PIXELS);
    for (size_t i = 0; i < COUNT(cells); i++)
        if (cells[i].pixels)
            buf_printf(html->to,
                       "<td width=\"%d\" height=\"12\" bgcolor=\"%s\" "
                       "style=\"font-size:1px;line-height:12px\">&nbsp;</td>",
                       cells[i].pixels, cells[i].colour);
    buf_text(html->to, "</tr></table>");
}

static void put_meter(struct html *html, const struct outline_meter *meter)
{
    struct buf percent;

    buf_text(html->to, "<tr>");
    element(html, "th", ROLE_LABEL, str_of(meter->title));
    open_tag(html, "td", ROLE_VALUE);
    if (html->kind == HTML_MAIL)
        put_mail_bar(html, meter);
    else
        put_page_bar(html, meter);
    close_tag(html, "td");
    buf_init(&percent, 64);
    words_percent(&percent, meter->ratio);
    element(html, "td", ROLE_NUMBER, buf_str(&percent));
    buf_free(&percent);
    element(html, "td", ROLE_VALUE, meter->words);
    buf_text(html->to, "</tr>\n");
}

static void put_meters(struct html *html, const struct outline *outline)
{
    if (!outline->n_meters)
        return;
    open_table(html);
    for (size_t i = 0; i < outline->n_meters; i++)
        put_meter(html, &outline->meter[i]);
    close_tag(html, "table");
}

static void put_severity(struct html *html, enum severity severity)
{
    const char *word = severity_words[severity];

    if (html->kind == HTML_PAGE) {
        buf_printf(html->to, "<td class=\"severity %s\">%s</td>", word, word);
        return;
    }
    buf_printf(html->to,
               "<td style=\"%sfont-weight:bold;color:%s;vertical-align:top;"
               "padding:4px 16px 4px 0;\">",
               MAIL_FONT, severity_colours[severity]);
    for (; *word; word++)
        buf_byte(html->to, (char)toupper((unsigned char)*word));
    buf_text(html->to, "</td>");
}

static void put_findings(struct html *html, const struct job_report *report,
                         const struct outline *outline)
{
    if (!report->n_findings && !outline->verdict.n)
        return;
    element(html, "h2", ROLE_HEADING, STR("What was found"));
    if (!report->n_findings) {
        element(html, "p", ROLE_HEADLINE, outline->verdict);
        return;
    }
    open_table(html);
    for (size_t i = 0; i < report->n_findings; i++) {
        const struct finding *finding = &report->finding[i];

        buf_text(html->to, "<tr>");
        put_severity(html, finding->severity);
        open_tag(html, "td", ROLE_FINDING);
        put_text(html, finding->sentence);
        if (finding->link.n) {
            buf_text(html->to, "<br>");
            put_link(html, finding->link);
        }
        close_tag(html, "td");
        buf_text(html->to, "</tr>\n");
    }
    close_tag(html, "table");
}

static void put_advice(struct html *html, const struct advice *advice,
                       const struct outline *outline)
{
    if (!advice->n_lines)
        return;
    element(html, "h2", ROLE_HEADING, STR("What to write next time"));
    open_table(html);
    for (size_t i = 0; i < advice->n_lines; i++) {
        buf_text(html->to, "<tr>");
        element(html, "td", ROLE_ADVICE, advice->line[i].line);
        element(html, "td", ROLE_VALUE, advice->line[i].why);
        buf_text(html->to, "</tr>\n");
    }
    close_tag(html, "table");
    if (outline->gain.n)
        element(html, "p", ROLE_HEADLINE, outline->gain);
}

static void put_charts(struct html *html, const struct job_facts *facts)
{
    struct arena arena = { 0 };
    bool has_heading = false;

    for (size_t i = 0; i < JOB_CHARTS; i++) {
        struct chart chart;
        char prefix[32];

        if (!job_chart(&chart, &arena, facts, (enum job_chart)i, CHART_WIDTH, CHART_HEIGHT))
            continue;
        if (!has_heading)
            element(html, "h2", ROLE_HEADING, STR("Charts"));
        has_heading = true;
        snprintf(prefix, sizeof(prefix), "chart%zu-", i);
        buf_text(html->to, "<figure>");
        chart_svg(html->to, &chart, prefix);
        buf_text(html->to, "</figure>\n");
    }
    arena_clear(&arena);
}

static void put_facts(struct html *html, const struct outline_section *section)
{
    if (!section->n_facts)
        return;
    open_table(html);
    for (size_t i = 0; i < section->n_facts; i++) {
        buf_text(html->to, "<tr>");
        element(html, "th", ROLE_LABEL, str_of(section->fact[i].label));
        open_tag(html, "td", ROLE_VALUE);
        if (section->fact[i].is_link)
            put_link(html, section->fact[i].value);
        else
            put_text(html, section->fact[i].value);
        close_tag(html, "td");
        buf_text(html->to, "</tr>\n");
    }
    close_tag(html, "table");
}

static void put_rows(struct html *html, const struct outline_table *table)
{
    size_t n = table->n_columns;

    for (size_t i = 0; i < n; i++)
        element(html, "th", i && !table->is_text ? ROLE_NUMBER : ROLE_TEXT_CELL,
                str_of(table->title[i]));
    buf_text(html->to, "</tr>\n");
    for (size_t i = 0; i < table->n_rows * n; i++) {
        buf_text(html->to, i % n ? "" : "<tr>");
        element(html, "td", i % n && !table->is_text ? ROLE_NUMBER : ROLE_TEXT_CELL,
                table->cell[i]);
        buf_text(html->to, i % n == n - 1 ? "</tr>\n" : "");
    }
}

static void put_table(struct html *html, const struct outline_table *table)
{
    struct buf words;

    if (!table->n_rows)
        return;
    buf_text(html->to, html->kind == HTML_PAGE ? "<div class=\"wide\">" : "");
    open_table(html);
    buf_text(html->to, "<tr>");
    put_rows(html, table);
    close_tag(html, "table");
    buf_text(html->to, html->kind == HTML_PAGE ? "</div>\n" : "");
    buf_init(&words, 1024);
    outline_put_notes(&words, table);
    if (words.n)
        element(html, "p", ROLE_NOTE, buf_str(&words));
    buf_free(&words);
}

void report_html(struct buf *to, const struct job_report *report, enum html_kind kind)
{
    struct html html = { to, kind };
    struct arena arena = { 0 };
    struct outline outline;

    outline_make(report, &arena, &outline);
    put_head(&html, outline.title);
    element(&html, "h1", ROLE_HEADING, outline.title);
    if (outline.simulated.n)
        element(&html, "p", ROLE_SIMULATED, outline.simulated);
    element(&html, "p", ROLE_HEADLINE, outline.headline);
    if (outline.note.n)
        element(&html, "p", ROLE_NOTE, outline.note);
    put_meters(&html, &outline);
    put_findings(&html, report, &outline);
    put_advice(&html, &report->advice, &outline);
    if (kind == HTML_PAGE)
        put_charts(&html, &report->facts);
    for (size_t i = 0; i < outline.n_sections; i++) {
        element(&html, "h2", ROLE_HEADING, str_of(outline.section[i].title));
        put_facts(&html, &outline.section[i]);
        put_table(&html, &outline.section[i].table);
    }
    buf_text(to, kind == HTML_MAIL ? "</body></html>\n" : "</main></body></html>\n");
    arena_clear(&arena);
}
