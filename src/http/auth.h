/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Basic authentication (RFC 7617) against bcrypt hashes. A check costs 60-240 ms of a processor, so
 * it runs on a thread of its own, once for each pair of name and password: verdicts are kept.
 * Everything here but the check itself happens on the HTTP thread. */
#ifndef SONDE_HTTP_AUTH_H
#define SONDE_HTTP_AUTH_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "http/webconfig.h"

struct auth;

enum auth_verdict {
    AUTH_RIGHT,
    AUTH_WRONG,
    AUTH_LATER, /* is being checked: the waiter will be told */
    AUTH_BUSY,  /* too many checks are under way */
};

/* Part of whatever waits for a verdict. */
struct auth_waiter {
    struct auth_waiter *next;
    bool must_not_wait; /* set before: AUTH_BUSY instead of AUTH_LATER */
    enum auth_verdict verdict;
    struct str user; /* when right; lives as long as the webconfig it was checked against */
};

/* `tell(ctx)` is called on the checking thread when there is something for auth_settle. */
int auth_new(const struct clock *clock, void (*tell)(void *ctx), void *ctx, struct auth **ret,
             struct err *err);

/* Stops the thread. Nobody is told any more. */
struct auth *auth_free(struct auth *auth);

/* What the Authorization header (p NULL: absent) is worth. client: any number that is the same for
 * requests of one client, none of whom may take up all of the queue. */
enum auth_verdict auth_check(struct auth *auth, struct webconfig *web, struct str header,
                             uint64_t client, struct auth_waiter *waiter);

/* The next check that is over: who waited for it, linked by next. False when there is none. */
bool auth_settle(struct auth *auth, struct auth_waiter **ret);

/* The passwords may have changed: no verdict counts any more. */
void auth_forget(struct auth *auth);

#endif
