/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's statistics start again at midnight UTC and whenever somebody resets them. This keeps
 * counters of them that only ever grow. */
#ifndef SONDE_SNAPSHOT_COUNTERS_H
#define SONDE_SNAPSHOT_COUNTERS_H

#include "model/section.h"

struct counters;

struct counters *counters_new(void);
struct counters *counters_free(struct counters *counters); /* returns NULL */

/* Takes a fresh section of statistics and fills in its `running`. */
void counters_note(struct counters *counters, struct section *section);

#endif
