/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of durations: those that sonde keeps of itself, and others' as a view. */
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

/* A histogram with any bounds, whoever keeps it. */
struct histogram_view {
    const double *bounds; /* ascending */
    size_t n_bounds;
    const uint64_t *buckets; /* n_bounds + 1, not cumulative */
    double sum;
};

static inline struct histogram_view histogram_view(const struct histogram *histogram)
{
    return (struct histogram_view){ histogram_bounds, HISTOGRAM_BOUNDS, histogram->buckets,
                                    histogram->sum };
}

#endif
