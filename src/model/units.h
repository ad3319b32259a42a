/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory, time and counts as the commands of every Slurm release print them. */
#ifndef SONDE_MODEL_UNITS_H
#define SONDE_MODEL_UNITS_H

#include "base/str.h"

#include <stdint.h>

/* "32000M", "1.50G", "150Mc" and "4Gn" (per CPU, per node: the letter is left out of the value and
 * told in *ret_per, 'c', 'n' or 0; ret_per may be NULL), "0". Slurm's M is MiB. `unit` is what a
 * bare number counts: 1 for bytes, 1 << 20 where Slurm prints MB without saying so.
 * False for "N/A", "(null)", "" and anything else that is no amount. */
bool units_memory(struct str text, uint64_t unit, uint64_t *ret_bytes, char *ret_per);

/* "1-02:03:04", "02:03:04", "03:04", "45" (minutes, as Slurm's limits are), in seconds. After days
 * come hours: "1-02", "1-02:03".
 * "UNLIMITED" and "INFINITE" give UNITS_UNLIMITED; false for NOT_SET, Partition_Limit, INVALID,
 * N/A. */
#define UNITS_UNLIMITED UINT64_MAX
bool units_time_limit(struct str text, uint64_t *ret_seconds);

/* Elapsed time: as above, but a bare number counts seconds, and "01:02.345" has a fraction. */
bool units_elapsed(struct str text, double *ret_seconds);

/* A point in time as SLURM_TIME_FORMAT=%s prints it (UTC seconds), or ISO "2026-11-15T20:24:05"
 * read as UTC. 0 or false for N/A, Unknown, NONE, (null). */
bool units_timestamp(struct str text, int64_t *ret_seconds);

/* "8", "1.50K", "12M": counts that Slurm's convert_num_unit() shortens unless --noconvert is given;
 * K is 1024, so that 1536 CPUs are printed as "1.50K". False for "64+", which is only a minimum. */
bool units_count(struct str text, uint64_t *ret);

/* "4/28/0/32": allocated, idle, other, total. */
bool units_aiot(struct str text, uint64_t ret[4]);

/* How many tasks "0-15:4%2", "1,3,5-9" or "7" stand for; false if it is none of these. A list cut
 * short by Slurm ("1,3,…" ending in "...") is false: a wrong number is worse than none. */
bool units_array_tasks(struct str text, uint64_t *ret_count);

/* True for what Slurm prints where there is no value: "", "N/A", "(null)", "none", "None",
 * "Unknown", "n/a", "NOT_SET", "INVALID", "UNKNOWN". */
bool units_absent(struct str text);

#endif
