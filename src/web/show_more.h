/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists that can be long: a page shows their first rows, and one of them to its end where the
 * address asks for it, ?full=WORD. To its end is SHOW_FULL rows at most. */
#ifndef SONDE_WEB_SHOW_MORE_H
#define SONDE_WEB_SHOW_MORE_H

#include "web/site.h"

enum { SHOW_FEW = 20, SHOW_FULL = 200 };

struct show_list {
    const char *word;   /* in the address: "users" */
    const char *things; /* for a person: "users" */
    size_t few;         /* rows that are shown where it is not asked for */
};

/* How many rows are to be shown. */
size_t show_most(const struct site_call *call, const struct show_list *list);

/* An attribute of what stands around the list, by which the link below finds it: " id=\"full\"", or
 * nothing. */
const char *show_list_id(const struct site_call *call, const struct show_list *list);

/* Below the list, if `n` are more than were shown: a link to all of them, or how many there are.
 * The cluster is an argument of the link; it may be empty. */
void show_rest(struct site_call *call, const struct show_list *list, size_t n, struct str cluster);

#endif
