/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What charts with axes have in common: a title, a frame with values on its left, a legend below.
 * Sizes are points. */
#ifndef SONDE_REPORT_PLOT_H
#define SONDE_REPORT_PLOT_H

#include "report/axis.h"
#include "report/chart.h"

enum { PLOT_LEGEND_MAX = 12 };

struct legend_entry {
    enum { SAMPLE_NONE, SAMPLE_LINE, SAMPLE_AREA } sample;
    int ink;
    enum dash dash;
    struct str text; /* cut where it is long */
};

struct legend {
    struct legend_entry entry[PLOT_LEGEND_MAX];
    size_t n;
};

struct plot {
    struct chart *chart;
    double left, right, top, bottom; /* of the frame */
    struct axis axis;                /* of values */
};

static const double plot_font_size = 7.5, plot_title_foot = 10.5;

void plot_text(struct chart *chart, struct point at, enum anchor anchor, int ink, struct str text);
void plot_line(struct chart *chart, struct point from, struct point to, int ink, double width);

/* The chart's title, at its head. */
void plot_title(struct chart *chart);

/* Divides the chart: a frame with values from 0 to `highest`, `n_rows` lines of text below it, and
 * the legend below those. Draws grid, values and legend. */
void plot_init(struct plot *plot, struct chart *chart, enum axis_unit unit, double highest,
               size_t n_rows, const struct legend *legend);

double plot_height_of(const struct plot *plot, double value); /* its y, within the frame */
double plot_row(const struct plot *plot, size_t row);         /* the foot of a line of text below */

/* A dashed line over the whole width. */
void plot_limit(struct plot *plot, double value, struct str text);

#endif
