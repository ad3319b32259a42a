/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long what was promised lasts: docs/allocations.md. */
#include "model/allocation.h"

#include <math.h>

static bool is_for_good(const struct allocation *allocation)
{
    return !allocation->from && !allocation->to;
}

double allocation_left(const struct allocation *allocation, enum allocation_of what)
{
    return is_for_good(allocation) ? NAN : allocation->seconds[what] - allocation->used[what];
}

/* Nothing is used before it begins, and the rate says nothing of the time after its end. */
static double nearest_in(const struct allocation *allocation, int64_t now)
{
    return fmin(fmax((double)now, (double)allocation->from), (double)allocation->to);
}

double allocation_empty_at(const struct allocation *allocation, enum allocation_of what,
                           int64_t now)
{
    double left = allocation_left(allocation, what), rate = allocation->rate[what];
    double since = nearest_in(allocation, now), empty_at;

    if (isnan(left))
        return NAN;
    if (!(rate > 0))
        return left > 0 ? NAN : since;
    empty_at = fmax(since + left / rate, (double)allocation->from);
    return left > 0 && empty_at >= (double)allocation->to ? NAN : empty_at;
}

double allocation_steady(const struct allocation *allocation, enum allocation_of what)
{
    int64_t duration =
        is_for_good(allocation) ? ALLOCATION_YEAR_SECONDS : allocation->to - allocation->from;

    return duration > 0 ? allocation->seconds[what] / (double)duration : NAN;
}
