/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a job's page. */
#ifndef SONDE_WEB_JOB_PARTS_H
#define SONDE_WEB_JOB_PARTS_H

#include "report/outline.h"
#include "web/job_find.h"

/* From submit to end: a bar, and the list of what happened, with reasons. */
void job_put_life(struct site_call *call, const struct job_facts *facts);

/* What it was given beside what it used. */
void job_put_meters(struct site_call *call, const struct outline *outline);

void job_put_findings(struct site_call *call, const struct job_report *report,
                      const struct outline *outline);
void job_put_advice(struct site_call *call, const struct advice *advice, struct str gain);

/* Images of all that can be drawn of it, or why there are none. */
void job_put_charts(struct site_call *call, const struct job_found *found,
                    const struct job_facts *facts);

/* The rest of the outline, people and nodes as links. */
void job_put_sections(struct site_call *call, const struct job_facts *facts,
                      const struct outline *outline);

/* One finding as an item of a list. */
void job_put_finding(struct site_call *call, enum severity severity, struct str sentence,
                     struct str link);

#endif
