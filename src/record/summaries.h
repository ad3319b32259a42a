/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps what each finished run used, as a Prometheus tells it while it still has the samples: on a
 * thread of its own, those that ended last first, few in a second. A run of which it knows nothing
 * gets an empty summary, so that it is not asked for again. */
#ifndef SONDE_RECORD_SUMMARIES_H
#define SONDE_RECORD_SUMMARIES_H

#include "record/recorder.h"
#include "report/facts_series.h"

struct summaries;

struct summaries_config {
    struct recorder *recorder; /* outlives it */
    struct str store;          /* URL; copied, as all texts */
    struct prometheus_settings prometheus;
    const struct series_matcher *matcher;
    size_t n_matchers;
    int64_t pause_ns;   /* between two runs */
    int64_t timeout_ns; /* for one */
    const struct clock *clock;
    struct log *log;
};

/* -EINVAL with a sentence for a Prometheus that cannot be asked. */
int summaries_start(const struct summaries_config *config, struct summaries **ret, struct err *err);
struct summaries *summaries_stop(struct summaries *summaries); /* returns NULL */

/* Begins with that and returns at once. NULL is allowed. */
void summaries_end(struct summaries *summaries);

struct summaries_stats {
    bool is_up;              /* the last that was asked for could be made and written */
    uint64_t written, empty; /* with something to tell, and without */
    uint64_t failures;       /* empty because Prometheus could not tell of that run */
};
void summaries_stats(struct summaries *summaries, struct summaries_stats *ret);

#endif
