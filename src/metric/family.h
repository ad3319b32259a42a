/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A metric family is a row of a table: what is exported, what docs/metrics.md lists and what the
 * tests compare are all made from the same rows. */
#ifndef SONDE_METRIC_FAMILY_H
#define SONDE_METRIC_FAMILY_H

#include <stddef.h>

enum metric_type {
    METRIC_GAUGE,
    METRIC_COUNTER, /* without "_total" in its name OpenMetrics can only call it unknown */
    METRIC_HISTOGRAM,
    METRIC_UNTYPED, /* its first owner did not say; OpenMetrics calls that unknown */
};

enum { METRIC_LABELS_MAX = 8 };

struct family {
    const char *name;
    enum metric_type type;
    const char *help;
    const char *labels[METRIC_LABELS_MAX + 1]; /* ended by NULL */
};

/* Families of one table: bit i stands for the one at i. */
typedef unsigned __int128 family_set;

enum { METRIC_FAMILIES_MAX = 128 }; /* in one table */

#define FAMILY_BIT(i) ((family_set)1 << (i))

static inline size_t family_labels(const struct family *family)
{
    size_t n = 0;

    while (family->labels[n])
        n++;
    return n;
}

#endif
