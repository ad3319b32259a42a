/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the exporter says of itself: its sources and traces, and what every program says. */
#ifndef SONDE_COLLECTOR_SELF_H
#define SONDE_COLLECTOR_SELF_H

#include "collector/program.h"
#include "snapshot/refresh.h"
#include "source/trace.h"

/* Of what is true of a moment only (MOMENTARY_KINDS), in this exposition. */
enum self_moment { SELF_NOT_ASKED, SELF_MISSED, SELF_SHOWN };

struct self {
    const char *sources[KINDS]; /* name of the class of the one that tells this kind */
    enum self_moment moment;
    const struct refresh_stats *stats;
    const struct trace_stats *traces; /* NULL: nothing is traced */
    struct program program;
};

extern const struct family self_families[];
extern const size_t n_self_families;

void self_collect(const struct self *self, struct metric_writer *writer);

#endif
