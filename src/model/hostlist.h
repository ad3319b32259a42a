/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Node lists: "n[001-128,130],login1", several brackets "r[1-3]n[0-15]", as slurm.conf(5) and
 * scontrol show hostnames read them. Cost is linear in the number of hosts. */
#ifndef SONDE_MODEL_HOSTLIST_H
#define SONDE_MODEL_HOSTLIST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct hostlist {
    struct str *hosts; /* in the order given */
    size_t n;
};

/* `most` is a ceiling on the number of hosts: "n[0-99999999]" must not fill the memory. -EBADMSG
 * for a list that cannot be read (what is wrong and where), -EFBIG past the ceiling, or where
 * brackets make names that take more than 256 bytes for each of `most`. White space separates names
 * too. */
int hostlist_expand(struct str text, struct arena *arena, size_t most, struct hostlist *ret,
                    struct err *err);

/* Only counts: no memory, and no ceiling but 64 bits. */
int hostlist_count(struct str text, uint64_t *ret, struct err *err);

/* Sorted (naturally: n2 before n10), without repeats, ranges folded on the last number; names with
 * different widths of zero padding are kept apart. */
void hostlist_compress(const struct hostlist *list, struct buf *out);

#endif
