/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs added up by two numbers at once: a row (a user, a partition) and a column (a state). Every
 * task of a job array counts. A column costs nothing until it is used: most states are rare. */
#ifndef SONDE_COLLECTOR_TALLY_H
#define SONDE_COLLECTOR_TALLY_H

#include "collector/gres.h"
#include "collector/known.h"

struct tally_cell {
    uint64_t jobs;
    struct known_sum cpus, memory_bytes;
};

struct tally {
    size_t n_columns;
    struct tally_column {
        struct tally_cell *cells; /* by row */
        size_t n, room;
    } * columns;
};

void tally_init(struct tally *tally, size_t n_columns);
void tally_free(struct tally *tally);

/* To add to; valid until the next one is made. */
struct tally_cell *tally_make(struct tally *tally, size_t row, size_t column);
static inline struct tally_cell *tally_at(struct tally *tally, size_t row, size_t column)
{
    struct tally_column *of = &tally->columns[column];

    return row < of->n ? &of->cells[row] : tally_make(tally, row, column);
}

/* To read; one of zeros if nothing was added. */
const struct tally_cell *tally_get(const struct tally *tally, size_t row, size_t column);

/* Counts the job, and adds what it requests or holds now: nothing once it has ended, and no CPUs
 * while it is suspended. */
void tally_add(struct tally_cell *cell, const struct job *job);

/* Adds a row to another, which then stands for both. */
void tally_fold(struct tally *tally, size_t row, size_t into);

/* GRES of jobs by type as well: those that their TRES name, and job.gres. */
struct gres_tally {
    struct gres_reader reader;
    size_t n_columns;
    struct gres_tally_column {
        struct known_sum *sums; /* by row */
        size_t n, room;
    } * columns[GRES_TYPES_ROOM]; /* by the reader's types */
};

void gres_tally_init(struct gres_tally *tally, const struct section *section, struct str name,
                     size_t n_columns);
void gres_tally_free(struct gres_tally *tally);
void gres_tally_add(struct gres_tally *tally, size_t row, size_t column, const struct job *job);

/* A sum, or one of which nobody told a part. */
const struct known_sum *gres_tally_get(const struct gres_tally *tally, size_t type, size_t row,
                                       size_t column);

#endif
