/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings that repeat (users, accounts, partitions, reasons, TRES) stand once per section and are
 * named by a number: a job is then small, and adding up by user is an array, not a hash. */
#ifndef SONDE_MODEL_SYMBOLS_H
#define SONDE_MODEL_SYMBOLS_H

#include "base/map.h"

typedef uint32_t symbol; /* 0 is the empty string: absent */

struct symbols {
    struct map map;
};

void symbols_init(struct symbols *symbols, struct arena *arena);
void symbols_free(struct symbols *symbols);

symbol symbols_put(struct symbols *symbols, struct str text);

static inline size_t symbols_count(const struct symbols *symbols)
{
    return symbols->map.n; /* valid symbols are 0 … count - 1 */
}

static inline struct str symbols_get(const struct symbols *symbols, symbol s)
{
    return symbols->map.entries[s].key;
}

#endif
