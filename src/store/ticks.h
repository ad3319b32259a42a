/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers over time, for a machine without a Prometheus: one SQLite file of its own, written by
 * `sonde up`. A tick is one row; after two hours the ticks are sealed, a compressed blob for each
 * series, and after the retention deleted. docs/decisions/ticks.md has the format and what it
 * costs. Codes as in store.h. */
#ifndef SONDE_STORE_TICKS_H
#define SONDE_STORE_TICKS_H

#include "base/arena.h"
#include "base/err.h"

#include <stdint.h>

enum {
    TICKS_NAME_MAX = 255,       /* bytes; one that is longer is passed over and counted */
    TICKS_SAMPLES_MAX = 200000, /* samples of one tick; likewise */
    TICKS_SEAL_SECONDS = 7200,
};

struct ticks_config {
    const char *path;
    bool is_simulated;         /* never mixed with what is real: -EINVAL */
    int64_t retention_seconds; /* and up to a window more; 0: for ever */
    uint64_t max_bytes;        /* the oldest goes first; 0: no limit */
};

struct ticks_writer; /* of one thread; a file has one */

int ticks_open(const struct ticks_config *config, struct ticks_writer **ret, struct err *err);
struct ticks_writer *ticks_close(struct ticks_writer *writer); /* returns NULL */

/* A name is any text; by convention words between slashes, the most general first:
 *     cluster/beluga/cpus/allocated
 *     node/beluga/c1/load
 *     job/beluga/4711/c1/cpu_seconds, job/beluga/4711/g1/gpu/0/utilization */
struct tick_sample {
    struct str name;
    double value;
};

/* One tick, as one transaction. Clocks are set: at a time that is not after the last one it is
 * written all the same, and for the time that is gone through again, what was written last holds.
 */
int ticks_put(struct ticks_writer *writer, int64_t time, const struct tick_sample *sample, size_t n,
              struct err *err);

/* In a file of version 1 no job has a cluster (job/4711/c1/cpu_seconds): from now on those have
 * this one. Of a later version nothing changes. */
int ticks_name_cluster(struct ticks_writer *writer, struct str cluster, struct err *err);

struct ticks_tidied {
    bool is_more;              /* call it again */
    unsigned expired, evicted; /* batches that were deleted by age, and for want of room */
};

/* Seals and deletes what is due, some of it. Nothing is deleted by age unless `may_expire`: the
 * caller knows whether the clock can be trusted (base/clock_watch.h). */
int ticks_tidy(struct ticks_writer *writer, int64_t now, bool may_expire, struct ticks_tidied *ret,
               struct err *err);

struct ticks_stats {
    uint64_t bytes;                /* of the file and its log */
    uint64_t series, skipped;      /* names that are kept; samples that were passed over */
    int64_t first_time, last_time; /* of any sample; 0: none */
};
int ticks_stats(struct ticks_writer *writer, struct ticks_stats *ret, struct err *err);

struct ticks_reader; /* of one thread at a time; any process, read-only */

int ticks_reader_open(const char *path, struct ticks_reader **ret, struct err *err);
struct ticks_reader *ticks_reader_close(struct ticks_reader *reader);     /* returns NULL */
void ticks_reader_deadline(struct ticks_reader *reader, int64_t mono_ns); /* -ETIMEDOUT past it */

struct ticks_line {
    struct str name;
    size_t n;
    const int64_t *time; /* UTC seconds, ascending */
    const double *value;
};

/* All series whose names begin so, with their samples of from … to, to itself excluded, in the
 * order of their names; those without any are left out. More than `most`: -E2BIG. Lives in the
 * arena. */
int ticks_read(struct ticks_reader *reader, struct str prefix, int64_t from, int64_t to,
               size_t most, struct arena *arena, struct ticks_line **ret, size_t *ret_n,
               struct err *err);

#endif
