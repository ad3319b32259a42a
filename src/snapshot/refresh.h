/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks a source, on a thread of its own, when somebody wants to know and not more often than the
 * poll limit. Askers never wait in here: they are told whether what there is will do, and woken
 * when that changes. */
#ifndef SONDE_SNAPSHOT_REFRESH_H
#define SONDE_SNAPSHOT_REFRESH_H

#include "base/log.h"
#include "metric/histogram.h"
#include "snapshot/publish.h"
#include "source/keep.h"
#include "source/source.h"

/* What can be changed while it runs. */
struct refresh_tuning {
    int64_t poll_limit_ns[KINDS]; /* a section younger than this is fresh */
    int64_t timeout_ns;           /* for one look at one kind */
    int64_t stale_limit_ns;       /* older than this, and no longer fresh, is withdrawn */
    int64_t retry_ns;             /* the pause after a failure, doubled with each one in a row, */
    int64_t max_backoff_ns;       /* up to this, or the poll limit if that is longer */
    unsigned pace_kinds;          /* kinds that are wanted again and again, whoever asks, */
    int64_t pace_ns;              /* this often */
    struct publish_config publish;
};

struct refresh_config {
    struct source *source; /* used by this thread alone from now on; closed by the owner */
    struct refresh_tuning tuning;
    struct section *(*traces)(void *ctx, const struct section *jobs); /* NULL: nothing is traced */
    void *traces_ctx;
    const struct keep *keep; /* which jobs; NULL: all; must outlive it */

    /* Gets every section once it is complete, on this thread. NULL: nobody wants them. */
    void (*noted)(void *ctx, struct section *section);
    void *noted_ctx;

    /* Writes into a section of jobs how long jobs were pending, on this thread. NULL: it is counted
     * from what the polls show. */
    void (*waits)(void *ctx, struct section *jobs);
    void *waits_ctx;
    const struct clock *clock;
    struct log *log;
    const char *cluster;        /* for the log; NULL: there is but one; must outlive it */
    void (*changed)(void *ctx); /* called, without a lock held, when askers should look again */
    void *ctx;
};

struct refresher;

int refresher_start(const struct refresh_config *config, struct refresher **ret, struct err *err);
struct refresher *refresher_stop(struct refresher *refresher); /* ends a running command; NULL */

/* Begins with that and returns at once, so that many end at the same time. NULL is allowed. */
void refresher_end(struct refresher *refresher);

/* Takes effect at once. Where something else is to be rendered, Slurm is asked again when it is
 * next wanted, and until then what was rendered is shown. */
void refresher_tune(struct refresher *refresher, const struct refresh_tuning *tuning);

/* Renders these too from now on, until the next tuning. */
void refresher_add_collectors(struct refresher *refresher, collector_set set);

/* Says that these kinds are wanted in this format by somebody who has been waiting since then
 * (monotonic). True when the asker may go ahead with the snapshot as it is: each kind is fresh, or
 * has been looked at since, or cannot be had now (the source is in back-off after a failure).
 * False: a refresh is under way; ask again when `changed` has been called, until your own deadline.
 */
bool refresher_want(struct refresher *refresher, unsigned kinds, enum metric_format format,
                    int64_t since_ns);

/* When the last look at any of these kinds ended (monotonic); INT64_MIN: none has. */
int64_t refresher_told_ns(struct refresher *refresher, unsigned kinds);

/* When an asker of since_ns that has got everything else by then_ns stops waiting for these kinds:
 * after twice the time that their last look took if it succeeded, and at least a second. For a look
 * that was under way before the asker came, that time counts from its beginning, so that a source
 * that hangs is not waited for again and again. */
int64_t refresher_patience(struct refresher *refresher, unsigned kinds, int64_t since_ns,
                           int64_t then_ns);

/* For other threads that may wait: a section of that kind as new as an asker would get it, by the
 * deadline (monotonic, clock_real). NULL with a sentence, -ETIMEDOUT, -ECANCELED or the reason of
 * the last failure: there is none. Needs publish_config.keeps_facts. Unref it. */
struct section *refresher_wait(struct refresher *refresher, enum kind kind, int64_t deadline_ns,
                               const atomic_bool *cancelled, struct err *err);

/* The newest snapshot, without what has gone stale. Unref it. */
struct snapshot *refresher_snapshot(struct refresher *refresher);

enum { REFRESH_REASONS = 10 };

/* What is known of the source itself. */
struct refresh_stats {
    struct source_about about;
    struct {
        bool asked;          /* anybody ever wanted it */
        bool up;             /* the last look succeeded, and the source does not hang */
        double age_seconds;  /* of the newest section; negative: never seen */
        uint64_t looks;      /* that have ended */
        double last_seconds; /* what the last of them took, rendering not included */
        struct histogram durations;
        uint64_t bytes, skipped, warnings;
        struct {
            const char *reason; /* err_reason(), NULL ends */
            uint64_t count;
        } errors[REFRESH_REASONS];
    } kinds[KINDS];
};
void refresher_stats(struct refresher *refresher, struct refresh_stats *ret);

#endif
