/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as text and back, the same in every locale. Doubles are written in the shortest form that
 * reads back as the same value (Raffaello Giulietti, "The Schubfach way to render doubles"). */
#ifndef SONDE_BASE_NUM_H
#define SONDE_BASE_NUM_H

#include "base/str.h"

#include <stdint.h>

enum { NUM_U64_MAX = 20, NUM_DOUBLE_MAX = 32 };

/* Write at `to`, which has room for the maximum above; return the length. No NUL. */
size_t num_put_u64(char *to, uint64_t value);
size_t num_put_double(char *to, double value); /* NaN, +Inf, -Inf as Prometheus spells them */

/* The whole of s must be the number: no sign on unsigned, no space, no rest, no overflow. */
bool num_get_u64(struct str s, uint64_t *ret);
bool num_get_i64(struct str s, int64_t *ret);
bool num_get_double(struct str s, double *ret);

/* "10", "10s", "5m", "1h30m", "250ms", "1d" as nanoseconds; a bare number counts seconds. */
bool num_get_duration_ns(struct str s, int64_t *ret);

/* "512", "64K", "16M", "2G", "2GiB" as bytes; K, M, G, T are powers of 1024. */
bool num_get_bytes(struct str s, uint64_t *ret);

#endif
