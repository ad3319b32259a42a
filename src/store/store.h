/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where job documents are kept: one SQLite file (WAL), written by one process, read by any on that
 * host. docs/store.md has its tables. This is the writing side; query.h is the reading one. Each
 * struct store is used by one thread at a time.
 *
 * What goes wrong is told apart by its code: -ENOSPC (no room, or a quota), -EBUSY (locked by
 * another for longer than was waited), -EBADMSG (corrupt, or not a store), -ENOENT (gone), -EROFS,
 * -EACCES, -EIO, -ENOMEM, -EPROTO (made by a newer sonde). -EFBIG and -EINVAL are about the record
 * that is written, and not about the store. */
#ifndef SONDE_STORE_STORE_H
#define SONDE_STORE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/record.h"

struct store;

/* "sqlite:/var/lib/sonde/sonde.db" or a path. -EINVAL with a sentence for any other scheme. The
 * path is ended by a NUL in ret. */
enum { STORE_PATH_MAX = 4096 };
int store_path(struct str url, char ret[STORE_PATH_MAX], struct err *err);

/* For writing: makes the file (0640) if there is none, and brings its schema up to date, in one
 * transaction. A store of simulated jobs takes no real ones, and the other way round: -EINVAL. */
int store_open(struct str url, bool is_simulated, struct store **ret, struct err *err);
struct store *store_close(struct store *store); /* returns NULL; rolls back what is not committed */

/* Whether the file is still the one that was opened. */
bool store_is_there(const struct store *store);

/* What store_open would change, a line for each migration, tried for real and rolled back.
 * -ENOENT if there is no file. */
int store_try_migrations(struct str url, struct buf *out, struct err *err);

/* All that follows is part of a transaction. After a failure of any of them: store_rollback. */
int store_begin(struct store *store, struct err *err);
int store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);

/* Merges it with what is known of that run: nothing known is replaced by something unknown; states,
 * reasons and ends of an older look change nothing. Its life grows by what is new: waiting since
 * its submit time, running since its start, ended at its end, anything else when it was seen. When
 * it ends, it is counted; where accounting has told of any run, when that tells of the end. Saying
 * the same again changes nothing, nor does a record without an id or a submit time, or an end of a
 * run that store_prune has deleted. */
int store_put_job(struct store *store, struct str cluster, const struct job_record *record,
                  struct err *err);

/* One of a job that is not recorded is held apart until a run of it is. Past this many the oldest
 * are dropped. */
enum { STORE_HELD_MAX = 50000 };
int store_put_final(struct store *store, struct str cluster, const struct final_record *record,
                    struct err *err);

/* How many were dropped in this transaction, or since the last call. */
uint64_t store_take_dropped(struct store *store);

/* In the place of an earlier one; of a run that is not kept, nothing is. */
int store_put_summary(struct store *store, struct str cluster, const struct summary_record *record,
                      struct err *err);

/* All nodes of a cluster at once: those that are not among them are gone. */
int store_put_nodes(struct store *store, struct str cluster, int64_t seen_time,
                    const struct node_record *records, size_t n, struct err *err);

/* What a cluster told of one kind of thing, in the place of what it told before: a document of
 * source/record.h. Without one, that it has told the same again. A longer one: -EFBIG. */
enum { STORE_SECTION_MAX = 256 << 20 };
int store_put_section(struct store *store, struct str cluster, const char *kind, int64_t time,
                      struct str document, struct err *err);

/* Numbers that outlive a process, by cluster and name. *ret is `otherwise` if there is none. */
int store_get_mark(struct store *store, struct str cluster, const char *name, int64_t otherwise,
                   int64_t *ret, struct err *err);
int store_set_mark(struct store *store, struct str cluster, const char *name, int64_t value,
                   struct err *err);

/* When the newest that was heard of a run which had not ended was so; 0: never. It never falls: a
 * look that is told to be older than this changes nothing where it should. */
int store_open_seen(struct store *store, struct str cluster, int64_t *ret, struct err *err);

/* The newest of these times of all clusters. */
int store_newest_seen(struct store *store, int64_t *ret, struct err *err);

struct open_filter {
    int64_t as_of;                                   /* last heard of before this */
    uint32_t after;                                  /* only ids above it */
    bool (*skips)(const void *ctx, uint32_t job_id); /* may be NULL: those it is true for are not
                                                        meant */
    const void *ctx;
};

/* Runs that have not ended as far as is known, or as far as accounting has told where there is any,
 * and of which nothing was heard for a while: Slurm may have forgotten them. At most `most` ids,
 * the lowest first, each once. */
int store_open_runs(struct store *store, struct str cluster, const struct open_filter *filter,
                    uint32_t *ids, size_t most, size_t *ret_n, struct err *err);

struct run_name {
    uint32_t job_id;
    int64_t submit_time;
};

/* All of these; to be freed. */
int store_list_open(struct store *store, struct str cluster, struct run_name **ret, size_t *ret_n,
                    struct err *err);

/* All of the queue was looked at. Of `gone` it shows no more, while it did in the look before:
 * those of them that have not ended as far as is known were last seen then, until it shows them
 * again. */
int store_put_look(struct store *store, struct str cluster, int64_t as_of,
                   const struct run_name *gone, size_t n, struct err *err);

/* How long jobs were pending, of each partition in which one has started since the first record of
 * the cluster was put into the store; in the arena. Each run is counted once: when the queue shows
 * that it has started, or when accounting tells its end. */
struct partition_wait {
    struct str partition;
    struct wait wait; /* but for its partition */
};
int store_waits(struct store *store, struct str cluster, struct arena *arena,
                struct partition_wait **ret, size_t *ret_n, struct err *err);

struct store_retention {
    int64_t oldest_end; /* runs that ended before this are deleted; 0: none for that */
    uint64_t max_bytes; /* the cluster's share of the file; the oldest runs go first; 0: no limit */
};

struct store_pruned {
    uint64_t by_age, by_size; /* runs */
    uint64_t finals;          /* records of agents */
};

/* Deletes at most `most` runs for each reason; call it again until it deletes nothing. What was
 * counted stays counted. */
int store_prune(struct store *store, struct str cluster, const struct store_retention *retention,
                size_t most, struct store_pruned *ret, struct err *err);

/* Outside of a transaction: moves what its log has into the file, as far as nobody reads it. What
 * is written often is moved once. */
int store_tidy(struct store *store, struct err *err);

struct store_size {
    uint64_t bytes; /* of the file and its log */
    uint64_t runs;
};
int store_size(struct store *store, struct store_size *ret, struct err *err);

#endif
