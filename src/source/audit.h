/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A few columns of what sacct(1), sreport(1) and sacctmgr(1) print, for checking a store against
 * slurmdbd. It shares no reader with source/sacct: a fault there must not hide on both sides. No
 * column can hold text of users, so lines are cut at bars. */
#ifndef SONDE_SOURCE_AUDIT_H
#define SONDE_SOURCE_AUDIT_H

#include "base/err.h"
#include "base/str.h"
#include "source/source.h"

#include <stdatomic.h>

struct audit;

struct audit_config {
    struct source_settings source; /* conf, bin_path, prefix, max_answer */
    int64_t timeout_ns;            /* for one command */
    const atomic_bool *cancelled;
};

/* Of the cluster of slurm.conf. -EINVAL with a sentence if the prefix is not a command line. */
int audit_new(const struct audit_config *config, struct audit **ret, struct err *err);
struct audit *audit_free(struct audit *audit); /* returns NULL */

/* A run, or the tasks of an array that were never started on their own. Texts are valid during the
 * call. */
struct audit_job {
    uint32_t id, tasks;
    int64_t submit, start, end; /* UTC seconds; 0: not yet, or never */
    uint64_t elapsed, suspended;
    uint64_t cpus, gpus, billing; /* allocated */
    struct str state;             /* one word */
    struct str account, user, partition;
};

/* Runs that were pending, running or ended in [from, to), ended ones with any state, some of them
 * twice. A negative return of `job` stops and is passed on. */
int audit_jobs(struct audit *audit, int64_t from, int64_t to,
               int (*job)(void *ctx, const struct audit_job *job), void *ctx, struct err *err);

enum audit_tres { AUDIT_CPU, AUDIT_GPU, AUDIT_BILLING, AUDIT_TRES };
extern const struct str audit_tres_names[AUDIT_TRES]; /* "cpu", as sreport calls them */

/* What sreport has for a user in an account, in TRES-seconds; from and to are full hours. */
struct audit_used {
    struct str account, user;
    enum audit_tres tres;
    uint64_t seconds;
};
int audit_usage(struct audit *audit, int64_t from, int64_t to,
                int (*used)(void *ctx, const struct audit_used *used), void *ctx, struct err *err);

/* Whether slurmdbd has rolled up the hour that begins then. */
int audit_is_rolled_up(struct audit *audit, int64_t hour, bool *ret, struct err *err);

/* Idle time of a reservation, and the ids of the associations that it is divided among ("3,4"). */
struct audit_idle {
    struct str associations;
    enum audit_tres tres;
    uint64_t seconds;
};
int audit_idle(struct audit *audit, int64_t from, int64_t to,
               int (*idle)(void *ctx, const struct audit_idle *idle), void *ctx, struct err *err);

/* Of a cluster, as slurmdbd calls it. An association without a user is the account's own. */
struct audit_association {
    uint64_t id;
    struct str account, user;
};
int audit_associations(struct audit *audit, struct str cluster,
                       int (*association)(void *ctx, const struct audit_association *association),
                       void *ctx, struct err *err);

/* slurmdbd's own settings. */
struct audit_settings {
    int64_t purge_seconds; /* jobs that ended longer ago are deleted; 0: none are */
    bool hides_jobs;       /* PrivateData has jobs or usage */
};
int audit_settings(struct audit *audit, struct audit_settings *ret, struct err *err);

#endif
