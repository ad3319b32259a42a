/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds amounts up by two things at once: a symbol (a user, a partition) and one of a few words (a
 * state). Symbols come out in the order in which they were first met. */
#ifndef SONDE_COLLECTOR_TALLY_H
#define SONDE_COLLECTOR_TALLY_H

#include "model/job.h"
#include "model/symbols.h"

struct tally_cell {
    uint64_t count;
    struct tally_sum {
        uint64_t total;
        bool is_known; /* at least one told */
        bool is_over;  /* more than 64 bits hold: some job tells nonsense */
    } cpus, memory_bytes;
};

struct tally {
    uint32_t *row_of; /* by symbol: row + 1, 0 = none yet */
    symbol *symbols;  /* by row */
    size_t n_rows, rows_room, n_columns;
    struct tally_cell *cells; /* row after row */
};

void tally_init(struct tally *tally, const struct symbols *symbols, size_t n_columns);
void tally_free(struct tally *tally);

/* The cell to add to; valid until the next call. */
struct tally_cell *tally_at(struct tally *tally, symbol row, size_t column);

/* Adds a job, all of its tasks. */
void tally_add(struct tally *tally, symbol row, size_t column, const struct job *job);

#endif
