/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ended jobs used, on its way to the exporter: written to disk first, then posted to /ingest
 * and removed when that is acknowledged. On a thread of its own; a full or broken disk, or an
 * exporter that is away, delays nobody. */
#ifndef SONDE_AGENT_SPOOL_H
#define SONDE_AGENT_SPOOL_H

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "model/usage.h"

struct spool;

struct spool_config {
    const char *directory;            /* made (0700) if it is not there */
    const char *url;                  /* of the exporter: "https://monitor:9092" */
    const char *token_file, *ca_file; /* ca_file: NULL: the system's */
    const char *cluster;              /* as the exporter calls it; empty: it has but one */
    int64_t timeout_ns, retry_ns, max_backoff_ns;
    uint64_t max_bytes; /* of the directory: the oldest go first */
    int64_t max_age_ns; /* older ones are dropped */
    const struct clock *clock;
    struct log *log;
};

int spool_start(const struct spool_config *config, struct spool **ret, struct err *err);
struct spool *spool_stop(struct spool *spool); /* tries once more, for a moment; returns NULL */

/* By the sampler, when a job has ended here: what it has used is copied. */
void spool_add(struct spool *spool, const struct job_use *use, int64_t end_wall_ns);

struct spool_stats {
    bool is_up; /* the last post was acknowledged, or there was nothing to post yet */
    uint64_t records, posted, dropped, failures;
    uint64_t waiting, waiting_bytes;
};
void spool_stats(struct spool *spool, struct spool_stats *ret);

#endif
