/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of `sonde up` about itself. */
#include "collector/up_self.h"

enum {
    AGENT_UP,
    AGENT_RESTARTS,
    SERIES_UP,
    SERIES_TICKS,
    SERIES_ERRORS,
    SERIES_SKIPPED,
    SERIES_NAMES,
    SERIES_BYTES,
    SERIES_RETENTION,
};

const struct family up_self_families[] = {
    [AGENT_UP] = { "sonde_agent_up",
                   METRIC_GAUGE,
                   "1 if the agent that sonde up runs on this machine answers, else 0: the log "
                   "says why.",
                   { NULL } },
    [AGENT_RESTARTS] = { "sonde_agent_restarts_total",
                         METRIC_COUNTER,
                         "How often that agent was started again: it had ended, or it was hung, "
                         "alive without an answer, and was killed.",
                         { "reason" } },
    [SERIES_UP] = { "sonde_series_up",
                    METRIC_GAUGE,
                    "1 if the last tick of the embedded series was written, else 0: the log says "
                    "why.",
                    { NULL } },
    [SERIES_TICKS] = { "sonde_series_ticks_total",
                       METRIC_COUNTER,
                       "Ticks of the embedded series that were written.",
                       { NULL } },
    [SERIES_ERRORS] = { "sonde_series_errors_total",
                        METRIC_COUNTER,
                        "Ticks of the embedded series that could not be written.",
                        { NULL } },
    [SERIES_SKIPPED] = { "sonde_series_skipped_samples_total",
                         METRIC_COUNTER,
                         "Samples that were not written into the embedded series, as there are too "
                         "many or as a name is too long or there twice.",
                         { NULL } },
    [SERIES_NAMES] = { "sonde_series_names",
                       METRIC_GAUGE,
                       "Embedded series that there are.",
                       { NULL } },
    [SERIES_BYTES] = { "sonde_series_size_bytes",
                       METRIC_GAUGE,
                       "Size of the file of the embedded series and of its log.",
                       { NULL } },
    [SERIES_RETENTION] = { "sonde_series_retention_paused",
                           METRIC_GAUGE,
                           "1 while built-in time series are not deleted by age because the clock "
                           "is in doubt: it jumped, differs from slurmctld's or is far ahead of "
                           "the newest sample, and the log says which. Else 0.",
                           { NULL } },
};

const size_t n_up_self_families = COUNT(up_self_families);

static void collect_agent(const struct up_self *self, struct metric_writer *writer)
{
    metric_begin(writer, AGENT_UP);
    metric_u64(writer, NULL, self->is_agent_up);
    metric_begin(writer, AGENT_RESTARTS);
    metric_u64(writer, METRIC_VALUES(STR("ended")), self->agent_ends);
    metric_u64(writer, METRIC_VALUES(STR("hung")), self->agent_hangs);
}

static void collect_series(const struct up_self *self, struct metric_writer *writer)
{
    const struct {
        size_t family;
        uint64_t value;
    } rows[] = {
        { SERIES_UP, self->is_series_up },
        { SERIES_TICKS, self->ticks },
        { SERIES_ERRORS, self->tick_failures },
        { SERIES_SKIPPED, self->skipped },
        { SERIES_NAMES, self->series },
        { SERIES_BYTES, self->bytes },
        { SERIES_RETENTION, self->is_retention_paused },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        metric_begin(writer, rows[i].family);
        metric_u64(writer, NULL, rows[i].value);
    }
}

void up_self_collect(const struct up_self *self, struct metric_writer *writer)
{
    if (self->has_agent)
        collect_agent(self, writer);
    if (self->has_series)
        collect_series(self, writer);
}
