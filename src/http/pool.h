/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fixed number of threads and a queue with an end: for what would hold up the HTTP thread. Of
 * both, an owner of jobs gets no more than a share, so that whoever asks for much keeps nobody
 * waiting but himself. */
#ifndef SONDE_HTTP_POOL_H
#define SONDE_HTTP_POOL_H

#include "base/thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;

/* Part of whatever the job is about; stays where it is until it has run or the pool is gone. */
struct pool_job {
    void (*run)(struct pool_job *job);
    uint64_t owner; /* whose share it takes; 0: nobody's */
    struct pool_job *next;
};

struct pool_config {
    const char *name; /* of its threads, at most 15 bytes */
    unsigned threads, most_queued;
    bool is_unconfined; /* its jobs start threads or commands, or need capabilities: nothing is
                         * taken from its threads (http/confine.h) */
};

int pool_new(const struct pool_config *config, struct pool **ret, struct err *err);

/* Waits for the jobs that run; those still queued are never run. */
struct pool *pool_free(struct pool *pool);

/* Who has the fewest running comes next, and of those the first to come. False: the queue is full,
 * or the owner's share of it. */
bool pool_push(struct pool *pool, struct pool_job *job);

#endif
