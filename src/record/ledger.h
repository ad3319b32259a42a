/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store as the recorder's thread uses it: opened when it can be, written a round at a time, and
 * what was written of each cluster remembered. Used by one thread; has no locks and logs nothing.
 */
#ifndef SONDE_RECORD_LEDGER_H
#define SONDE_RECORD_LEDGER_H

#include "base/list.h"
#include "model/section.h"
#include "store/store.h"

struct ledger;

/* The store is not opened yet. */
struct ledger *ledger_new(struct str url, bool is_simulated, size_t n_clusters);
struct ledger *ledger_free(struct ledger *ledger); /* returns NULL */

/* What is written in one transaction. */
struct round {
    struct list requests; /* to be run, each with its answer afterwards, */
    struct list refused;  /* but those which the store does not take: they are moved here */
    struct round_cluster {
        struct str name;
        struct section *jobs, *nodes; /* or NULL */
        struct section *kept[KINDS];  /* as they are; likewise */
        bool has_more;                /* of the jobs, only the first that have changed were kept */
    } * clusters;

    /* What came of it. */
    bool is_written;   /* there was something to change in the store */
    bool was_gone;     /* its file was removed or replaced, and opened anew */
    uint64_t refusals; /* records and requests that the store does not take */
    uint64_t dropped;  /* records of unknown jobs: there were too many of them */
    struct err refusal;
    uint64_t jobs, finals, unchanged, skipped;
};

/* Opens and locks the store if it is not open, or no longer the one that was opened. */
int ledger_open(struct ledger *ledger, bool *ret_was_gone, struct err *err);

/* How long jobs of that cluster were pending, as of the last round that was written; valid until
 * the next. False: no round was. */
bool ledger_waits(const struct ledger *ledger, size_t cluster, const struct partition_wait **ret,
                  size_t *ret_n);

/* All of it for good, or nothing. */
int ledger_write(struct ledger *ledger, struct round *round, struct err *err);

/* When an earlier process last saw a job that had not ended, in an open store; 0: never. */
int ledger_newest(struct ledger *ledger, int64_t *ret, struct err *err);

/* One small step. */
int ledger_prune(struct ledger *ledger, struct str cluster, const struct store_retention *retention,
                 struct store_pruned *ret, struct err *err);

/* Moves the store's log into its file, and tells the size of both. */
int ledger_tidy(struct ledger *ledger, struct store_size *ret, struct err *err);

#endif
