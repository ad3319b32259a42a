/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long jobs were pending before they started, from when they could have run, as a histogram. */
#ifndef SONDE_MODEL_WAIT_H
#define SONDE_MODEL_WAIT_H

#include "model/symbols.h"

enum { WAIT_BOUNDS = 14 };
extern const double wait_bounds[WAIT_BOUNDS]; /* seconds, 1 s to a week */

struct wait {
    symbol partition;
    uint64_t buckets[WAIT_BOUNDS + 1]; /* not cumulative; the last is what exceeds all bounds */
    double sum;
};

/* Of a job that has started; unknown times are 0. -1: unknown. */
int64_t wait_seconds(int64_t submit_time, int64_t eligible_time, int64_t start_time);

size_t wait_bucket(double seconds);

#endif
