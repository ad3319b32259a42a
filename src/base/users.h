/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of users and of their groups, through one thread, so that a slow directory (LDAP, sssd)
 * costs nobody else a wait: an unknown number is answered with its digits at once, and with its
 * name as soon as the directory has given it. Names are kept for an hour and then asked for again
 * in the background; "no such user" and failures are kept for a minute. */
#ifndef SONDE_BASE_USERS_H
#define SONDE_BASE_USERS_H

#include "base/clock.h"

#include <sys/types.h>

enum { USERS_NAME_MAX = 64 }; /* longer names are cut */

struct users;

/* How names are looked up, on the thread; a test puts its own. Writes a name ended by NUL and
 * returns true, or false when there is none or the directory does not answer: the two can't be told
 * apart through sssd. `ctx` must outlive a lookup that is under way when users_free is called. */
struct users_lookup {
    bool (*user)(void *ctx, uid_t uid, char name[USERS_NAME_MAX]);
    bool (*group)(void *ctx, gid_t gid, char name[USERS_NAME_MAX]);
    bool (*own_group)(void *ctx, uid_t uid, gid_t *ret); /* a user's primary one */
    void *ctx;
};

extern const struct users_lookup users_system; /* getpwuid_r, getgrgid_r */

/* The uid of a name, without the thread: waits for the directory. -ENOENT: there is no such user;
 * or another -errno. */
int users_find(const char *name, uid_t *ret);

struct users *users_new(const struct users_lookup *lookup, const struct clock *clock);

/* Does not wait for a lookup that hangs: its thread is left behind and frees its memory when the
 * directory ever answers. */
struct users *users_free(struct users *users);

/* Never waits. Writes the name, or the number in digits while the name is unknown. True if it is
 * the name. A name once known is given until a newer one takes its place. */
bool users_user(struct users *users, uid_t uid, char name[USERS_NAME_MAX]);

/* Of the user's primary group: its name, its number where it has none (which is kept as briefly as
 * a failure), or nothing ("") while the user is unknown. True if it is not that. */
bool users_own_group(struct users *users, uid_t uid, char name[USERS_NAME_MAX]);

/* For tests, one-shot commands and threads that may: waits until every question asked so far has
 * been answered, but not past the deadline (monotonic). False if it came first. */
bool users_settle(struct users *users, int64_t deadline_ns);

#endif
