/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completes a store from slurmdbd, on a thread of its own for each cluster: first what happened
 * since it was last asked, so that a gap while sonde was down is closed; then, newest first, all
 * that slurmdbd has from before. Where it has got to is kept in the store, in the same transaction
 * as what was read. */
#ifndef SONDE_RECORD_HISTORY_H
#define SONDE_RECORD_HISTORY_H

#include "record/reconcile_file.h"
#include "record/recorder.h"
#include "source/keep.h"
#include "source/source.h"

struct history;

struct history_config {
    struct recorder *recorder; /* outlives it */
    size_t cluster;            /* of the recorder */
    struct source_settings source;
    const struct keep *keep; /* which jobs; NULL: all; must outlive it */
    int64_t interval_ns;     /* between two questions for what is new */
    int64_t timeout_ns;      /* for one question */
    int64_t first_time;      /* nothing older is asked for; UTC seconds, 0: all */
    struct str store; /* URL, beside which sonde admin reconcile writes its result; outlives it */
    const struct clock *clock;
    struct log *log;
};

int history_start(const struct history_config *config, struct history **ret, struct err *err);
struct history *history_stop(struct history *history); /* returns NULL */
void history_end(struct history *history); /* begins with that, returns at once; NULL is allowed */

struct history_stats {
    bool is_up;                   /* the last question was answered, and the answer written */
    uint64_t questions, failures; /* of all questions, those that were not answered */
    uint64_t records, skipped;
    int64_t since, until;                /* what has been asked for without a gap; 0: nothing yet */
    bool is_complete;                    /* down to first_time, or to the beginning */
    struct reconcile_summary reconciled; /* by the last sonde admin reconcile; time 0: never */
};
void history_stats(struct history *history, struct history_stats *ret);

#endif
