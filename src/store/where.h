/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The conditions that a filter sets, as SQL: put together from the pieces in where.c and from
 * question marks. All that somebody asks for is bound. */
#ifndef SONDE_STORE_WHERE_H
#define SONDE_STORE_WHERE_H

#include "store/reader.h"

struct where {
    struct store_reader *reader;
    const struct job_filter *filter;
    int first_parameter;         /* its number */
    const struct words *skipped; /* member of the filter that needs no condition, or NULL */
    bool skips_ids;
    struct err *err;

    struct buf text; /* " AND … AND …" */
    bool is_empty;   /* nothing can pass: the store knows none of some words */
    struct bound *bound;
    size_t n_bound, bound_room;
    struct arena arena;
};

/* With the members before `text` set. -E2BIG, or -EBADMSG for nodes that are no host list. */
int where_make(struct where *where);
void where_free(struct where *where);

void where_bind(const struct where *where, sqlite3_stmt *statement);

/* The ids of those words that the store has, each once; in the arena. */
int where_ids(struct where *where, enum reader_names of, const struct words *words, int64_t **ret,
              size_t *ret_n);

#endif
