/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes how long a job was pending, and the bucket of the histogram. */
#include "model/wait.h"

const double wait_bounds[WAIT_BOUNDS] = { 1,    5,    15,    30,    60,    300,    900,
                                          1800, 3600, 14400, 43200, 86400, 259200, 604800 };

int64_t wait_seconds(int64_t submit_time, int64_t eligible_time, int64_t start_time)
{
    int64_t since =
        eligible_time > submit_time && eligible_time <= start_time ? eligible_time : submit_time;

    return since > 0 && since <= start_time ? start_time - since : -1;
}

size_t wait_bucket(double seconds)
{
    size_t bucket = 0;

    while (bucket < WAIT_BOUNDS && seconds > wait_bounds[bucket])
        bucket++;
    return bucket;
}
