/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the runs that pass a filter are looked for. A question becomes one statement that is asked
 * several times, with other values each time: once for each class of stay (schema.h), for each user
 * or account, or for each id. Each of these branches reads one index in the order of pages. */
#ifndef SONDE_STORE_BRANCHES_H
#define SONDE_STORE_BRANCHES_H

#include "store/where.h"

/* What a branch is told apart by. */
struct branch {
    size_t sql;   /* which of the statements */
    int64_t key;  /* user, account or id */
    int64_t stay; /* class */
    int64_t lowest_submit_time;
};

enum { BRANCH_STATEMENTS = 3 };

struct branches {
    struct buf sql[BRANCH_STATEMENTS];
    struct where where; /* the conditions that all have */
    struct branch *branch;
    size_t n, room;
};

/* The runs before this one in the order of pages; all, if submit_time is INT64_MAX. */
struct branch_end {
    int64_t submit_time, job_id, cluster;
};

/* `columns` is what is selected of job. Ordered: newest first, ids may come again in other
 * branches; otherwise each run comes once, in any order. Without branches, nothing can pass. */
int branches_make(struct branches *branches, struct store_reader *reader,
                  const struct job_filter *filter, const char *columns, bool is_ordered,
                  struct err *err);
void branches_free(struct branches *branches);

/* To be done again for each branch, of a statement that was prepared from its sql. */
void branches_bind(const struct branches *branches, size_t branch, const struct branch_end *end,
                   sqlite3_stmt *statement);

#endif
