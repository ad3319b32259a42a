/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What jobs say of their own processes (POST /trace), kept while it is fresh. Safe to use from
 * several threads. docs/trace.md has the schema of a post and the rules. */
#ifndef SONDE_SOURCE_TRACE_H
#define SONDE_SOURCE_TRACE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/users.h"
#include "model/section.h"

enum {
    TRACE_BODY_MAX = 64 * 1024,

    /* Limits that suit an exporter; a sender is a process that posts. */
    TRACE_SENDERS = 65536,
    TRACE_SENDERS_PER_USER = 32768,
    TRACE_SENDERS_PER_JOB = 16384,
    TRACE_POSTS_PER_SECOND = 4000,
    TRACE_POSTS_PER_SECOND_PER_USER = 2000,
};

struct trace_config {
    int64_t life_ns; /* a post lives this long, or 2.5 times its sender's period if that is more */
    size_t max_senders;
    size_t max_senders_per_user, max_senders_per_job;
    unsigned max_posts_per_second; /* on average over 10 s, as the next one */
    unsigned max_posts_per_second_per_user;
    struct users *users; /* where the jobs do not tell their owners' numbers; or NULL */
    const struct clock *clock;
};

struct trace;

struct trace *trace_new(const struct trace_config *config);
struct trace *trace_free(struct trace *trace); /* returns NULL */
void trace_tune(struct trace *trace, const struct trace_config *config);

/* The user who sends a post, as far as he has proved who he is. */
struct trace_identity {
    enum {
        TRACE_ANYBODY, /* is taken at his word */
        TRACE_UID,     /* that of root may speak for every job */
        TRACE_NAME,
    } proof;
    uint32_t uid;
    struct str name;
    bool is_admitted; /* trace_admit has let this post through */
};

/* Counts a post among those of all senders, before it is looked at: where finding out who sends it
 * is a burden to others. -EBUSY, as below. Waits for nothing. */
int trace_admit(struct trace *trace, struct err *err);

/* The post that was let through came to nothing: it does not count. */
void trace_readmit(struct trace *trace);

/* Takes a post, which is JSON. `jobs` is the newest section of jobs or NULL. 0: it is shown; 1: it
 * is kept, but not shown before the job is known to be in the queue and the sender's. -EBADMSG (not
 * what a post must be), -EFBIG, -EACCES (somebody else's job), -EBUSY (too often: come back in a
 * second), -ENOSPC (too many senders). */
int trace_post(struct trace *trace, struct str body, const struct trace_identity *who,
               const struct section *jobs, struct err *err);

/* What is fresh of the jobs that are in the queue, as a KIND_TRACES section: by job, its hosts by
 * name. */
struct section *trace_section(struct trace *trace, const struct section *jobs);

/* Why a post was not taken. */
enum trace_refusal {
    TRACE_GARBLED,
    TRACE_UNPROVED, /* no proof of who sent it, or none that could be checked */
    TRACE_DENIED,   /* the job is another's, or the proof is forged or was used before */
    TRACE_TOO_OFTEN,
    TRACE_TOO_MANY,
    TRACE_REFUSALS,
};
extern const char *const trace_refusal_words[TRACE_REFUSALS]; /* for the `reason` label */

/* Counts a post that was refused before it came here. */
void trace_refuse(struct trace *trace, enum trace_refusal why);

struct trace_stats {
    size_t senders;     /* fresh ones, also of jobs that are not shown */
    uint64_t posts;     /* taken */
    uint64_t displaced; /* fresh senders dropped to make room for another user's */
    uint64_t refused[TRACE_REFUSALS];
};
/* Never waits. */
void trace_stats(struct trace *trace, struct trace_stats *ret);

#endif
