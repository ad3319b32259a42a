/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names that a board has, kind by kind, as far as whoever looks may see them. */
#ifndef SONDE_WEB_SITE_NAMES_H
#define SONDE_WEB_SITE_NAMES_H

#include "web/html.h"
#include "web/site.h"

/* A kind of thing that has a name and a place to look at it. */
struct site_kind {
    const char *what, *several; /* "user", "Users" */
    const char *path;           /* before the name … */
    const char *argument;       /* … or the argument that it is; NULL: it is part of the path */

    /* Each name of one cluster, until `see` says so by false. */
    bool (*each)(const struct site_call *call, const struct board_cluster *cluster,
                 bool (*see)(void *ctx, struct str name), void *ctx);
};

enum { SITE_KINDS = 6 };
extern const struct site_kind site_kinds[SITE_KINDS];

/* Where it is shown, encoded; and a link to there. */
void site_kind_address(const struct site_kind *kind, struct str name, struct str cluster,
                       struct buf *to);
void site_kind_link(const struct site_kind *kind, struct str name, struct str cluster,
                    struct buf *to);

#endif
