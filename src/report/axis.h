/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scales of a chart: where marks stand along an axis, and what is written at them. */
#ifndef SONDE_REPORT_AXIS_H
#define SONDE_REPORT_AXIS_H

#include "base/buf.h"

enum axis_unit {
    AXIS_NUMBER,
    AXIS_BYTES,
    AXIS_BYTES_PER_SECOND,
    AXIS_RATIO,
    AXIS_WATTS,
    AXIS_SECONDS,
};

/* From 0 to `most`, a mark every `step`: 1, 2 or 5 times a power of ten of a unit for people, which
 * is binary for bytes. */
struct axis {
    enum axis_unit unit;
    double most, step;
    const struct axis_rung *rung; /* KiB, MiB, …: the same at all marks */
};

/* At least as high as `highest`, with `n_steps` steps at most. */
void axis_init(struct axis *axis, enum axis_unit unit, double highest, size_t n_steps);
void axis_put(struct buf *to, const struct axis *axis, double value); /* "0", "1.5 GiB/s", "20 %" */

/* Moments at which to mark a time: whole minutes, hours or days of the reader's zone. */
enum { AXIS_MOMENTS = 64 };
struct axis_moments {
    int64_t step_seconds;
    int64_t moment[AXIS_MOMENTS];
    size_t n;
};

/* `most` at most, of begin … end; with begin < end. */
void axis_moments(struct axis_moments *ret, int64_t begin, int64_t end, size_t most);

void axis_put_clock(struct buf *to, int64_t moment, int64_t step_seconds); /* "12:30", "16 Nov" */
void axis_put_date(struct buf *to, int64_t moment);                        /* "16 Nov 2026" */
void axis_put_zone(struct buf *to, int64_t moment); /* "CET (UTC+01:00)", "UTC", "UTC-03:00" */
bool axis_is_same_day(int64_t a, int64_t b);

#endif
