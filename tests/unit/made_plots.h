/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Curves as jobs have them, the same in every run. */
#ifndef SONDE_TESTS_MADE_PLOTS_H
#define SONDE_TESTS_MADE_PLOTS_H

#include "report/facts.h"

struct made_plots {
    size_t n_lines, n_points;
    size_t n_members; /* more than n_lines: three lines, median and range; 0: as many as lines */
    int64_t begin, step_seconds;
    double noise; /* 0…1 */
};

/* Fills all plots of CPUs, memory and bytes moved; of GPUs too if the facts have some. A tenth of
 * the way there is a gap. */
void make_plots(struct job_facts *facts, struct arena *arena, const struct made_plots *wanted);

#endif
