/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurmdbd knows of jobs, by sacct(1). Each field ends with a token made for this one
 * invocation, and stands in an order made for it: the token is seen by whoever looks at the list of
 * processes, the order is not, so nobody can write a record into a job's name. */
#ifndef SONDE_SOURCE_SACCT_H
#define SONDE_SOURCE_SACCT_H

#include "base/clock.h"
#include "base/err.h"
#include "model/record.h"
#include "source/source.h"

struct sacct;

/* Uses the commands' settings: conf, bin_path, prefix, max_output. */
struct sacct *sacct_new(const struct source_settings *settings);
struct sacct *sacct_free(struct sacct *sacct); /* returns NULL */

struct sacct_question {
    int64_t from, to;    /* jobs that waited, ran or ended in this time; */
    const uint32_t *ids; /* or, if there are any, these jobs whatever their time */
    size_t n_ids;
    int64_t deadline_ns; /* monotonic, clock_real */
    const atomic_bool *cancelled;

    /* Gets each run with what its steps used; texts are valid during the call. A negative answer
     * stops and is passed on. */
    int (*record)(void *ctx, const struct job_record *record, struct err *err);
    void *ctx;
};

struct sacct_result {
    uint64_t records, bytes;
    uint64_t skipped; /* records that could not be read */
    char skipped_example[100];
    char warning[SOURCE_WARNING];
};

/* -ENOENT: there is no sacct; -EOPNOTSUPP: this cluster keeps no accounting; -E2BIG: slurmdbd
 * refuses so wide a time (MaxQueryTimeRange), or the answer passes the ceiling: ask for less;
 * -ETIMEDOUT; -EACCES: hidden from us. Requeued runs are all told, each by itself. */
int sacct_ask(struct sacct *sacct, const struct sacct_question *question, struct sacct_result *ret,
              struct err *err);

#endif
