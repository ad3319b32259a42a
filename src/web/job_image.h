/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sonde-report makes of a job: PNG and PDF. */
#ifndef SONDE_WEB_JOB_IMAGE_H
#define SONDE_WEB_JOB_IMAGE_H

#include "web/job_find.h"

/* Writes it to call->out; `form` and `more` (or NULL) say what is wanted, as flags of sonde-report.
 * Returns as site_page's make. */
int job_image_by_child(struct site_call *call, const struct job_found *found, const char *form,
                       const char *more);

#endif
