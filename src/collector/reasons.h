/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why jobs wait, as squeue(1) tells under JOB REASON CODES, in words of which there are few. */
#ifndef SONDE_COLLECTOR_REASONS_H
#define SONDE_COLLECTOR_REASONS_H

#include "collector/groups.h"
#include "collector/top.h"

enum { REASONS_MOST = 100 }; /* shown; the rest is called other: a plugin's message is one too */

struct reasons {
    struct groups groups; /* without what differs from job to job; None where there is none */
    struct top_row *rows; /* by group: its pending jobs, every task of an array */
    size_t n, room;
};

void reasons_init(struct reasons *reasons, const struct section *section);
void reasons_free(struct reasons *reasons);

/* Counts all jobs that squeue calls PENDING, and only those. */
void reasons_add(struct reasons *reasons, const struct job *job);

static inline bool reasons_is_pending(const struct job *job)
{
    return job_state_index(job->state) == JOB_PENDING;
}

/* A reason that names nodes has this word instead. */
#define REASON_UNAVAILABLE_NODES STR("ReqNodeNotAvail, UnavailableNodes")

/* Only the cluster keeps such a job from starting: it is not held, depends on no other, is not to
 * begin later, and is within the limits of its account, QOS, partition and array. */
bool reason_is_the_cluster(struct str reason);

#endif
