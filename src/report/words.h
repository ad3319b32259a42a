/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Amounts as people read them. Each writes nothing for what is not a finite number: unknown. */
#ifndef SONDE_REPORT_WORDS_H
#define SONDE_REPORT_WORDS_H

#include "base/buf.h"

void words_bytes(struct buf *to, double bytes); /* "0 B", "512 B", "4.8 GiB", "32 GiB" */
void words_duration(struct buf *to,
                    double seconds);              /* "0.25 s", "45 s", "02:30:05", "1 d 02:30:05" */
void words_number(struct buf *to, double number); /* "0.04", "3.2", "32", "1,234,567" */
void words_fraction(struct buf *to, double number); /* "0.2029", "1.0000", "31,250": as sshare */
/* As words_number, but of what is below 1 three digits count: "0.00183", "0.25", "3.2" */
void words_part(struct buf *to, double number);
void words_percent(struct buf *to, double ratio); /* "0.4 %", "32 %", "100 %" */

/* Whether it would be told as 0. */
bool words_are_none(double number);
bool words_are_no_percent(double ratio);

/* "2026-10-01 12:00:30" in the reader's zone; nothing for 0, which is unknown. */
void words_time(struct buf *to, int64_t moment);

#endif
