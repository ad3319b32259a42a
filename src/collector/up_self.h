/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde up` says of itself beside what an exporter does: its agent and its series. */
#ifndef SONDE_COLLECTOR_UP_SELF_H
#define SONDE_COLLECTOR_UP_SELF_H

#include "metric/writer.h"

struct up_self {
    bool has_agent; /* else the next ones mean nothing */
    bool is_agent_up;
    uint64_t agent_ends, agent_hangs; /* after which it was started again */
    bool has_series;                  /* likewise */
    bool is_series_up, is_retention_paused;
    uint64_t ticks, tick_failures, series, skipped, bytes;
};

extern const struct family up_self_families[];
extern const size_t n_up_self_families;

void up_self_collect(const struct up_self *self, struct metric_writer *writer);

#endif
