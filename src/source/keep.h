/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which jobs of a cluster are ours to tell of: on somebody else's cluster those of some accounts
 * and users. Patterns as base/pattern has them; they must match the whole name. */
#ifndef SONDE_SOURCE_KEEP_H
#define SONDE_SOURCE_KEEP_H

#include "base/err.h"
#include "model/section.h"

struct keep;

/* NULL in *ret if both are empty: all are. A job is kept if its account matches any pattern of
 * `accounts` or its user any of `users`. -EINVAL with a sentence. */
int keep_new(const struct str *accounts, size_t n_accounts, const struct str *users, size_t n_users,
             struct keep **ret, struct err *err);
struct keep *keep_free(struct keep *keep); /* returns NULL */

bool keep_has(const struct keep *keep, struct str account, struct str user); /* keep may be NULL */

/* Drops all other jobs of a section that nobody else has seen yet. */
void keep_jobs(const struct keep *keep, struct section *section);

#endif
