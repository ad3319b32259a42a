/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ticks.c and ticks_tidy.c share: the file of the embedded series, open for writing. */
#ifndef SONDE_STORE_TICKS_WRITER_H
#define SONDE_STORE_TICKS_WRITER_H

#include "base/map.h"
#include "store/sqlite.h"
#include "store/ticks.h"
#include "store/ticks_blob.h"

/* "sont": in the head of the file, so that series are told from other SQLite files. */
enum { TICKS_APPLICATION_ID = 0x736f6e74, TICKS_VERSION = 2 };

enum ticks_statement {
    TICKS_FIND_NAME,
    TICKS_ADD_NAME,
    TICKS_ADD_TICK,
    TICKS_OLDEST_TICKS,
    TICKS_READ_TICKS,
    TICKS_DROP_TICKS,
    TICKS_DROP_LAST_TICKS,
    TICKS_DROP_TICK,
    TICKS_ADD_BATCH,
    TICKS_OLDEST_BATCH,
    TICKS_DROP_BATCH,
    TICKS_ADD_SEALED,
    TICKS_SET_BATCH_OF_NAME,
    TICKS_SEALED_IN,
    TICKS_DROP_SEALED,
    TICKS_DROP_NAME,
    TICKS_STATEMENTS,
};

struct ticks_writer {
    sqlite3 *db;
    char *path;
    struct db_files files;
    int64_t retention_seconds;
    uint64_t max_bytes;
    sqlite3_stmt *statements[TICKS_STATEMENTS];

    int64_t version;      /* of the tables */
    int64_t data_version; /* SQLite's: another one if others have written */
    int64_t last_time;    /* of the tick that was written last; 0: there is none */
    int64_t last_step;    /* seconds between that and the one before; 0: unknown */
    uint64_t skipped;
    struct arena name_arena;
    struct map names; /* their numbers, of those that were written lately */
    struct buf blob;
};

/* Ready to be bound. */
int ticks_use(struct ticks_writer *writer, enum ticks_statement which, sqlite3_stmt **ret,
              struct err *err);

/* A transaction. After a failure in between, ticks_rollback. */
int ticks_begin(struct ticks_writer *writer, struct err *err);
int ticks_commit(struct ticks_writer *writer, struct err *err);
void ticks_rollback(struct ticks_writer *writer);

/* Within a transaction: the head is empty then. */
int ticks_seal_all(struct ticks_writer *writer, struct err *err);

/* Some of them may no longer be there. */
void ticks_forget_names(struct ticks_writer *writer);

/* -EPROTO, -EBADMSG; *ret_is_new: it is empty. For who reads and who writes. */
int ticks_check_file(sqlite3 *db, const char *path, bool *ret_is_new, struct err *err);
int ticks_damaged(const char *path, struct err *err); /* -EBADMSG */

/* Where the samples of a series stand in the table of what is sealed. */
static inline int64_t ticks_place(int64_t batch, uint32_t series)
{
    return (int64_t)((uint64_t)batch << 32 | series);
}

#endif
