/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurmdbd knows of jobs, by sacct(1). Each field ends with a token made for this one
 * invocation, and stands in an order made for it: the token is seen by whoever looks at the list of
 * processes, the order is not, so nobody can write a record into a job's name. */
#ifndef SONDE_SOURCE_SACCT_H
#define SONDE_SOURCE_SACCT_H

#include "base/clock.h"
#include "base/err.h"
#include "source/sacct_answer.h"
#include "source/source.h"

struct sacct;

/* Uses the commands' settings: conf, bin_path, prefix, max_answer. -EINVAL with a sentence if the
 * prefix is not a command line. */
int sacct_new(const struct source_settings *settings, struct sacct **ret, struct err *err);
struct sacct *sacct_free(struct sacct *sacct); /* returns NULL */

struct sacct_question {
    int64_t from, to;    /* jobs that waited, ran or ended in this time; */
    const uint32_t *ids; /* or, if there are any, these jobs whatever their time */
    size_t n_ids;
    struct str cluster;  /* another than the one of Slurm's settings, by its name in slurmdbd; or
                            empty */
    int64_t as_of;       /* what time it is: of all records */
    int64_t deadline_ns; /* monotonic, clock_real */
    const atomic_bool *cancelled;

    /* Gets each run with what its steps used; texts are valid during the call. A negative answer
     * stops and is passed on. */
    int (*record)(void *ctx, const struct job_record *record, struct err *err);
    void *ctx;
};

struct sacct_result {
    struct sacct_counts counts; /* with records that could not be read */
    uint64_t bytes;
    char warning[SOURCE_WARNING]; /* what sacct said while it answered; or empty */
};

/* -ENOENT: there is no sacct; -EOPNOTSUPP: this cluster keeps no accounting; -E2BIG: slurmdbd
 * refuses so wide a time (MaxQueryTimeRange), or the answer passes the ceiling: ask for less;
 * -ETIMEDOUT; -EACCES: hidden from us; -EINVAL: no cluster has such a name. Requeued runs are all
 * told, each by itself. */
int sacct_ask(struct sacct *sacct, const struct sacct_question *question, struct sacct_result *ret,
              struct err *err);

#endif
