/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of texts for a terminal, or as CSV (RFC 4180). */
#ifndef SONDE_REPORT_TABLE_H
#define SONDE_REPORT_TABLE_H

#include "base/buf.h"
#include "base/err.h"

struct table_column {
    const char *title;
    bool is_number;      /* aligned to the right, and never cut; as CSV it stands as it is. Texts of
                          * CSV are never cut either */
    bool is_whole;       /* a text that is never cut either */
    unsigned char spare; /* left out where there is no room, the highest first; 0: never */
};

enum table_format { TABLE_TEXT, TABLE_CSV };

struct table_settings {
    enum table_format format;
    const struct table_column *columns; /* must live as long as the table */
    size_t n_columns;
    size_t width; /* of the terminal, in characters; 0: there is none, and a text is cut only if it
                   * is so long that it would be most of every line */
    FILE *to;
};

struct table *table_new(const struct table_settings *settings);

/* Cells from the left to the right; after the last of a row comes the first of the next. Any bytes:
 * what cannot be printed is shown as "?". A text of CSV keeps its line ends and tabs; one that a
 * spreadsheet would take for a formula (it begins with = + - @, a tab or a line end) gets an
 * apostrophe in front. */
void table_cell(struct table *table, struct str text);

/* Writes what is left, and frees the table. -EIO, -ENOSPC, -EPIPE, … if something could not be
 * written. has_sums: the last row is one, and stands below a line. */
int table_end(struct table *table, bool has_sums, struct err *err);

/* Writes nothing more. Returns NULL. */
struct table *table_free(struct table *table);

/* Of the terminal that is open as `to`; if it is none, what COLUMNS says, or else 0. */
size_t table_terminal_width(FILE *to);

#endif
