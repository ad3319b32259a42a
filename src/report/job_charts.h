/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The charts of a job. */
#ifndef SONDE_REPORT_JOB_CHARTS_H
#define SONDE_REPORT_JOB_CHARTS_H

#include "report/time_chart.h"

enum job_chart {
    JOB_CHART_CPU,
    JOB_CHART_MEMORY,
    JOB_CHART_READ,
    JOB_CHART_WRITTEN,
    JOB_CHART_GPU,
    JOB_CHART_GPU_MEMORY,
    JOB_CHART_GPU_POWER,
    JOB_CHART_TIME,  /* user and system, as a pie */
    JOB_CHART_CORES, /* CPU time by core, as a pie; many cores as bars */
    JOB_CHARTS,
};

/* Also by the names that petricore has: "jobs_cpu_percent", "jobs_rss", "jobs_read_mb",
 * "jobs_write_mb". */
extern const char *const job_chart_names[JOB_CHARTS]; /* "cpu", "memory", … */
bool job_chart_find(struct str name, enum job_chart *ret);

/* False if there is nothing to draw. */
bool job_chart(struct chart *to, struct arena *arena, const struct job_facts *facts,
               enum job_chart which, double width, double height);

/* Of one over time, up to JOB_CHART_GPU_POWER: what is drawn of it. */
void job_chart_over_time(const struct job_facts *facts, enum job_chart which, struct arena *arena,
                         struct time_chart *ret);

#endif
