/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of durations, for the histograms that sonde keeps of itself. */
#ifndef SONDE_METRIC_HISTOGRAM_H
#define SONDE_METRIC_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 12 };

struct histogram {
    uint64_t
        buckets[HISTOGRAM_BOUNDS + 1]; /* not cumulative; the last is what exceeds all bounds */
    double sum;
};

extern const double histogram_bounds[HISTOGRAM_BOUNDS]; /* seconds, 1 ms to 60 s */

void histogram_add(struct histogram *histogram, double seconds);

#endif
