/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What accounts were promised of a cluster and have used, as it is on the board; otherwise as the
 * allocations file has it, counted from the store. */
#ifndef SONDE_WEB_ALLOCATION_ROWS_H
#define SONDE_WEB_ALLOCATION_ROWS_H

#include "web/site.h"

struct allocation_row {
    struct str account;
    struct allocation allocation; /* its symbol is not set */
};

struct allocation_rows {
    struct allocation_row *row; /* those that hold now */
    size_t n;
    int64_t now;      /* of what is used */
    bool is_known;    /* somebody tells of allocations */
    const char *lack; /* why nothing, or not what is used, is told; or NULL */
};

/* Of all accounts: whoever shows them asks the viewer's rights. Lives in the arena of the call. */
void allocation_rows_find(struct site_call *call, const struct board_cluster *cluster,
                          struct allocation_rows *ret);

/* How many were promised to all accounts together, for all the time; NAN: none. */
double allocation_rows_steady(const struct allocation_rows *rows, enum allocation_of what);

#endif
