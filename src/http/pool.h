/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fixed number of threads and a queue with an end: for what would hold up the HTTP thread. */
#ifndef SONDE_HTTP_POOL_H
#define SONDE_HTTP_POOL_H

#include "base/thread.h"

#include <pthread.h>
#include <stdbool.h>

struct pool;

/* Part of whatever the job is about; stays where it is until it has run or the pool is gone. */
struct pool_job {
    void (*run)(struct pool_job *job);
    struct pool_job *next;
};

int pool_new(const char *name, unsigned threads, unsigned most_queued, struct pool **ret,
             struct err *err);

/* Waits for the jobs that run; those still queued are never run. */
struct pool *pool_free(struct pool *pool);

bool pool_push(struct pool *pool, struct pool_job *job); /* false: the queue is full */

#endif
