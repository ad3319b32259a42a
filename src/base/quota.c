/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits within limits. */
#include "base/quota.h"

/* The innermost that has no room; NULL: all have. */
static struct quota *find_full(struct quota *quota, size_t n)
{
    while (quota && n <= quota->max - quota->n)
        quota = quota->within;
    return quota;
}

bool quota_take(struct quota *quota, size_t n)
{
    struct quota *full = find_full(quota, n);

    if (full) {
        if (full->refusals)
            ++*full->refusals;
        return false;
    }
    for (; quota; quota = quota->within)
        quota->n += n;
    return true;
}

void quota_give(struct quota *quota, size_t n)
{
    for (; quota; quota = quota->within)
        quota->n -= n;
}
