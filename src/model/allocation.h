/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an account was promised of a cluster, from when to when, and what it has used of it. */
#ifndef SONDE_MODEL_ALLOCATION_H
#define SONDE_MODEL_ALLOCATION_H

#include "model/symbols.h"

enum allocation_of {
    ALLOCATION_CPUS,
    ALLOCATION_GPUS,
    ALLOCATION_KINDS,
};

#define ALLOCATION_YEAR_SECONDS INT64_C(31557600) /* a Julian year: 365.25 days */

struct allocation {
    symbol account;
    int64_t from, to;                 /* UTC seconds; to: itself excluded; both 0: for good */
    double seconds[ALLOCATION_KINDS]; /* promised in all of that time; for good: in each year; NAN:
                                       * nothing was */
    double used[ALLOCATION_KINDS];    /* NAN: unknown */
    double rate[ALLOCATION_KINDS]; /* used per second of late: how many are in use; NAN: unknown */
    double storage_bytes;          /* NAN: nothing was said, as the next */
    double students;
};

struct allocations {
    struct allocation *row;
    size_t n;
    int64_t now; /* of used and rate; UTC seconds */
};

/* What is left; NAN: unknown, or promised for good. Negative: more was used than promised. */
double allocation_left(const struct allocation *allocation, enum allocation_of what);

/* When nothing will be left at the present rate, UTC seconds; NAN: not before it ends, unknown, or
 * nothing is used. In the past if nothing is left now. */
double allocation_empty_at(const struct allocation *allocation, enum allocation_of what,
                           int64_t now);

/* How many may be in use all the time: the threshold in a plot. NAN: unknown. */
double allocation_steady(const struct allocation *allocation, enum allocation_of what);

#endif
