/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a job's CPU time was divided: between the program and the kernel, and over cores. */
#ifndef SONDE_REPORT_CORE_CHARTS_H
#define SONDE_REPORT_CORE_CHARTS_H

#include "report/chart.h"
#include "report/facts.h"

/* Whether there is CPU time to draw: more than would be written as 0 s. */
bool time_pie_has_data(const struct job_facts *facts);
bool core_chart_has_data(const struct job_facts *facts);

/* Both draw into a chart that has its size; false if there is nothing to draw. */
bool time_pie(struct chart *to, const struct job_facts *facts);

/* A pie of up to CORE_WEDGES cores, else bars; of very many the busiest first, in groups. */
enum { CORE_WEDGES = 12 };
bool core_chart(struct chart *to, const struct job_facts *facts);

#endif
