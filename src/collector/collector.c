/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collector/collector.h"

/* All there are, in the order in which they are exposed. */
#define COLLECTORS(ROW)                                                                            \
    ROW(jobs)                                                                                      \
    ROW(users)                                                                                     \
    ROW(nodes)                                                                                     \
    ROW(partitions)

#define DECLARE(name) extern const struct collector collector_##name;
#define ADDRESS(name) &collector_##name,

COLLECTORS(DECLARE)

const struct collector *const collectors[] = { COLLECTORS(ADDRESS) NULL };

_Static_assert(sizeof(collectors) / sizeof(collectors[0]) <= COLLECTORS_MAX + 1,
               "a collector_set has 32 bits");

int collector_find(struct str name)
{
    for (size_t i = 0; collectors[i]; i++)
        if (str_eq(str_of(collectors[i]->name), name))
            return (int)i;
    return -1;
}

unsigned collector_kinds(collector_set set)
{
    unsigned kinds = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (set & (collector_set)1 << i)
            kinds |= KIND_BIT(collectors[i]->kind);
    return kinds;
}
