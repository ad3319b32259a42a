/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of a store, and how an older store becomes a present one. docs/store.md has them. */
#ifndef SONDE_STORE_SCHEMA_H
#define SONDE_STORE_SCHEMA_H

#include "base/buf.h"
#include "base/err.h"

#include <sqlite3.h>

/* "sond": in the head of the file, so that a store is told from other SQLite files. */
enum { SCHEMA_APPLICATION_ID = 0x736f6e64 };

/* How long a run was there, from its submission to its end, as one of a few classes. Runs that were
 * there in some time [from, to) are looked up by class: those of class i were submitted after
 * from - schema_stay_seconds[i], so that no index is read far beyond what is found. The last but
 * one has no bound; the last are runs that have not ended, or of which nobody knows when. Indexes
 * have this expression in them: it never changes. */
#define SCHEMA_STAY                                                                                \
    "CASE WHEN is_counted = 0 OR end_time IS NULL THEN 7"                                          \
    " WHEN end_time - submit_time < 3600 THEN 0 WHEN end_time - submit_time < 21600 THEN 1"        \
    " WHEN end_time - submit_time < 86400 THEN 2 WHEN end_time - submit_time < 345600 THEN 3"      \
    " WHEN end_time - submit_time < 1382400 THEN 4 WHEN end_time - submit_time < 5529600 THEN 5"   \
    " ELSE 6 END"
/* Has ended, and is not simply COMPLETED: the states that are looked for among many others. That is
 * the text with the number 4, as a new store's first texts are the words of enum job_base. */
#define SCHEMA_HAS_FAILED "is_counted <> 0 AND state <> 4"
enum { SCHEMA_STAYS = 8, SCHEMA_STAYS_BOUND = 6, SCHEMA_STAY_OPEN = 7 };
extern const int64_t schema_stay_seconds[SCHEMA_STAYS_BOUND];

/* A store of version - 1 becomes one of `version`: by sql, by run, or by both in this order. */
struct migration {
    int version;
    const char *sentence; /* what it does */
    const char *sql;
    int (*run)(sqlite3 *db, struct err *err);
};
extern const struct migration schema_migrations[];
extern const size_t n_schema_migrations;

/* What the rows lead to. */
int schema_version(const struct migration *rows, size_t n);

/* Of an open file; 0: it is empty. -EBADMSG if it is something else than a store, -EPROTO if its
 * version is past `newest`. */
int schema_read_version(sqlite3 *db, int newest, int *ret, struct err *err);

/* Applies all rows that are newer than `version`, within the caller's transaction; a line for each
 * in `told` (may be NULL). */
int schema_migrate(sqlite3 *db, int version, const struct migration *rows, size_t n,
                   struct buf *told, struct err *err);

#endif
