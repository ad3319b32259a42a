/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for a terminal, and as the text of a mail: what matters first. */
#include "base/shown.h"
#include "report/page.h"

enum { INDENT = 2 };

static void put_findings(struct page *page, const struct job_report *report,
                         const struct outline *outline)
{
    if (!report->n_findings && !outline->verdict.n)
        return;
    page_heading(page, STR("What was found"));
    if (!report->n_findings)
        page_paragraph(page, INDENT, outline->verdict);
    for (size_t i = 0; i < report->n_findings; i++)
        page_finding(page, report->finding[i].severity, report->finding[i].sentence,
                     report->finding[i].link);
}

static size_t widest_line(const struct advice *advice)
{
    size_t widest = 0;

    for (size_t i = 0; i < advice->n_lines; i++) {
        size_t width = shown_width(advice->line[i].line);

        widest = width > widest ? width : widest;
    }
    return widest;
}

static void put_advice(struct page *page, const struct advice *advice,
                       const struct outline *outline)
{
    size_t widest = widest_line(advice);

    if (!advice->n_lines)
        return;
    page_heading(page, STR("What to write next time"));
    for (size_t i = 0; i < advice->n_lines; i++) {
        const struct advice_line *line = &advice->line[i];

        /* beside each other where there is room: the lines can then be copied as a block */
        if (widest + 34 <= page->look.width) {
            page_fact(page, line->line, widest, line->why);
        } else {
            page_paragraph(page, INDENT, line->line);
            page_paragraph(page, 2 * INDENT, line->why);
        }
    }
    if (outline->gain.n)
        page_paragraph(page, INDENT, outline->gain);
}

static size_t widest_label(const struct outline *outline)
{
    size_t widest = 0;

    for (size_t i = 0; i < outline->n_sections; i++)
        for (size_t j = 0; j < outline->section[i].n_facts; j++) {
            size_t width = shown_width(str_of(outline->section[i].fact[j].label));

            widest = width > widest ? width : widest;
        }
    return widest;
}

static void put_section(struct page *page, const struct outline_section *section, size_t label)
{
    page_heading(page, str_of(section->title));
    for (size_t i = 0; i < section->n_facts; i++)
        page_fact(page, str_of(section->fact[i].label), label, section->fact[i].value);
    if (!section->table.n_rows)
        return;
    if (section->n_facts)
        buf_byte(page->to, '\n');
    page_table(page, &section->table);
}

void report_text(struct buf *to, const struct job_report *report, const struct text_look *look)
{
    struct arena arena = { 0 };
    struct outline outline;
    struct page page;

    outline_make(report, &arena, &outline);
    page_begin(&page, to, look);
    page_heading(&page, outline.title);
    if (outline.simulated.n)
        page_paragraph(&page, 0, outline.simulated);
    page_paragraph(&page, 0, outline.headline);
    if (outline.note.n)
        page_paragraph(&page, 0, outline.note);
    if (outline.n_meters)
        buf_byte(to, '\n');
    for (size_t i = 0; i < outline.n_meters; i++)
        page_meter(&page, &outline.meter[i]);
    put_findings(&page, report, &outline);
    put_advice(&page, &report->advice, &outline);
    for (size_t i = 0; i < outline.n_sections; i++)
        put_section(&page, &outline.section[i], widest_label(&outline));
    page_end(&page);
    arena_clear(&arena);
}
