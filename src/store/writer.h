/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the writing files of a store share: the open file, its statements, and what is remembered of
 * it so that it need not be asked again. All that is remembered is forgotten at a rollback, or when
 * others have written. */
#ifndef SONDE_STORE_WRITER_H
#define SONDE_STORE_WRITER_H

#include "base/map.h"
#include "store/rest.h"
#include "store/sqlite.h"
#include "store/store.h"

enum store_statement {
    SQL_FIND_TEXT,
    SQL_READ_TEXT,
    SQL_ADD_TEXT,
    SQL_SET_TEXT_KINDS,
    SQL_COUNT_NAMED,
    SQL_ADD_MEMBER,
    SQL_FIND_CLUSTER,
    SQL_ADD_CLUSTER,
    SQL_GET_MARK,
    SQL_SET_MARK,
    SQL_NEWEST_RUN,
    SQL_FIND_RUN,
    SQL_READ_JOB,
    SQL_ADD_JOB,
    SQL_CHANGE_JOB, /* and the next ones: see job_row.c */
    SQL_CHANGE_JOB_LAST = SQL_CHANGE_JOB + 7,
    SQL_RUN_BEFORE,
    SQL_RUN_AFTER,
    SQL_SET_FIRST_SUBMIT,
    SQL_END_REQUEUED,
    SQL_ADD_MOMENT,
    SQL_DROP_MOMENT,
    SQL_COUNT_MOMENTS,
    SQL_COUNT_ENDED,
    SQL_COUNT_WAITED,
    SQL_WAITS,
    SQL_DROP_ENDED,
    SQL_PUT_FINAL,
    SQL_KNOWS_JOB,
    SQL_HOLD,
    SQL_FIND_HELD,
    SQL_DROP_HELD,
    SQL_DROP_OLDEST_HELD,
    SQL_PUT_SUMMARY,
    SQL_PUT_SECTION,
    SQL_TOUCH_SECTION,
    SQL_CLUSTER_NODES,
    SQL_CHANGE_NODE,
    SQL_ADD_NODE,
    SQL_DROP_NODE,
    SQL_OPEN_RUNS,
    SQL_OPEN_RUN,
    SQL_SET_LAST_SEEN,
    SQL_RUNS_BY_END,
    SQL_RUNS_BY_SUBMIT,
    SQL_DROP_JOB,
    SQL_DROP_LIFE,
    SQL_DROP_SUMMARY,
    SQL_DROP_FINALS,
    SQL_DROP_HELD_FINALS,
    SQL_UNUSED_TEXT,
    SQL_DROP_TEXT,
    SQL_DROP_MEMBER,
    SQL_COUNT_RUNS,
    SQL_STATEMENTS,
};

/* Marks of a cluster that never fall; 0: not set yet. They are written at the end of the
 * transaction. */
enum cluster_mark {
    MARK_PRUNED_BEFORE, /* runs that ended before it are deleted and do not come back, */
    MARK_PRUNED_SUBMIT, /* nor do those that were submitted until then and have ended */
    MARK_PRUNED_END,    /* of what ended until then, something is not kept for one of these */
    MARK_OPEN_SEEN,     /* the newest that was heard of a run that had not ended */
    MARK_JOBS_SEEN,     /* when the queue was last looked at */
    MARK_IS_ACCOUNTED,  /* 1: accounting has told something */
    MARK_WAITS_SINCE,   /* jobs that started then or later are counted in `waited` */
    CLUSTER_MARKS,
};

struct store_cluster {
    int64_t id;
    int64_t marks[CLUSTER_MARKS], written[CLUSTER_MARKS];
};

static inline void store_raise_mark(struct store_cluster *cluster, enum cluster_mark which,
                                    int64_t value)
{
    if (value > cluster->marks[which])
        cluster->marks[which] = value;
}

/* What started before the first record of a cluster is not counted. */
static inline void store_begin_waits(struct store_cluster *cluster, int64_t as_of)
{
    if (!cluster->marks[MARK_WAITS_SINCE])
        cluster->marks[MARK_WAITS_SINCE] = as_of;
}

struct store {
    sqlite3 *db;
    char path[STORE_PATH_MAX];
    struct db_files files;
    sqlite3_stmt *statements[SQL_STATEMENTS];
    struct packer *packer;

    int64_t data_version; /* SQLite's: another one if others have written */
    struct arena cluster_arena, text_arena;
    struct map clusters;                                  /* struct store_cluster */
    struct map texts;                                     /* id << 2 | kinds */
    int64_t runs;                                         /* -1: not counted yet */
    enum { HOLDS_UNKNOWN, HOLDS_NONE, HOLDS_SOME } holds; /* records of unknown jobs */
    uint64_t n_dropped;                                   /* of those, since somebody asked */

    /* What is counted up at the end of the transaction. */
    struct arena tally_arena;
    struct map tallies;

    struct arena scratch; /* of one call */
    struct buf plain, packed;
};

/* Ready to be bound. */
int store_use(struct store *store, enum store_statement which, sqlite3_stmt **ret, struct err *err);

/* Some of them may no longer be there. */
void store_forget_texts(struct store *store);

/* What of each transaction is counted together and written at its end: runs that have ended, how
 * long runs were pending, and runs that have a name or no longer do. */
void store_count_ends(struct store *store, int64_t cluster, int64_t state, int64_t partition,
                      int64_t account, int64_t more);
void store_count_wait(struct store *store, int64_t cluster, int64_t partition, int64_t seconds);
void store_count_named(struct store *store, int64_t name, int64_t more);
int store_write_tallies(struct store *store, struct err *err);
void store_forget_tallies(struct store *store);

/* 0 if it is not there. */
int store_find_cluster(struct store *store, struct str name, int64_t *ret, struct err *err);

/* Made if it is not there. Valid until a rollback. */
int store_cluster(struct store *store, struct str name, struct store_cluster **ret,
                  struct err *err);

int store_write_marks(struct store *store, struct err *err);
int store_read_mark(struct store *store, int64_t cluster, const char *name, int64_t otherwise,
                    int64_t *ret, struct err *err);
int store_write_mark(struct store *store, int64_t cluster, const char *name, int64_t value,
                     struct err *err);

/* What a text is used as: a word is kept for ever, anything else only as long as a run has it. */
enum text_use { TEXT_NAME = 0, TEXT_WORD = 1, TEXT_LIST = 2 };

/* The id of a text, made if it is not there; 0 for an empty one. The members of a list are written
 * too, as far as it can be expanded. */
int store_text(struct store *store, struct str text, enum text_use use, int64_t *ret,
               struct err *err);

/* The text of an id, in the scratch arena; empty if there is none. */
int store_read_text(struct store *store, int64_t id, struct str *ret, struct err *err);

/* If no run has that text and it is no word, it goes, with its members. */
int store_drop_text(struct store *store, int64_t id, struct err *err);

/* A run of that job is recorded now: what is held for it is kept as what its agents counted. */
int store_release_held(struct store *store, int64_t cluster, uint32_t job_id, struct err *err);

/* The columns of a job that store_put_job writes, as "a, b" or "a = ?5, b = ?6". */
void job_columns_sql(enum store_statement which, struct buf *out);

#endif
