/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who looks, and what they may see: a user their own jobs and totals without names, a coordinator
 * those of their accounts too, staff everything. docs/web.md. */
#ifndef SONDE_WEB_VIEWER_H
#define SONDE_WEB_VIEWER_H

#include "http/server.h"
#include "store/query.h"
#include "web/board.h"

/* How it is learned who looks. */
enum viewer_auth {
    VIEWER_NONE,  /* not at all: whoever gets through is staff; on loopback only, unless told so */
    VIEWER_BASIC, /* the users of --web.config.file */
    VIEWER_PROXY, /* a header of a proxy that is listed; anybody else is refused */
};

struct viewer_config {
    enum viewer_auth auth;
    struct str header;         /* of the proxy: "X-Remote-User" */
    const struct str *proxies; /* "10.0.0.0/8", "::1", "unix" */
    size_t n_proxies;
    const struct str *staff;
    size_t n_staff;
    const struct str *coordinators; /* "account:user" */
    size_t n_coordinators;
};

/* -EINVAL with a sentence: an address that is none, a proxy's header without a proxy, a coordinator
 * without an account. */
int viewer_config_check(const struct viewer_config *config, struct err *err);

struct viewer {
    struct str user; /* empty: nobody knows; then it is staff */
    bool is_staff;
    struct words accounts; /* that they coordinate */
};

/* What a request proves. -EACCES with a sentence: nobody may look like this. Texts are of the
 * exchange, the config and the arena. */
int viewer_of(const struct viewer_config *config, const struct http_exchange *x,
              struct arena *arena, struct viewer *ret, struct err *err);

bool viewer_may_see(const struct viewer *viewer, struct str user, struct str account);
bool viewer_may_see_user(const struct viewer *viewer, struct str user);
bool viewer_may_see_account(const struct viewer *viewer, struct str account);

/* Whether PrivateData of slurm.conf keeps that of a cluster from them, or may do so: what it says
 * is not told yet. */
bool viewer_is_denied(const struct viewer *viewer, const struct board_cluster *cluster,
                      enum private_data what);

/* That nothing newer is told of a cluster, and why as far as they may know; empty: it is. */
struct str viewer_trouble(const struct viewer *viewer, const struct board_cluster *cluster);

#endif
