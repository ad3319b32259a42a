/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells the first of several that have one key: of rows that Slurm repeats the first one counts. */
#ifndef SONDE_COLLECTOR_ONCE_H
#define SONDE_COLLECTOR_ONCE_H

#include "base/map.h"
#include "model/symbols.h"

struct once {
    struct arena arena;
    struct map seen;
};

static inline void once_init(struct once *once)
{
    *once = (struct once){ .arena = { 0 } };
    map_init(&once->seen, &once->arena);
}

static inline void once_free(struct once *once)
{
    map_free(&once->seen);
    arena_clear(&once->arena);
}

static inline bool once_text(struct once *once, struct str key)
{
    size_t n = once->seen.n;

    return map_index(&once->seen, key) == n;
}

/* The same for numbers, most often symbols: several of them make one key. */
#define once_numbers(once, ...)                                                                    \
    once_text(once, (struct str){ (const char *)(const uint32_t[]){ __VA_ARGS__ },                 \
                                  sizeof((const uint32_t[]){ __VA_ARGS__ }) })

#endif
