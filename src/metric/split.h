/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the writer has written, taken apart into families, so that those of several expositions can
 * stand together: a family must be in one piece. */
#ifndef SONDE_METRIC_SPLIT_H
#define SONDE_METRIC_SPLIT_H

#include "metric/family.h"
#include "metric/segment.h"

/* One family; both NULL: it has no samples. */
struct split_family {
    struct segment *header, *samples;
};

struct split {
    atomic_uint refs;
    size_t n; /* as the table has families */
    struct split_family family[];
};

/* `text` is the writer's, made from this table of families, whole; `prefix` is the writer's too. */
struct split *split_new(const struct family *families, size_t n_families, struct str prefix,
                        struct str text);
struct split *split_ref(struct split *split);
struct split *split_unref(struct split *split); /* returns NULL */

/* Appends the text that it was made of, its families in the order of the table. */
void split_join(const struct split *split, struct buf *to);

/* What several make together: each header once, then the samples of all that have any. NULL ones
 * are passed over. `to` has room for the number of families times one more than `n_splits`. Returns
 * how many; each is a reference for the caller. */
size_t split_weave(struct split *const *splits, size_t n_splits, struct segment **to);

#endif
