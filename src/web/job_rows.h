/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs as rows of a table, those of the queue and those that were kept. */
#ifndef SONDE_WEB_JOB_ROWS_H
#define SONDE_WEB_JOB_ROWS_H

#include "store/query.h"
#include "web/html.h"
#include "web/site.h"

enum job_table_kind {
    JOB_TABLE_QUEUE, /* can be sorted, and pages by offset */
    JOB_TABLE_KEPT,  /* with end and efficiency; its links are those of runs */
    JOB_TABLE_KINDS,
};

struct job_table {
    struct site_call *call;
    enum job_table_kind kind;
    bool with_cluster; /* there are several */
    struct html_table html;
    struct html_column *column;
};

/* `sorted` is empty where it cannot be sorted: in the parts of other pages. */
void job_table_begin(struct job_table *table, struct site_call *call, enum job_table_kind kind,
                     const char *caption, struct str sorted, bool is_descending,
                     struct str address);
void job_table_row(struct job_table *table, const struct job_row *row);
void job_table_end(struct job_table *table);

/* The state as a word with its colour. */
void job_put_state(struct buf *to, struct job_state state);

/* What an unsigned member says, NAN for an unknown one. */
double job_known_u32(uint32_t value);
double job_known_u64(uint64_t value);
double job_known_span(int64_t seconds);

#endif
