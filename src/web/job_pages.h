/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pages of jobs and people, and what else there is at their addresses. */
#ifndef SONDE_WEB_JOB_PAGES_H
#define SONDE_WEB_JOB_PAGES_H

#include "web/site.h"

extern const struct site_page show_jobs, show_job, show_array, show_user, show_account;

/* Of one job: images, numbers over time, and the report in other forms. */
extern const struct site_page show_plot, show_pie, show_series, show_report, show_pdf, show_mail,
    show_usage;

/* /api/v1/users/NAME, as petricore has it. */
extern const struct site_page show_petricore_user;

#endif
