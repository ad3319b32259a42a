/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wrappers of SQLite's functions, with its errors as -errno. */
#include "store/sqlite.h"

#include "model/job.h"

#include <limits.h>
#include <math.h>
#include <sys/stat.h>

struct str db_fit(struct str text, size_t most)
{
    size_t n = text.n ? strnlen(text.p, text.n < most ? text.n : most) : 0;

    if (n == most)
        while (n && n < text.n && most - n < 4 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
            n--;
    return str_head(text, n);
}

/* What SQLite's primary code means for who uses a store, and what to do. */
static const struct {
    int code, error;
    const char *advice;
} meanings[] = {
    { SQLITE_FULL, ENOSPC, "there is no room: free some, or set a limit to what is kept" },
    { SQLITE_BUSY, EBUSY, "another process writes it: let only one exporter write a store" },
    { SQLITE_LOCKED, EBUSY, "another process writes it: let only one exporter write a store" },
    { SQLITE_NOTADB, EBADMSG, "it is not a store: name another file in --store" },
    { SQLITE_CORRUPT, EBADMSG,
      "the file is damaged: move it away and restore a copy, or begin a new one" },
    { SQLITE_SCHEMA, EBADMSG, "its tables have been changed: restore a copy, or begin a new one" },
    { SQLITE_READONLY, EROFS, "it cannot be written: check its rights and those of its directory" },
    { SQLITE_PERM, EACCES, "check its rights and those of its directory" },
    { SQLITE_AUTH, EACCES, "check its rights and those of its directory" },
    { SQLITE_CANTOPEN, EACCES,
      "it cannot be opened: check that its directory is there, and the rights of both" },
    { SQLITE_IOERR, EIO, "reading or writing it failed: check the disk" },
    { SQLITE_INTERRUPT, ETIMEDOUT, "it took too long: ask for less" },
    { SQLITE_TOOBIG, EFBIG, "a value is larger than SQLite takes" },
    { SQLITE_NOMEM, ENOMEM, "there is no memory" },
    { SQLITE_ERROR, EBADMSG, "its tables are not those of a store: restore a copy" },
};

static bool is_no_room(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* The errno of a failed write, which SQLite keeps with the file: its own or that of its log. */
static int file_errno(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int error = 0;

    sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
    if (is_no_room(error))
        return error;
    sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log);
    if (log && log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
    return is_no_room(error) ? error : sqlite3_system_errno(db);
}

/* Of failed writes SQLite tells apart only some that have no room. */
static int error_of(sqlite3 *db, int code, size_t meaning)
{
    int primary = code & 0xff, error = 0;

    if (db && primary == SQLITE_IOERR)
        error = file_errno(db);
    else if (db && primary == SQLITE_CANTOPEN)
        error = sqlite3_system_errno(db);
    if (is_no_room(error))
        return ENOSPC;
    return error == EROFS || (error == ENOENT && primary == SQLITE_CANTOPEN)
               ? error
               : meanings[meaning].error;
}

static size_t meaning_of(int code)
{
    for (size_t i = 0; i < COUNT(meanings); i++)
        if (meanings[i].code == (code & 0xff))
            return i;
    return COUNT(meanings) - 1;
}

int db_fail_at(const char *path, sqlite3 *db, int code, struct err *err)
{
    size_t meaning = meaning_of(code);
    int error = error_of(db, code, meaning);

    if (error == ENOSPC)
        meaning = meaning_of(SQLITE_FULL);
    return err_set(err, error, "the store %s: %s (SQLite: %s)", path, meanings[meaning].advice,
                   db && sqlite3_extended_errcode(db) == code ? sqlite3_errmsg(db)
                                                              : sqlite3_errstr(code));
}

int db_fail(sqlite3 *db, int code, struct err *err)
{
    const char *path = sqlite3_db_filename(db, "main");

    return db_fail_at(path && *path ? path : "in memory", db, code, err);
}

struct db_files db_files(const char *path)
{
    static const char *const suffixes[DB_FILES] = { "", "-wal", "-shm" };
    struct db_files files = { 0 };

    for (size_t i = 0; i < DB_FILES; i++) {
        char name[PATH_MAX + 8];
        struct stat file;

        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (stat(name, &file) < 0)
            continue;
        files.devices[i] = file.st_dev;
        files.inodes[i] = file.st_ino;
    }
    return files;
}

bool db_files_are(const char *path, const struct db_files *files)
{
    struct db_files now = db_files(path);

    return memcmp(&now, files, sizeof(now)) == 0;
}

/* SQLite would wait for a pipe to be written. What else is wrong, it tells. */
static int check_file(const char *path, struct err *err)
{
    struct stat file;

    if (stat(path, &file) < 0 || S_ISREG(file.st_mode))
        return 0;
    if (S_ISDIR(file.st_mode))
        return err_set(err, EBADMSG,
                       "the store %s is a directory: name a file in it in --store, such as "
                       "%s/sonde.db",
                       path, path);
    return err_set(err, EBADMSG, "the store %s is not a file: name another in --store", path);
}

int db_open(const char *path, bool is_writer, sqlite3 **ret, struct err *err)
{
    int flags = (is_writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
    sqlite3 *db = NULL;
    int code, r = check_file(path, err);

    if (r < 0)
        return r;
    code = sqlite3_open_v2(path, &db, flags, NULL);
    /* SQLite opens a file for reading if it may not write it. */
    if (code == SQLITE_OK && is_writer && sqlite3_db_readonly(db, "main"))
        code = SQLITE_READONLY;
    if (code != SQLITE_OK) {
        r = db_fail_at(path, db, code, err);
        db_close(db);
        return r;
    }
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, STORE_BUSY_MS);
    *ret = db;
    return 0;
}

sqlite3 *db_close(sqlite3 *db)
{
    sqlite3_close_v2(db);
    return NULL;
}

int db_exec(sqlite3 *db, const char *sql, struct err *err)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? 0 : db_fail(db, code, err);
}

int db_get_i64(sqlite3 *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement;
    int r = db_prepare(db, sql, &statement, err);

    if (r < 0)
        return r;
    r = db_step(statement, err);
    if (r >= 0)
        *ret = r > 0 ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct err *err)
{
    int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

    return code == SQLITE_OK ? 0 : db_fail(db, code, err);
}

int db_step(sqlite3_stmt *statement, struct err *err)
{
    int r, code = sqlite3_step(statement);

    if (code == SQLITE_ROW)
        return 1;
    if (code == SQLITE_DONE)
        return 0;
    r = db_fail(sqlite3_db_handle(statement), code, err);
    sqlite3_reset(statement);
    return r;
}

int db_run(sqlite3_stmt *statement, struct err *err)
{
    int r = db_step(statement, err);

    sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

void db_bind_text(sqlite3_stmt *statement, int at, struct str text)
{
    if (text.n)
        sqlite3_bind_text64(statement, at, text.p, text.n, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(statement, at);
}

void db_bind_blob(sqlite3_stmt *statement, int at, struct str bytes)
{
    if (bytes.n)
        sqlite3_bind_blob64(statement, at, bytes.p, bytes.n, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, at);
}

void db_bind_i64(sqlite3_stmt *statement, int at, int64_t value)
{
    sqlite3_bind_int64(statement, at, value);
}

void db_bind_time(sqlite3_stmt *statement, int at, int64_t time)
{
    if (time)
        sqlite3_bind_int64(statement, at, time);
    else
        sqlite3_bind_null(statement, at);
}

void db_bind_u32(sqlite3_stmt *statement, int at, uint32_t value)
{
    if (value != MODEL_UNKNOWN_U32)
        sqlite3_bind_int64(statement, at, value);
    else
        sqlite3_bind_null(statement, at);
}

void db_bind_u64(sqlite3_stmt *statement, int at, uint64_t value)
{
    if (value <= INT64_MAX)
        sqlite3_bind_int64(statement, at, (int64_t)value);
    else
        sqlite3_bind_null(statement, at);
}

void db_bind_double(sqlite3_stmt *statement, int at, double value)
{
    if (isnan(value))
        sqlite3_bind_null(statement, at);
    else
        sqlite3_bind_double(statement, at, value);
}

struct str db_text(sqlite3_stmt *statement, int at)
{
    const unsigned char *text = sqlite3_column_text(statement, at);

    return (struct str){ text ? (const char *)text : "",
                         text ? (size_t)sqlite3_column_bytes(statement, at) : 0 };
}

struct str db_blob(sqlite3_stmt *statement, int at)
{
    const void *bytes = sqlite3_column_blob(statement, at);

    return (struct str){ bytes ? bytes : "",
                         bytes ? (size_t)sqlite3_column_bytes(statement, at) : 0 };
}

int64_t db_i64(sqlite3_stmt *statement, int at, int64_t if_null)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? if_null
                                                             : sqlite3_column_int64(statement, at);
}

uint32_t db_u32(sqlite3_stmt *statement, int at)
{
    int64_t value = db_i64(statement, at, MODEL_UNKNOWN_U32);

    return value >= 0 && value < MODEL_UNKNOWN_U32 ? (uint32_t)value : MODEL_UNKNOWN_U32;
}

uint64_t db_u64(sqlite3_stmt *statement, int at)
{
    int64_t value = db_i64(statement, at, -1);

    return value >= 0 ? (uint64_t)value : MODEL_UNKNOWN_U64;
}

double db_double(sqlite3_stmt *statement, int at)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL ? NAN
                                                             : sqlite3_column_double(statement, at);
}

int db_use_log(sqlite3 *db, const char *what, struct err *err)
{
    sqlite3_stmt *statement;
    int stays = 1, r = db_prepare(db, "PRAGMA journal_mode = WAL", &statement, err);
    bool is_wal;

    if (r < 0)
        return r;
    r = db_step(statement, err);
    is_wal = r > 0 && str_eq(db_text(statement, 0), STR("wal"));
    sqlite3_finalize(statement);
    if (r < 0)
        return r;
    if (!is_wal)
        return err_set(err, EIO,
                       "%s %s: no write-ahead log can be kept there; put it on a local file system",
                       what, sqlite3_db_filename(db, "main"));
    sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &stays);
    return 0;
}
