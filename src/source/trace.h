/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What jobs say of their own processes (POST /trace), kept while it is fresh. Safe to use from
 * several threads. docs/trace.md has the schema of a post. */
#ifndef SONDE_SOURCE_TRACE_H
#define SONDE_SOURCE_TRACE_H

#include "base/clock.h"
#include "base/err.h"
#include "model/section.h"

enum {
    TRACE_BODY_MAX = 64 * 1024,
    TRACE_ANYBODY = UINT32_MAX, /* a sender who need not prove who he is */
};

struct trace_config {
    int64_t life_ns; /* a post lives this long, or 2.5 times its sender's period if that is more */
    size_t max_senders;         /* of all jobs: hosts and tasks that post */
    size_t max_senders_per_job;
    unsigned max_posts_per_second; /* of all senders together */
    const struct clock *clock;
};

struct trace;

struct trace *trace_new(const struct trace_config *config);
struct trace *trace_free(struct trace *trace); /* returns NULL */
void trace_tune(struct trace *trace, const struct trace_config *config);

/* Takes a post, which is JSON, from the user with that number. `jobs` is the newest section of jobs
 * or NULL. 0; 1 when it is kept but not shown yet, because the job is not known to be in the queue;
 * -EBADMSG (not what a post must be), -EACCES (somebody else's job), -EBUSY (too often: come back
 * later), -ENOSPC (too many senders). */
int trace_post(struct trace *trace, struct str body, uint32_t uid, const struct section *jobs,
               struct err *err);

/* What is fresh of the jobs that are in the queue, as a KIND_TRACES section. */
struct section *trace_section(struct trace *trace, const struct section *jobs);

struct trace_stats {
    size_t senders;
    uint64_t posts, refused;
};
void trace_stats(struct trace *trace, struct trace_stats *ret);

#endif
