/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent says of itself: how fresh its samples are, what it could not see, its pushes, what
 * it hands in, and what every program says. */
#ifndef SONDE_COLLECTOR_AGENT_SELF_H
#define SONDE_COLLECTOR_AGENT_SELF_H

#include "collector/program.h"
#include "snapshot/bulletin.h"

struct agent_self {
    const char *node;                /* short host name */
    const struct bulletin *bulletin; /* NULL: none yet */
    bool is_stale;                   /* what it says of jobs is too old to be shown */
    int64_t mono_ns;                 /* now */
    bool is_pushing;                 /* else the next ones mean nothing */
    uint64_t pushes, push_failures, pushes_replaced, pushes_refused;
    bool push_is_up;
    double push_seconds;
    int64_t push_success_wall_ns; /* 0: never */
    bool is_sweeping;             /* likewise */
    uint64_t swept_groups, sweep_failures;
    bool is_handing_in; /* likewise */
    bool ingest_is_up, ingest_is_retention_paused;
    uint64_t ingest_records, ingest_posted, ingest_dropped, ingest_failures;
    uint64_t ingest_on_disk, ingest_in_memory, ingest_bytes;
    int64_t ingest_success_wall_ns; /* 0: never */
    struct program program;
};

extern const struct family agent_self_families[];
extern const size_t n_agent_self_families;

void agent_self_collect(const struct agent_self *self, struct metric_writer *writer);

#endif
