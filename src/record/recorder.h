/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps what was seen: the one thread that writes into the store. It takes sections from
 * refreshers, of which it writes what has changed since the last, and batches from
 * whoever has records: the history of slurmdbd, the agents. While the store cannot be written,
 * nobody else is disturbed; what was seen last is written when it can be again. */
#ifndef SONDE_RECORD_RECORDER_H
#define SONDE_RECORD_RECORDER_H

#include "base/log.h"
#include "model/section.h"
#include "store/store.h"

#include <stdatomic.h>

struct recorder;

/* One of the clusters that are recorded. */
struct recorded_cluster {
    struct str name;      /* empty: not known yet; until recorder_name nothing of it is written */
    int64_t retention_ns; /* by age of their end; 0: for ever */
    uint64_t max_bytes;   /* 0: no limit */
};

struct recorder_config {
    struct str url;
    bool is_simulated;
    const struct recorded_cluster *clusters; /* copied, as url */
    size_t n_clusters;
    const struct clock *clock;
    struct log *log;
};

/* Opens the store: fails only for what no waiting mends (another scheme, a newer schema, simulated
 * into real), and with -EALREADY if another process records jobs in it. */
int recorder_start(const struct recorder_config *config, struct recorder **ret, struct err *err);

/* Writes what is waiting, within a second or two, and ends. Nobody may wait for it any longer.
 * Returns NULL. */
struct recorder *recorder_stop(struct recorder *recorder);

/* For a process that is about to exit: has what is waiting written and the thread ended, and waits
 * for that until a monotonic time. Frees nothing. NULL is allowed. */
void recorder_save(struct recorder *recorder, int64_t until_ns);

/* What that cluster is called, as Slurm has told; nothing happens if it has a name. */
void recorder_name(struct recorder *recorder, size_t cluster, struct str name);

/* False if it is not known yet. */
bool recorder_get_name(struct recorder *recorder, size_t cluster, char *to, size_t room);
size_t recorder_n_clusters(const struct recorder *recorder);

/* The cluster of that name, or -1. */
int recorder_find(struct recorder *recorder, struct str name);

/* What Slurm tells; other sections are passed over. */
#define RECORDED_KINDS                                                                             \
    (KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |                    \
     KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |                       \
     KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG))

/* A section of that cluster: takes a reference and returns at once. One that still waits to be
 * written is replaced. All but jobs are written once a minute at most, and only the newest of each
 * is kept. */
void recorder_note(struct recorder *recorder, size_t cluster, struct section *section);

/* Writes into a section of jobs how long jobs of that cluster were pending, as of the last write;
 * of partitions that the section knows and where none has started, 0. Nothing if nothing was
 * written yet. Waits for nothing but a lock. */
void recorder_put_waits(struct recorder *recorder, size_t cluster, struct section *jobs);

/* What is to be written together: all of it or nothing. */
struct record_batch {
    size_t cluster;
    const struct job_record *jobs;
    size_t n_jobs;
    const struct final_record *finals;
    size_t n_finals;
    const struct summary_record *summaries;
    size_t n_summaries;
    const struct record_mark {
        const char *name;
        int64_t value;
    } * marks;
    size_t n_marks;
};

/* Waits until it is written for good (committed and synced), by any thread: 0 is an
 * acknowledgement. -ETIMEDOUT, -ECANCELED, -EAGAIN (too many wait, or the cluster has no name yet),
 * or what the store said, at once while it cannot be written. After a failure it may have been
 * written all the same: put it again, that changes nothing. `deadline_ns` is monotonic time of the
 * recorder's clock. */
int recorder_put(struct recorder *recorder, const struct record_batch *batch, int64_t deadline_ns,
                 const atomic_bool *cancelled, struct err *err);

/* The same without waiting: many callers' batches share one transaction. Returns at once; 0 means
 * that *ret is to be given to recorder_check until that says what became of it, and then to
 * recorder_forget. `notify` is called on the recorder's thread when it is time to check, and must
 * not call the recorder. */
struct request;
int recorder_submit(struct recorder *recorder, const struct record_batch *batch,
                    void (*notify)(void *ctx), void *ctx, struct request **ret, struct err *err);

/* -EINPROGRESS, or as recorder_put. Takes no lock. */
int recorder_check(const struct request *request, struct err *err);

/* At any time; afterwards `notify` is not called. What has not been written yet may still be. NULL
 * is allowed. */
void recorder_forget(struct recorder *recorder, struct request *request);

/* On the recorder's thread, waited for as above. A mark that is not there is 0. */
int recorder_get_marks(struct recorder *recorder, size_t cluster, const char *const *names,
                       int64_t *values, size_t n, int64_t deadline_ns, const atomic_bool *cancelled,
                       struct err *err);

/* Runs that have not ended as far as is known, that were last heard of before `as_of`, and that do
 * not stand in the newest section: the ids of `most` of them, those next to `after`. */
int recorder_open_runs(struct recorder *recorder, size_t cluster, int64_t as_of, uint32_t after,
                       uint32_t *ids, size_t most, size_t *ret_n, int64_t deadline_ns,
                       const atomic_bool *cancelled, struct err *err);

enum { RECORDER_REASONS = 10 };

struct recorder_stats {
    bool is_up;               /* the last write succeeded */
    uint64_t commits;         /* transactions */
    uint64_t jobs, finals;    /* records written */
    uint64_t unchanged;       /* jobs of sections that were as before */
    uint64_t skipped;         /* jobs of sections that do not tell when they were submitted */
    uint64_t replaced;        /* sections that were never written, as newer ones came */
    double last_seconds;      /* what the last transaction took */
    double behind_seconds;    /* age of the oldest that waits; 0: none */
    bool is_retention_paused; /* of any cluster: base/clock_watch.h */
    struct store_size size;
    struct {
        const char *reason; /* err_reason(), NULL ends */
        uint64_t count;
    } errors[RECORDER_REASONS];
};
void recorder_stats(struct recorder *recorder, struct recorder_stats *ret);

#endif
