/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that answer questions have in common. */
#ifndef SONDE_STORE_READER_H
#define SONDE_STORE_READER_H

#include "store/query.h"
#include "store/sqlite.h"

struct store_reader {
    sqlite3 *db;
    char *path;
    struct db_files files;
    int64_t deadline_ns; /* 0: none */
    uint32_t n_opened;   /* how often */
    bool is_simulated;
    bool
        is_unlocked; /* opened without locks: nobody wrote it, and there was no right to make any */
    unsigned depth;  /* questions under way, one inside the other */
};

/* A question sees one state of the store from its begin to its end. They may be nested. */
int reader_begin(struct store_reader *reader, struct err *err);
void reader_end(struct store_reader *reader);

/* As db_prepare and db_step, but -ETIMEDOUT with a sentence of its own. */
int reader_prepare(struct store_reader *reader, const char *sql, sqlite3_stmt **ret,
                   struct err *err);
int reader_step(struct store_reader *reader, sqlite3_stmt *statement, struct err *err);

/* The ids of a text or a cluster, 0 if the store does not have it, and back; the text is copied
 * into the arena, empty for 0. */
enum reader_names { READER_TEXTS, READER_CLUSTERS };
int reader_id(struct store_reader *reader, enum reader_names of, struct str name, int64_t *ret,
              struct err *err);
int reader_name(struct store_reader *reader, enum reader_names of, int64_t id, struct arena *arena,
                struct str *ret, struct err *err);

/* What tells until when a run that has started held its resources. Unknown times are 0. */
struct reader_run {
    struct job_state state;
    int64_t start_time;
    int64_t end_time;  /* of one that runs, Slurm tells when it would end at the latest */
    int64_t last_seen; /* by the queue, which no longer shows it */
    uint32_t time_limit_minutes;
    uint64_t suspended_seconds; /* until as_of */
    int64_t as_of;
};

/* Its end; if it still runs, now. Where an end was missed, nobody tells of it any more: it ran no
 * longer than it was seen, nor than it was allowed to. 0 if nothing is known. */
int64_t reader_run_end(const struct reader_run *run, int64_t now);

/* How long it was suspended until that end: a run that is suspended now has been since as_of. */
uint64_t reader_run_suspended(const struct reader_run *run, int64_t end);

/* To a job that is cancelled while it waits, Slurm gives its end as its start. */
static inline bool reader_never_ran(int64_t start, int64_t end, bool has_nodes)
{
    return start == end && !has_nodes;
}

#endif
