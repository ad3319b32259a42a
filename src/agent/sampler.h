/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches the jobs of this node, on a thread of its own: at ticks aligned to the wall clock, and
 * when a job begins or ends. After each it hangs a bulletin on the board. */
#ifndef SONDE_AGENT_SAMPLER_H
#define SONDE_AGENT_SAMPLER_H

#include "base/log.h"
#include "push/pushgateway.h"
#include "snapshot/bulletin.h"
#include "source/cgroup_rows.h"
#include "source/gpus.h"
#include "source/lustre_targets.h"

struct pattern;
struct spool;
struct sweeper;

/* What can be changed while it runs. */
struct sampler_tuning {
    int64_t tick_ns;
    int64_t linger_ns;       /* how long the last counters of a job that has ended are shown */
    const uint32_t *skipped; /* users whose jobs nobody looks at, by uid, in order; copied */
    size_t n_skipped;
    size_t max_names; /* of processes, for each job; the rest is "other" */
    struct bulletin_config publish;
};

struct sampler_config {
    struct sampler_tuning tuning;
    const char *proc, *sys, *host; /* "/proc", "/sys", short host name */
    const struct cgroup_rows *rows;
    const struct pattern *scratch; /* NULL: nobody asks for it */
    uint32_t slurmd_uid;           /* 0 nearly everywhere */
    const char *profile_socket;    /* where the profile plugin is heard; NULL: nowhere */
    size_t max_jobs, max_processes;
    size_t
        max_files; /* descriptors that jobs may make it hold; 0: files are opened for each read */
    struct users *users;
    struct gpus *gpus;             /* NULL: none */
    struct lustre_targets *lustre; /* likewise */
    struct bulletin_board *board;
    struct pusher *pusher;   /* NULL: nothing is pushed */
    struct sweeper *sweeper; /* NULL: nothing is deleted on a Pushgateway */
    struct spool *spool;     /* NULL: nobody wants to know what ended jobs have used */
    const struct clock *clock;
    struct log *log;
};

struct sampler;

/* What it is given must outlive it. */
int sampler_start(const struct sampler_config *config, struct sampler **ret, struct err *err);
struct sampler *sampler_stop(struct sampler *sampler); /* returns NULL */

void sampler_tune(struct sampler *sampler, const struct sampler_tuning *tuning);

#endif
