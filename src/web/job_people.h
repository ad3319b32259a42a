/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What there is to say of a user or of an account: what they have in the queue, what they used of
 * late and how well, what they are entitled to, and what they wasted. */
#ifndef SONDE_WEB_JOB_PEOPLE_H
#define SONDE_WEB_JOB_PEOPLE_H

#include "web/site.h"

struct job_people {
    struct site_call *call;
    struct str name;
    bool is_account;
};

/* The filter of their jobs, of what who looks may see. */
void people_filter(const struct job_people *people, struct job_filter *ret);

/* Sections of the page; the last is of the last 30 days. */
void people_put_shares(const struct job_people *people);
void people_put_limits(const struct job_people *people);
int people_put_waste(const struct job_people *people);

/* The page of either. */
int people_show(struct site_call *call, bool is_account);

#endif
