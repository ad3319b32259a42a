/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has posted what, and for how long it counts: users, their jobs, the processes of each. Used
 * under the lock of source/trace.c. */
#ifndef SONDE_SOURCE_TRACE_STORE_H
#define SONDE_SOURCE_TRACE_STORE_H

#include "base/list.h"
#include "base/ranking.h"
#include "source/trace.h"
#include "source/trace_body.h"

enum { TRACE_NAME_MAX = 255 }; /* bytes of a user's name */

/* What is found by a key begins with this. */
struct keyed {
    struct keyed *next;
    uint64_t hash;
    struct str key; /* its own copy */
};

struct trace_user {
    struct keyed keyed;
    struct trace_identity who;
    double tokens; /* posts that he may send at once */
    int64_t tokens_at_ns;
    unsigned n_holds; /* his groups, and whoever is busy with him */
    struct link idle; /* while nobody holds him, */
    int64_t idle_since_ns;
    struct list fresh; /* his senders, the one longest silent first */
    size_t n_fresh;
    struct ranked weight; /* while there are any */
};

/* One user's senders for one job. Another user's posts for the same job are another group, so that
 * a stranger can't fill up the owner's. */
struct trace_group {
    struct keyed keyed;
    struct trace_user *user;
    uint32_t job_id;
    unsigned n_holds; /* its senders, and whoever is busy with it */
    struct link all;
    struct list fresh;
    size_t n_fresh;
};

/* A sender: a process that posts. */
struct trace_process {
    struct keyed keyed;
    struct trace_group *group;
    struct str host;
    double pid;
    struct trace_amounts amounts; /* as told last */
    int64_t fresh_since_ns, told_at_ns, ends_at_ns;
    struct ranked end; /* while fresh, as the next */
    struct link of_group;
    struct link of_user; /* while fresh; then of the store's stale ones */
};

struct trace_store {
    struct trace_config config;
    struct keyed **slots; /* of all users, groups and senders */
    size_t n_slots, n_keyed;
    struct list groups;
    struct ranking ends;    /* fresh senders */
    struct ranking weights; /* users with fresh senders, the heaviest first */
    struct list stale;      /* senders whose period is remembered; the first goes first */
    struct list idle;       /* users */
    size_t n_senders, n_users;
    uint64_t n_displaced;
};

void trace_store_init(struct trace_store *store, const struct trace_config *config);
void trace_store_free(struct trace_store *store);
void trace_store_tune(struct trace_store *store, const struct trace_config *config, int64_t now_ns);

/* What has had its time goes. */
void trace_store_expire(struct trace_store *store, int64_t now_ns);

/* The user, known or new, who stays at least until trace_store_leave. NULL: there are too many. */
struct trace_user *trace_store_enter(struct trace_store *store, const struct trace_identity *who);
void trace_store_leave(struct trace_store *store, struct trace_user *user, int64_t now_ns);

/* -ENOSPC if there is no room for another sender. */
int trace_store_keep(struct trace_store *store, struct trace_user *user,
                     const struct trace_body *body, int64_t now_ns, struct err *err);

/* Root and anybody: no limit on how many of the senders are theirs. */
bool trace_user_is_trusted(const struct trace_user *user);

#endif
