/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a page of jobs is asked for: the filters, as they stand in its address and in its form. */
#ifndef SONDE_WEB_JOB_ASKED_H
#define SONDE_WEB_JOB_ASKED_H

#include "web/api_param.h"
#include "web/queue.h"
#include "web/site.h"

struct job_asked {
    struct api_request request;
    struct words reasons;
    struct str text;
    bool is_kept; /* everything that is kept, not the queue */
    enum queue_sort sort;
    bool is_descending;
    size_t offset;
};

/* Reads the query of the call; an empty value, which a form sends for each empty field, is none.
 * 400 with a sentence, or 403 if it names a user or an account that may not be seen. */
int job_asked_read(struct site_call *call, struct job_asked *ret);

/* The form with what was asked in its fields. */
void job_asked_form(struct site_call *call, const struct job_asked *asked);

/* The address of this page without the arguments named, ended by NULL, for one to be added; in the
 * arena. */
struct str job_asked_address(struct site_call *call, const char *const *without);

#endif
