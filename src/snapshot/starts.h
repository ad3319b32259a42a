/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notices which jobs have started since the last look, and keeps a histogram of how long they had
 * waited. squeue shows a job for some minutes after its end (MinJobAge), so that short ones are
 * seen too if somebody looks that often. */
#ifndef SONDE_SNAPSHOT_STARTS_H
#define SONDE_SNAPSHOT_STARTS_H

#include "model/section.h"

struct starts;

struct starts *starts_new(void);
struct starts *starts_free(struct starts *starts); /* returns NULL */

/* Takes a fresh section of jobs and fills in its `wait`. */
void starts_note(struct starts *starts, struct section *section);

#endif
