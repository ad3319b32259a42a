/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a job waits, in words: Slurm gives a reason of one word, which not everybody knows. */
#ifndef SONDE_REPORT_WAITING_H
#define SONDE_REPORT_WAITING_H

#include "base/buf.h"
#include "model/record.h"

bool waiting_is(const struct job_record *record);

/* One sentence; nothing for a job that does not wait, or of which no reason is known. */
void waiting_put(struct buf *to, const struct job_record *record);

#endif
