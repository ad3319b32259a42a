/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a step's samples are told: at its frequency, and less often to a server that is in trouble,
 * by steps that do not all come back at once. */
#ifndef SONDE_PLUGIN_PACE_H
#define SONDE_PLUGIN_PACE_H

#include <stdint.h>

enum { PACE_LONGEST_SECONDS = 300 }; /* unless the frequency is longer */

/* Before the first turn. `random` is any number. */
int64_t pace_first_ns(unsigned frequency_seconds, uint32_t random);

/* From the beginning of a turn to that of the next: the frequency, also after one failure; then
 * twice as long for each in a row, less a random quarter. */
int64_t pace_next_ns(unsigned frequency_seconds, unsigned failures, uint32_t random);

#endif
