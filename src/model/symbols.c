/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the strings of a section, each stored once. */
#include "model/symbols.h"

void symbols_init(struct symbols *symbols, struct arena *arena)
{
    map_init(&symbols->map, arena);
    symbols_put(symbols, STR(""));
}

void symbols_free(struct symbols *symbols)
{
    map_free(&symbols->map);
}

symbol symbols_put(struct symbols *symbols, struct str text)
{
    return (symbol)map_index(&symbols->map, text);
}
