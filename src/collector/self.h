/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sonde says of itself: its sources, its collectors, its HTTP server, its process. */
#ifndef SONDE_COLLECTOR_SELF_H
#define SONDE_COLLECTOR_SELF_H

#include "base/process.h"
#include "snapshot/refresh.h"
#include "source/trace.h"

struct self {
    const char *source; /* name of the source's class */
    const struct refresh_stats *stats;
    const struct snapshot *snapshot;  /* for what each collector took */
    enum metric_format format;        /* … in this format */
    collector_set collectors;         /* those that are on */
    const struct trace_stats *traces; /* NULL: nothing is traced */
    struct process process;
    uint64_t http_requests, http_connections;
    uint64_t scrapes_in_flight, scrapes_answered, scrapes_refused; /* of the metrics themselves */
    uint64_t http_busy, http_unauthorized, http_timed_out, http_evicted; /* refused or ended */
};

extern const struct family self_families[];
extern const size_t n_self_families;

void self_collect(const struct self *self, struct metric_writer *writer);

#endif
