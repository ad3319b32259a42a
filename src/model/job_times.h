/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a job of the queue began and ended. Slurm tells both also of what is still to come. */
#ifndef SONDE_MODEL_JOB_TIMES_H
#define SONDE_MODEL_JOB_TIMES_H

#include "model/job.h"

/* 0: it has not, or nobody told. Of a job that waits, Slurm tells when it expects it to start; of
 * one whose nodes have yet to boot, a time that will be another when they are up; of one that was
 * cancelled while it waited, and so had no nodes, its end. */
static inline int64_t job_began(const struct job *job)
{
    bool is_expected = job->state.base == JOB_PENDING ||
                       job->state.flags & (JOB_CONFIGURING | JOB_POWER_UP_NODE) ||
                       (job->state.base == JOB_BASE_UNKNOWN && !job_holds_resources(job->state));
    bool is_end = !job->nodes && !job_holds_resources(job->state);

    return is_expected || is_end ? 0 : job->start_time;
}

/* Likewise. Of a job that runs, Slurm tells when its time will be over. */
static inline int64_t job_ended(const struct job *job)
{
    return job->state.base >= JOB_COMPLETED && job->state.base < JOB_BASE_UNKNOWN ? job->end_time
                                                                                  : 0;
}

#endif
