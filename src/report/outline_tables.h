/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of a report's outline. */
#ifndef SONDE_REPORT_OUTLINE_TABLES_H
#define SONDE_REPORT_OUTLINE_TABLES_H

#include "report/outline.h"

enum { OUTLINE_TEXT_MAX = 200 }; /* columns of what a user may have written */

void outline_nodes(struct outline_table *to, struct arena *arena, const struct job_facts *facts);
void outline_cores(struct outline_table *to, struct arena *arena, const struct job_facts *facts);
void outline_gpus(struct outline_table *to, struct arena *arena, const struct job_facts *facts);
void outline_processes(struct outline_table *to, struct arena *arena,
                       const struct job_facts *facts);
void outline_life(struct outline_table *to, struct arena *arena, const struct job_facts *facts);

#endif
