/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds observations to histograms and writes them as metrics. */
#include "metric/histogram.h"

const double histogram_bounds[HISTOGRAM_BOUNDS] = { 0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                                    0.5,   1,     2.5,  5,    10,  60 };

void histogram_add(struct histogram *histogram, double seconds)
{
    size_t i = 0;

    while (i < HISTOGRAM_BOUNDS && seconds > histogram_bounds[i])
        i++;
    histogram->buckets[i]++;
    histogram->sum += seconds;
}
