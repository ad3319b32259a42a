/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections made from lines of text. A line is a record: first the words that it must have, then
 * fields that differ from the defaults, in any order.
 *
 *     jobs_from("RUNNING cpus=8\n"
 *               "PENDING tasks=50 user=bob reason='Reserved for maintenance'\n");
 *
 * The fields are those of model/fields.c, without their units if you like: memory=16G is
 * memory_bytes, up=no is_up. A table in sections.c has the defaults. An unknown word or an invalid
 * value fails the test and names the line. A value with spaces or line ends is quoted.
 *   unknown            a number that the source does not tell
 *   submit=-1h         a time relative to sections_now; without a sign, UTC seconds
 *   * cpus=4 qos=high  defaults for the lines that follow, until the end of the text
 */
#ifndef SONDE_TESTS_SECTIONS_H
#define SONDE_TESTS_SECTIONS_H

#include "test.h"

#include "base/err.h"
#include "model/section.h"

/* UTC seconds: the time of the sections. A test program that needs another time defines it. */
extern int64_t sections_now;

#define SECTIONS_FORMAT(n) __attribute__((format(printf, n, n + 1)))

/* jobs: STATE field=… | gpus JOB NODE INDEXES
 * nodes: NAME STATE cpus=ALLOCATED/IDLE/OTHER/ALL partitions=NAMES field=… | partition NAME field=…
 * licenses: NAME field=…
 * reservations: NAME field=…
 * associations: ACCOUNT field=… | qos NAME | limit KIND LIMIT USED field=…, of the line before
 * shares: ACCOUNT field=… */
struct section *jobs_from(const char *lines, ...) SECTIONS_FORMAT(1);
struct section *nodes_from(const char *lines, ...) SECTIONS_FORMAT(1);
struct section *licenses_from(const char *lines, ...) SECTIONS_FORMAT(1);
struct section *reservations_from(const char *lines, ...) SECTIONS_FORMAT(1);
struct section *associations_from(const char *lines, ...) SECTIONS_FORMAT(1);
struct section *shares_from(const char *lines, ...) SECTIONS_FORMAT(1);

/* Adds records to a section that one of the functions above has made. Its arrays may move. */
void section_add(struct section *section, const char *lines, ...) SECTIONS_FORMAT(2);

/* Like section_add, but returns the error. */
int section_read(struct section *section, struct str lines, struct err *err);

#endif
