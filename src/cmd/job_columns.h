/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be shown of a run as a column: the fields that the API has, and a few made of them. */
#ifndef SONDE_CMD_JOB_COLUMNS_H
#define SONDE_CMD_JOB_COLUMNS_H

#include "report/table.h"
#include "store/query.h"

enum { JOB_COLUMNS_MAX = 80 };

struct job_columns {
    size_t n;
    size_t which[JOB_COLUMNS_MAX];
    char titles[JOB_COLUMNS_MAX][40];
    struct table_column columns[JOB_COLUMNS_MAX]; /* for a table */
    bool is_csv;
};

/* Names separated by commas, or "all". -EINVAL with a sentence. Of people's tables the titles are
 * short and in capitals; of CSV they are the names, values have no units, times a zone. */
int job_columns_choose(struct str names, bool is_csv, struct job_columns *ret, struct err *err);

/* Those that are shown unless others are asked for: as many as there is room for. */
void job_columns_choose_usual(bool has_clusters, bool is_csv, struct job_columns *ret);

/* The cells of a run. */
void job_columns_put(const struct job_columns *columns, const struct job_row *row,
                     struct table *table);

/* "4711", "4711_7", "4711+1": as people name it. */
void job_put_id(struct buf *out, const struct job_row *row);

/* "1-02:03:04", "02:03:04". */
void job_put_span(struct buf *out, uint64_t seconds);

/* All names, for the man page. */
void job_columns_list(struct buf *out);

#endif
