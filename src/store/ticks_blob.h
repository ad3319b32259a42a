/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How samples are written as bytes: those of one tick, and those of one series over many ticks.
 * docs/decisions/ticks.md has the formats. What is read may have been written by anybody: it is
 * taken apart within its bounds, or refused. */
#ifndef SONDE_STORE_TICKS_BLOB_H
#define SONDE_STORE_TICKS_BLOB_H

#include "base/buf.h"

enum { TICKS_BATCH_MAX = 1 << 16 }; /* ticks that are sealed together */

/* One tick: the numbers of its series, ascending and each once, and their values. */
struct tick_value {
    uint32_t series;
    double value;
};
void tick_put(struct buf *to, const struct tick_value *values, size_t n);

struct tick_cursor {
    struct str series, values; /* of those that are left */
    size_t left;
    uint32_t last;
};
bool tick_open(struct str blob, struct tick_cursor *ret);

/* 1: there is one, 0: no more, negative: these are not the bytes of a tick. */
int tick_next(struct tick_cursor *cursor, struct tick_value *ret);

/* The times of ticks that are sealed together, ascending. Reading: at most TICKS_BATCH_MAX. */
void sealed_put_times(struct buf *to, const int64_t *time, size_t n);
bool sealed_get_times(struct str blob, int64_t *time, size_t *ret_n);

/* One series: in which of these ticks it has a sample, ascending and at least one, and its values.
 * Reading: room for n_ticks of each. */
void sealed_put(struct buf *to, const uint32_t *tick, const double *value, size_t n);
bool sealed_get(struct str blob, size_t n_ticks, uint32_t *tick, double *value, size_t *ret_n);

#endif
