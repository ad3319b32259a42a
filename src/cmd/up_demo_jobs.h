/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What simulated jobs use, as series and as records of the store. */
#ifndef SONDE_CMD_UP_DEMO_JOBS_H
#define SONDE_CMD_UP_DEMO_JOBS_H

#include "record/seen.h"
#include "source/sim_use.h"
#include "store/ticks.h"

/* Samples of all jobs of the section that run at that time, as of that cluster. Lives in the arena.
 */
void up_demo_samples(const struct sim *sim, struct str cluster, const struct section *jobs,
                     int64_t time, struct arena *arena, struct tick_sample **ret, size_t *ret_n);

/* Records of those that have ended, with what they used as accounting would tell it. Texts are the
 * section's. */
void up_demo_ended(const struct sim *sim, const struct section *jobs, int64_t time,
                   struct arena *arena, struct job_record **ret, size_t *ret_n);

#endif
