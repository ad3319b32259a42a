/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collector/tally.h"

void tally_init(struct tally *tally, const struct symbols *symbols, size_t n_columns)
{
    *tally = (struct tally){ .n_columns = n_columns };
    tally->row_of = heap_alloc(symbols_count(symbols) * sizeof(*tally->row_of));
}

void tally_free(struct tally *tally)
{
    free(tally->row_of);
    free(tally->symbols);
    free(tally->cells);
}

static void add_row(struct tally *tally, symbol name)
{
    if (tally->n_rows == tally->cap_rows) {
        tally->cap_rows = tally->cap_rows ? tally->cap_rows * 2 : 16;
        tally->symbols = heap_resize(tally->symbols, tally->cap_rows, sizeof(*tally->symbols));
        tally->cells =
            heap_resize(tally->cells, tally->cap_rows, tally->n_columns * sizeof(*tally->cells));
    }
    tally->symbols[tally->n_rows] = name;
    memset(tally->cells + tally->n_rows * tally->n_columns, 0,
           tally->n_columns * sizeof(*tally->cells));
    tally->row_of[name] = (uint32_t)++tally->n_rows;
}

struct tally_cell *tally_at(struct tally *tally, symbol row, size_t column)
{
    if (!tally->row_of[row])
        add_row(tally, row);
    return &tally->cells[(tally->row_of[row] - 1) * tally->n_columns + column];
}
