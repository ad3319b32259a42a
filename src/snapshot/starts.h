/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds jobs that have started since the last poll, and counts how long they were pending. squeue
 * shows a job for some minutes after its end (MinJobAge): one that is gone before the next poll is
 * missing. With a store, src/store/waits.c counts instead. */
#ifndef SONDE_SNAPSHOT_STARTS_H
#define SONDE_SNAPSHOT_STARTS_H

#include "model/section.h"

struct starts;

struct starts *starts_new(void);
struct starts *starts_free(struct starts *starts); /* returns NULL */

/* Takes a fresh section of jobs and fills in its `wait`. */
void starts_note(struct starts *starts, struct section *section);

#endif
