/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What facts_kept.c and kept_plots.c share: the embedded series of one run. */
#ifndef SONDE_REPORT_KEPT_LINES_H
#define SONDE_REPORT_KEPT_LINES_H

#include "report/kept_words.h"
#include "report/series.h"
#include "store/ticks.h"

/* One number of a node or of a GPU, over time. */
struct kept_line {
    struct str node, gpu; /* gpu is empty for what is the node's */
    const struct kept_word *word;
    size_t n;
    const int64_t *time;
    const double *value; /* finite, not negative */
};

struct kept_lines {
    struct series *run; /* its times, and the interval of the samples */
    struct kept_line *line;
    size_t n;
};

/* Whether nothing is known of the time from one sample to the next: it is much longer than what
 * comes before and after it. */
bool kept_is_gap(const struct kept_line *line, size_t i);

/* Lines of all members, the CPU plot for the most that were in use at once, too. */
void kept_take_plots(const struct kept_lines *lines, bool wants_plots);

#endif
