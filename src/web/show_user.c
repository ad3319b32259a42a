/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A user: jobs, efficiency, usage, fair share, limits, and what was wasted. */
#include "web/job_pages.h"
#include "web/job_people.h"

static int show(struct site_call *call)
{
    return people_show(call, false);
}

const struct site_page show_user = {
    .path = "/user/*",
    .needs = SITE_MAY_STORE,
    .show = show,
};
