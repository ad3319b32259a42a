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
    size_t cells_room = tally->rows_room;

    tally->symbols =
        heap_grow(tally->symbols, tally->n_rows, &tally->rows_room, sizeof(*tally->symbols));
    tally->cells = heap_grow(tally->cells, tally->n_rows, &cells_room,
                             tally->n_columns * sizeof(*tally->cells));
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

static void add(struct tally_sum *sum, uint64_t amount, uint32_t tasks)
{
    uint64_t all;

    if (amount == MODEL_UNKNOWN_U64)
        return;
    sum->is_known = true;
    sum->is_over |= __builtin_mul_overflow(amount, tasks, &all) ||
                    __builtin_add_overflow(sum->total, all, &sum->total);
}

void tally_add(struct tally *tally, symbol row, size_t column, const struct job *job)
{
    struct tally_cell *cell = tally_at(tally, row, column);
    uint64_t cpus = job->cpus == MODEL_UNKNOWN_U32 ? MODEL_UNKNOWN_U64 : job->cpus;

    cell->count += job->tasks;
    add(&cell->cpus, cpus, job->tasks);
    add(&cell->memory_bytes, job->memory_bytes, job->tasks);
}
