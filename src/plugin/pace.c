/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes when the plugin sends the next samples. */
#include "plugin/pace.h"

#include "base/clock.h"

int64_t pace_first_ns(unsigned frequency_seconds, uint32_t random)
{
    return frequency_seconds * NS_PER_SEC / 1024 * (random % 1024);
}

int64_t pace_next_ns(unsigned frequency_seconds, unsigned failures, uint32_t random)
{
    int64_t shortest_ns = frequency_seconds * NS_PER_SEC, ns = shortest_ns;

    for (unsigned i = 1; i < failures && ns < PACE_LONGEST_SECONDS * NS_PER_SEC; i++)
        ns *= 2;
    if (ns > PACE_LONGEST_SECONDS * NS_PER_SEC)
        ns = PACE_LONGEST_SECONDS * NS_PER_SEC;
    if (failures > 1)
        ns -= ns / 4 / 1024 * (random % 1024);
    return ns > shortest_ns ? ns : shortest_ns;
}
