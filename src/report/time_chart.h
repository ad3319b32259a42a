/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values over time: a line for each member, or of many the median and the range. */
#ifndef SONDE_REPORT_TIME_CHART_H
#define SONDE_REPORT_TIME_CHART_H

#include "report/axis.h"
#include "report/chart.h"
#include "report/facts.h"

struct time_chart {
    const char *title, *members; /* "nodes" */
    enum axis_unit unit;
    const struct facts_plot *from;
    double limit; /* the height of a dashed line; NAN: none */
    struct str limit_text;
};

/* The colour of each line, from INK_FIRST on: where it has the name of a state or a use, that which
 * the pages have for it, so that "idle" is green everywhere; else one that is left. */
void time_chart_inks(const struct facts_plot *from, int ret[]);

/* How it is drawn. */
enum dash time_chart_dash(const struct facts_plot *from, size_t line);

/* Into a chart that has its size. False if there is nothing to draw. */
bool time_chart(struct chart *to, const struct time_chart *ask);

#endif
