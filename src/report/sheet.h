/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sheets of A4, filled from the top. They are gone through twice: the first time nothing is drawn,
 * but at the end it is known how many there are. */
#ifndef SONDE_REPORT_SHEET_H
#define SONDE_REPORT_SHEET_H

#include "report/draw.h"

/* Points. */
static const double sheet_width = 595.28, sheet_height = 841.89;
static const double sheet_left = 45, sheet_right = 550.28, sheet_top = 44, sheet_bottom = 786;

static const double sheet_line_gap = 3, sheet_column_gap = 16;

struct sheet {
    cairo_t *cairo;
    PangoLayout *layout;
    bool is_drawn;
    double y; /* where the next thing goes */
    size_t page, n_pages;
    struct str footer;
};

void sheet_begin(struct sheet *sheet, bool is_drawn);
void sheet_end(struct sheet *sheet);

/* Goes to the next page unless there is room for so much. */
void sheet_need(struct sheet *sheet, double height);

enum sheet_font {
    FONT_TITLE,
    FONT_HEADING,
    FONT_TEXT,
    FONT_SMALL,
    FONT_SMALL_BOLD,
    FONT_FIXED,
};

/* A text at a place of its own, which does not move on. */
struct sheet_text {
    double x, y, width;
    enum sheet_font font;
    enum anchor anchor;
    uint32_t rgb;
    int most_lines; /* what is more is left out behind an ellipsis; 0: all are set */
    struct str text;
    struct str link; /* URL; or empty */
};

/* Returns its height; measure only returns that, and natural_width how wide it would be on one
 * line. */
double sheet_put(struct sheet *sheet, const struct sheet_text *text);
double sheet_measure(struct sheet *sheet, const struct sheet_text *text);
double sheet_natural_width(struct sheet *sheet, enum sheet_font font, struct str text);

void sheet_box(struct sheet *sheet, double x, double y, double width, double height, uint32_t rgb);
void sheet_chart(struct sheet *sheet, double x, double y, const struct chart *chart);

/* Over the whole width; these move on. A heading stays with so much of what follows. */
void sheet_paragraph(struct sheet *sheet, enum sheet_font font, uint32_t rgb, int most_lines,
                     struct str text);
void sheet_heading(struct sheet *sheet, const char *title, double following);

enum { SHEET_INK = 0x222222, SHEET_FAINT = 0x666666, SHEET_RULE = 0xd0d0d0 };

#endif
