/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ended jobs used, on its way to the exporter: written to disk first, then posted to /ingest
 * and removed when that is acknowledged. On a thread of its own; a full or broken disk, or an
 * exporter that is away, delays nobody.
 *
 * A post is {"cluster": NAME, "records": [RECORD, …]}, a record what agent/final.h describes. 200
 * acknowledges all of it. 400 or 413 means that a record is at fault: the exporter says which,
 * {"record": INDEX}, or it is found by halves, and dropped. After anything else all of it is kept
 * and posted again, later and later. Posting twice changes nothing. */
#ifndef SONDE_AGENT_SPOOL_H
#define SONDE_AGENT_SPOOL_H

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "model/usage.h"

struct spool;

struct spool_config {
    const char *directory;    /* made (0700) if it is not there */
    const char *url;          /* of the exporter: "https://monitor:9092" */
    const char *token_file;   /* NULL: none; used where munge is not, or is refused */
    const char *munge_socket; /* NULL: the usual one */
    const char *ca_file;      /* NULL: the system's */
    const char *cluster;      /* as the exporter calls it; empty: it has but one */
    int64_t timeout_ns, retry_ns, max_backoff_ns;
    uint64_t max_bytes; /* of the directory: the oldest go first */
    int64_t max_age_ns; /* older ones are dropped when they cannot be posted */
    const struct clock *clock;
    struct log *log;
};

/* -EINVAL for a URL that cannot be used; -ENOENT with a sentence that names the package when
 * libcurl is not installed, or neither libmunge nor a token is there; what open(2) says of the
 * token file. A directory that cannot be used is logged, and tried again: until then records are
 * kept in memory. */
int spool_start(const struct spool_config *config, struct spool **ret, struct err *err);

/* Writes all that it has to disk, posts what it can within that time, and ends. Returns NULL. */
struct spool *spool_stop(struct spool *spool, int64_t within_ns);

/* Has all that was added before written to disk, and waits for that until a monotonic time. A post
 * that is under way goes on meanwhile. False if something is still in memory only: the disk does
 * not take it. NULL is allowed. */
bool spool_save(struct spool *spool, int64_t until_ns);

/* By the sampler, when a job has ended here: what it has used is copied, its steps and how many
 * more there were too. A job that is none of Slurm's is passed over. */
void spool_add(struct spool *spool, const struct job_use *use, size_t steps_left_out,
               int64_t end_wall_ns);

struct spool_stats {
    bool is_up;        /* the last post was acknowledged, or there was nothing to post yet */
    uint64_t records;  /* handed in */
    uint64_t posted;   /* and acknowledged */
    uint64_t dropped;  /* for want of room, too old, or refused */
    uint64_t failures; /* posts that were not acknowledged */
    uint64_t waiting, waiting_bytes; /* on disk and in memory; on disk */
    uint64_t in_memory;              /* of these, not on disk */
    int64_t last_success_wall_ns;    /* 0: never */
    bool is_retention_paused; /* those that are too old are not dropped: base/clock_watch.h */
};
void spool_stats(struct spool *spool, struct spool_stats *ret);

#endif
