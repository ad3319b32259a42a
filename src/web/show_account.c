/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An account: the same as of a user, of all who are in it. */
#include "web/job_pages.h"
#include "web/job_people.h"

static int show(struct site_call *call)
{
    return people_show(call, true);
}

const struct site_page show_account = {
    .path = "/account/*",
    .needs = SITE_MAY_STORE,
    .show = show,
};
