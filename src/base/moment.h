/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moments as people write and read them, in the time zone of the reader (TZ): the forms of sacct(1)
 * that are in use, and RFC 3339. */
#ifndef SONDE_BASE_MOMENT_H
#define SONDE_BASE_MOMENT_H

#include "base/buf.h"
#include "base/err.h"

/* "2026-10-01", "2026-10-01T12:00", "2026-10-01T12:00:30", "2026-10" (its first day), a zone behind
 * an hour if it is another one ("Z", "+02:00"), "12:00" (of today), "today", "midnight", "noon",
 * "tomorrow", "yesterday", "now", "now-1day", "now+2hours", "@1790812800", "1790812800". Units are
 * seconds, minutes, hours, days and weeks, also as their first letters; a day is 24 hours. A local
 * time that comes twice, when clocks are put back, is the first of the two; one that never comes,
 * when they are put forward, is as far behind the change as it says. -EINVAL with a sentence. */
int moment_parse(struct str text, int64_t now, int64_t *ret, struct err *err);

/* "2026-10-01T12:00:30", and that with the offset from UTC: "2026-10-01T12:00:30+02:00". */
void moment_put(struct buf *out, int64_t moment);
void moment_put_zoned(struct buf *out, int64_t moment);

#endif
