/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A limit on how many of something may be held, within the limit of a larger group: the open files
 * of a step count for the step, for its job and for all jobs. Not locked: one thread uses a tree of
 * them. */
#ifndef SONDE_BASE_QUOTA_H
#define SONDE_BASE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quota {
    struct quota *within; /* the larger group, which must outlive this; NULL: none */
    size_t max, n;
    uint64_t
        *refusals; /* counts how often this limit was the one that refused; NULL: not counted */
};

/* All `n` or none. NULL is a quota without a limit. */
bool quota_take(struct quota *quota, size_t n);
void quota_give(struct quota *quota, size_t n);

#endif
