/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of all collectors, and functions that look them up. */
#include "collector/collector.h"

#define ROW(name) extern const struct collector collector_##name;
#include "collector/table.inc"
#undef ROW

#define ROW(name) &collector_##name,
const struct collector *const collectors[] = {
#include "collector/table.inc"
    NULL,
};
#undef ROW

_Static_assert(COUNT(collectors) <= COLLECTORS_MAX + 1, "a collector_set has 64 bits");

int collector_find(struct str name)
{
    for (size_t i = 0; collectors[i]; i++)
        if (str_eq(str_of(collectors[i]->name), name))
            return (int)i;
    return -1;
}

collector_set collector_profile(struct str profile)
{
    collector_set set = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (str_eq(str_of(collectors[i]->profile), profile))
            set |= (collector_set)1 << i;
    return set;
}

unsigned collector_kinds(collector_set set)
{
    unsigned kinds = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (set & (collector_set)1 << i)
            kinds |= KIND_BIT(collectors[i]->kind) | collectors[i]->also;
    return kinds;
}

bool collector_wants_details(collector_set set)
{
    for (size_t i = 0; collectors[i]; i++)
        if (collectors[i]->is_of_details && set & (collector_set)1 << i)
            return true;
    return false;
}
