/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the agent's collectors, and functions that look them up. */
#include "collector/usage.h"

#define ROW(name) extern const struct usage_collector usage_collector_##name;
#include "collector/usage_table.inc"
#undef ROW

#define ROW(name) &usage_collector_##name,
const struct usage_collector *const usage_collectors[] = {
#include "collector/usage_table.inc"
    NULL,
};
#undef ROW

_Static_assert(COUNT(usage_collectors) <= USAGE_COLLECTORS_MAX + 1, "a bulletin has room for them");

int usage_collector_find(struct str name)
{
    for (size_t i = 0; usage_collectors[i]; i++)
        if (str_eq(str_of(usage_collectors[i]->name), name))
            return (int)i;
    return -1;
}

unsigned usage_collectors_need(usage_collector_set set)
{
    unsigned needs = 0;

    for (size_t i = 0; usage_collectors[i]; i++)
        if (set & (usage_collector_set)1 << i)
            needs |= usage_collectors[i]->needs;
    return needs;
}
