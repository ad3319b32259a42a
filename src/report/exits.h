/* SPDX-License-Identifier: GPL-2.0-or-later */
/* With what a run ended, in words. */
#ifndef SONDE_REPORT_EXITS_H
#define SONDE_REPORT_EXITS_H

#include "base/buf.h"
#include "model/record.h"

/* What Slurm has in place of a signal where a step ran out of memory: 0:125. */
bool exit_is_out_of_memory(const struct job_record *record);

/* "exit code 1", "signal 11 (SIGSEGV)", "out of memory"; nothing if that is not known. */
void exit_put(struct buf *to, const struct job_record *record);

#endif
