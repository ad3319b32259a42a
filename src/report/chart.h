/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A chart is a list of what is to be drawn: lines, rectangles, texts. Two writers know what to do
 * with it: our own for SVG, and cairo for PNG and PDF (report/paper.h). Units are points (1/72
 * inch), y goes down. Colours are names, so that a style sheet can replace them. */
#ifndef SONDE_REPORT_CHART_H
#define SONDE_REPORT_CHART_H

#include "base/arena.h"
#include "base/buf.h"

/* What a thing is decides how it looks: docs/decisions/charts.md. Series colours are those of the
 * pages (src/web/static/sonde.css), told apart by the colour-blind, with dashes besides. */
enum ink {
    INK_TEXT,
    INK_FAINT, /* frame, secondary text */
    INK_GRID,
    INK_LIMIT, /* the dashed line of the lowest acceptable use, or of what was allocated */
    INK_BAND,  /* a range */
    INK_FIRST, /* of the series: INK_FIRST + i modulo INK_SERIES */
    INK_SERIES = 8,
};

/* How an ink looks where no style sheet says otherwise. */
struct ink_look {
    const char *name;    /* of its class, with "sonde-" in front */
    uint32_t rgb;        /* on white paper */
    uint32_t dark_rgb;   /* on a dark page */
    double opacity;      /* of a line or an area */
    bool is_text_colour; /* whatever colour the text around it has, dark on light or not */
};
const struct ink_look *ink_look(int ink);

enum dash { DASH_NONE, DASH_LONG, DASH_SHORT, DASH_MIXED, DASH_LIMIT, DASHES };
enum { DASH_MAX = 4 };

/* Lengths drawn and left out, in turn, until a 0. */
extern const double dash_lengths[DASHES][DASH_MAX + 1];

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

enum mark_kind { MARK_LINE, MARK_AREA, MARK_RECTANGLE, MARK_WEDGE, MARK_TEXT };

struct point {
    double x, y;
};

struct mark {
    enum mark_kind kind;
    int ink;
    enum dash dash; /* of a line */
    bool is_bold;
    double width;              /* of a line */
    const struct point *point; /* of a line or an area; NAN in y: a gap; a point alone is a dot */
    size_t n_points;
    struct point at,
        size;        /* of a rectangle; of a wedge: centre, and radius in size.x; a text's foot */
    double from, to; /* of a wedge: turns, clockwise from the top */
    enum anchor anchor;
    double font_size;
    struct str text; /* of a text; of anything else: what a pointer over it is told; any bytes */
};

struct chart {
    double width, height;
    struct str title, summary; /* for those who do not see it */
    struct mark *mark;
    size_t n_marks, n_room;
    struct arena *arena; /* where all of it lives */
};

/* chart_add copies points and texts into the arena. */
void chart_init(struct chart *chart, struct arena *arena, double width, double height);
void chart_add(struct chart *chart, const struct mark *mark);

/* About how wide a text is, in the fonts that are likely: charts are laid out without any. */
double chart_text_width(struct str text, double font_size);

/* Rules of a style sheet: how charts look on a dark page. */
void chart_dark_rules(struct buf *to);

/* As one <svg> element that can stand in a page: real text, classes, titles, no style of its own
 * but what makes it readable without a style sheet. Ids begin with `prefix`, so that several can
 * stand in one page. */
void chart_svg(struct buf *to, const struct chart *chart, const char *prefix);

/* As an image of its own, which no page's style sheet reaches: it has one. */
void chart_svg_image(struct buf *to, const struct chart *chart);

#endif
