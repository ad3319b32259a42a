/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the exporter says of itself: its sources and traces, and what every program says. */
#ifndef SONDE_COLLECTOR_SELF_H
#define SONDE_COLLECTOR_SELF_H

#include "collector/program.h"
#include "snapshot/refresh.h"
#include "source/trace.h"

struct self {
    const char *source; /* name of the source's class */
    const struct refresh_stats *stats;
    const struct trace_stats *traces; /* NULL: nothing is traced */
    struct program program;
};

extern const struct family self_families[];
extern const size_t n_self_families;

void self_collect(const struct self *self, struct metric_writer *writer);

#endif
