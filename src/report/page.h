/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A page of text for a terminal or a mail: no line is longer than it is wide, colour is only by
 * severity, and nothing that a user wrote can move the cursor. */
#ifndef SONDE_REPORT_PAGE_H
#define SONDE_REPORT_PAGE_H

#include "base/arena.h"
#include "report/outline.h"

struct page {
    struct buf *to;
    struct text_look look; /* its width is known */
    struct arena arena;
};

void page_begin(struct page *page, struct buf *to, const struct text_look *look);
void page_end(struct page *page);

void page_heading(struct page *page, struct str title); /* with an empty line above */

/* Wrapped; all lines begin with so many spaces. */
void page_paragraph(struct page *page, size_t indent, struct str text);

/* A label of that width, and a text beside it, wrapped. */
void page_fact(struct page *page, struct str label, size_t label_width, struct str text);

/* "  WARNING   Only 3 of 32 CPUs …" and its link. */
void page_finding(struct page *page, enum severity severity, struct str sentence, struct str link);

void page_meter(struct page *page, const struct outline_meter *meter);

/* Columns that do not fit are left out, the last first. */
void page_table(struct page *page, const struct outline_table *table);

#endif
