/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the files of src/store speak to SQLite: its codes as the -errno of store.h with a sentence,
 * unknown values as NULL. https://www.sqlite.org/rescode.html */
#ifndef SONDE_STORE_SQLITE_H
#define SONDE_STORE_SQLITE_H

#include "base/err.h"
#include "base/str.h"

#include <sqlite3.h>
#include <stdint.h>
#include <sys/types.h>

/* Texts are cut to this many bytes, in whole characters; node lists to the second. */
enum { STORE_TEXT_MAX = 4096, STORE_LIST_MAX = 1 << 16 };

/* Without what follows a NUL, at most so many bytes, in whole characters. */
struct str db_fit(struct str text, size_t most);

/* How long a write waits for another who writes. */
enum { STORE_BUSY_MS = 2000 };

/* Read-only unless is_writer. An existing file, not yet known to be a store. */
int db_open(const char *path, bool is_writer, sqlite3 **ret, struct err *err);
sqlite3 *db_close(sqlite3 *db); /* returns NULL; its statements must be finalized */

/* What a database is made of: its file, its log and what all who have it open share. While one of
 * them is another than was opened, others do not see what is written, nor does who opens it next.
 */
enum { DB_FILES = 3 };
struct db_files {
    dev_t devices[DB_FILES]; /* of one that is not there: 0, as the next */
    ino_t inodes[DB_FILES];
};
struct db_files db_files(const char *path);
bool db_files_are(const char *path, const struct db_files *files);

/* What the last call on db said, as -errno; `code` is what it returned. */
int db_fail(sqlite3 *db, int code, struct err *err);
int db_fail_at(const char *path, sqlite3 *db, int code, struct err *err); /* of one not yet open */

/* A write-ahead log. Readers without the right to write need its files to be there: they stay. */
int db_use_log(sqlite3 *db, const char *what, struct err *err); /* "the store", for a sentence */

int db_exec(sqlite3 *db, const char *sql, struct err *err);
int db_get_i64(sqlite3 *db, const char *sql, int64_t *ret, struct err *err); /* one number */

/* A statement that is used again and again. */
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct err *err);

/* 1: there is a row, 0: no more, negative: failed (and reset). */
int db_step(sqlite3_stmt *statement, struct err *err);

/* Of a statement without rows; resets it. */
int db_run(sqlite3_stmt *statement, struct err *err);

/* Bindings last until the next reset at least: texts are not copied. Empty texts, unknown numbers,
 * time 0, NAN and numbers past 63 bits are NULL. Parameters count from 1, columns from 0. */
void db_bind_text(sqlite3_stmt *statement, int at, struct str text);
void db_bind_blob(sqlite3_stmt *statement, int at, struct str bytes);
void db_bind_i64(sqlite3_stmt *statement, int at, int64_t value);
void db_bind_time(sqlite3_stmt *statement, int at, int64_t time);
void db_bind_u32(sqlite3_stmt *statement, int at, uint32_t value);
void db_bind_u64(sqlite3_stmt *statement, int at, uint64_t value);
void db_bind_double(sqlite3_stmt *statement, int at, double value);

/* And back; texts and blobs are valid until the next step. */
struct str db_text(sqlite3_stmt *statement, int at);
struct str db_blob(sqlite3_stmt *statement, int at);
int64_t db_i64(sqlite3_stmt *statement, int at, int64_t if_null);
uint32_t db_u32(sqlite3_stmt *statement, int at);
uint64_t db_u64(sqlite3_stmt *statement, int at);
double db_double(sqlite3_stmt *statement, int at);

#endif
