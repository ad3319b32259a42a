/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What accounts were promised of a time, beside what they have used of it: docs/allocations.md. */
#ifndef SONDE_CMD_PROMISES_H
#define SONDE_CMD_PROMISES_H

#include "model/allocation.h"
#include "store/query.h"

struct promises;

/* -EINVAL with a sentence. It lives in the arena, but for what promises_free frees. */
int promises_read(const char *path, struct arena *arena, struct promises **ret, struct err *err);
struct promises *promises_free(struct promises *promises); /* returns NULL */

/* Completes the answer to a question that has the key account, and either the key cluster or one
 * cluster in its filter: every account that was promised something of the time has a row, and so
 * has every other key with which an account that it includes has one. These clusters are known. */
void promises_add_rows(struct promises *promises, const struct usage_question *question,
                       const struct cluster_row *clusters, size_t n_clusters,
                       struct usage_row **rows, size_t *n_rows);

/* Of what was promised of the time, were it used evenly; NAN: nothing was. Once rows were added. */
double promises_share(struct promises *promises, const struct usage_row *row,
                      enum allocation_of what);

#endif
