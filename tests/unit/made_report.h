/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports of jobs that never were. All facts are set by hand, so that what is tested is the view.
 */
#ifndef SONDE_TESTS_MADE_REPORT_H
#define SONDE_TESTS_MADE_REPORT_H

#include "report/report.h"

/* One node, well used. */
void make_good(struct job_report *to, struct arena *arena);

/* Two nodes with four GPUs each, of which little is used; with findings, advice and plots. */
void make_wasteful(struct job_report *to, struct arena *arena);

/* What Slurm's accounting has of a job that failed. */
void make_accounted(struct job_report *to, struct arena *arena);

/* One that waits for two nodes. */
void make_waiting(struct job_report *to, struct arena *arena, const char *reason);

/* As the wasteful one, with that for every text that a user or a node has a part in. */
void make_hostile(struct job_report *to, struct arena *arena, struct str text);

/* Every number is 0. */
void make_zero(struct job_report *to, struct arena *arena);

/* 4,000 nodes with 64 cores each, 1,000 GPUs, 5,000 names of processes. */
void make_huge(struct job_report *to, struct arena *arena);

/* Tasks that took half an hour with one CPU; the 4th and 5th failed on node03, the 8th ran out of
 * memory, the 10th was slow. */
struct job_facts *make_array(struct arena *arena, size_t n_tasks);

void add_finding(struct job_report *to, struct arena *arena, const char *check,
                 const char *sentence);

#endif
