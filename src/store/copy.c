/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Backup and restore of a store: https://www.sqlite.org/backup.html. */
#include "store/copy.h"

#include "store/lock.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/store.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_PAGES = 1024, NAME_MAX_BYTES = STORE_PATH_MAX + 32 };

/* SQLite's files beside a database. */
static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

static int check_version(sqlite3 *db, const char *path, struct err *err)
{
    int version = 0;
    int r = schema_read_version(db, schema_version(schema_migrations, n_schema_migrations),
                                &version, err);

    if (r == 0 && version == 0)
        r = err_set(err, EBADMSG, "%s is empty, and no store", path);
    return r;
}

/* The whole of it is one read transaction, so that writers change nothing in it. */
static int copy_pages(sqlite3 *from, sqlite3 *to, const atomic_bool *cancelled, struct err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int code = SQLITE_OK;

    if (!backup)
        return db_fail(to, sqlite3_errcode(to), err);
    while (code == SQLITE_OK && !atomic_load(cancelled))
        code = sqlite3_backup_step(backup, STEP_PAGES);
    sqlite3_backup_finish(backup);
    if (code == SQLITE_OK)
        return err_set(err, ECANCELED, "canceled");
    return code == SQLITE_DONE ? 0 : db_fail(to, code, err);
}

static int read_snapshot(const char *path, sqlite3 *to, const atomic_bool *cancelled,
                         struct err *err)
{
    sqlite3 *from = NULL;
    int r = db_open(path, false, &from, err);

    if (r == 0)
        r = db_exec(from, "BEGIN", err);
    if (r == 0)
        r = check_version(from, path, err);
    if (r == 0)
        r = copy_pages(from, to, cancelled, err);
    db_close(from);
    return r;
}

static int check_integrity(sqlite3 *db, const char *path, struct err *err)
{
    sqlite3_stmt *statement;
    int r = db_prepare(db, "PRAGMA integrity_check(1)", &statement, err);

    if (r < 0)
        return r;
    r = db_step(statement, err);
    if (r > 0 && !str_eq(db_text(statement, 0), STR("ok")))
        r = err_set(err, EBADMSG, "%s is damaged, and is not copied: %.*s", path,
                    STR_ARG(str_head(db_text(statement, 0), 200)));
    sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

/* Opened anew, as whoever restores it will. It is one file, without a log beside it. */
static int check_copy(const char *path, const char *source, struct store_copied *ret,
                      struct err *err)
{
    sqlite3 *db = NULL;
    int64_t runs = 0;
    struct stat file;
    int r = db_open(path, true, &db, err);

    if (r == 0)
        r = db_exec(db, "PRAGMA journal_mode = DELETE", err);
    if (r == 0)
        r = check_integrity(db, source, err);
    if (r == 0)
        r = db_get_i64(db, "SELECT count(*) FROM job", &runs, err);
    db_close(db);
    if (r == 0 && stat(path, &file) < 0)
        r = err_set(err, errno, "cannot read %s: %s", path, err_words(errno));
    if (r == 0)
        *ret = (struct store_copied){ (uint64_t)file.st_size, (uint64_t)runs };
    return r;
}

static int make_empty(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);

    if (fd < 0)
        return err_set(err, errno, "cannot make %s: %s%s", path, err_words(errno),
                       errno == EEXIST ? " (another copy is being made, or was interrupted: then "
                                         "remove it)"
                                       : "");
    close(fd);
    return 0;
}

static void remove_all(const char *path)
{
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        char name[NAME_MAX_BYTES];

        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* A checked copy of `from`, at `to`, which was not there. */
static int make_copy(const char *from, const char *to, const atomic_bool *cancelled,
                     struct store_copied *ret, struct err *err)
{
    sqlite3 *db = NULL;
    int r = make_empty(to, err);

    if (r < 0)
        return r;
    r = db_open(to, true, &db, err);
    if (r == 0)
        r = read_snapshot(from, db, cancelled, err);
    db_close(db);
    if (r == 0)
        r = check_copy(to, from, ret, err);
    if (r < 0)
        remove_all(to);
    return r;
}

static int sync_directory(const char *path, struct err *err)
{
    char copy[NAME_MAX_BYTES];
    int fd, r = 0;

    snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        r = err_set(err, errno, "cannot sync the directory of %s: %s", path, err_words(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

static int move(const char *from, const char *to, struct err *err)
{
    if (rename(from, to) < 0)
        return err_set(err, errno, "cannot rename %s to %s: %s", from, to, err_words(errno));
    return 0;
}

static int check_absent(const char *path, const char *advice, struct err *err)
{
    if (access(path, F_OK) == 0)
        return err_set(err, EEXIST, "%s exists: %s", path, advice);
    return 0;
}

int store_backup(struct str url, const char *to, const atomic_bool *cancelled,
                 struct store_copied *ret, struct err *err)
{
    char path[STORE_PATH_MAX], part[NAME_MAX_BYTES];
    int r = store_path(url, path, err);

    if (r == 0 && strlen(to) >= STORE_PATH_MAX)
        r = err_set(err, EINVAL, "the name of the copy is longer than %d bytes",
                    STORE_PATH_MAX - 1);
    if (r == 0)
        r = check_absent(to, "name another file, or remove it", err);
    if (r < 0)
        return r;
    snprintf(part, sizeof(part), "%s.part", to);
    r = make_copy(path, part, cancelled, ret, err);
    if (r == 0)
        r = move(part, to, err);
    return r < 0 ? r : sync_directory(to, err);
}

/* root restores for the user of the exporter: whose the store was, or else its directory. */
static int give_to_owner(const char *part, const char *path, struct err *err)
{
    char copy[STORE_PATH_MAX];
    struct stat owner;

    snprintf(copy, sizeof(copy), "%s", path);
    if (geteuid() != 0 || (stat(path, &owner) < 0 && stat(dirname(copy), &owner) < 0))
        return 0;
    if (chown(part, owner.st_uid, owner.st_gid) < 0)
        return err_set(err, errno, "cannot give %s to user %u: %s", part, owner.st_uid,
                       err_words(errno));
    return 0;
}

/* With its log, which SQLite looks for by name: a new file must not get it. */
static int move_aside(const char *path, const char *replaced, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < COUNT(suffixes) && r == 0; i++) {
        char from[NAME_MAX_BYTES], to[NAME_MAX_BYTES];

        snprintf(from, sizeof(from), "%s%s", path, suffixes[i]);
        snprintf(to, sizeof(to), "%s%s", replaced, suffixes[i]);
        if (access(from, F_OK) == 0)
            r = move(from, to, err);
    }
    return r;
}

/* With the lock held. */
static int replace(const char *path, const char *from, const atomic_bool *cancelled,
                   struct store_copied *ret, struct err *err)
{
    char part[NAME_MAX_BYTES], replaced[NAME_MAX_BYTES];
    int r;

    snprintf(part, sizeof(part), "%s.part", path);
    snprintf(replaced, sizeof(replaced), "%s.replaced", path);
    r = check_absent(replaced, "an earlier restore kept a store there; move it away", err);
    if (r < 0)
        return r;
    r = make_copy(from, part, cancelled, ret, err);
    if (r < 0)
        return r;
    r = give_to_owner(part, path, err);
    if (r == 0)
        r = move_aside(path, replaced, err);
    if (r == 0)
        r = move(part, path, err);
    if (r < 0)
        remove_all(part);
    return r < 0 ? r : sync_directory(path, err);
}

int store_restore(struct str url, const char *from, const atomic_bool *cancelled,
                  struct store_copied *ret, struct err *err)
{
    char path[STORE_PATH_MAX];
    int lock = -1, r = store_path(url, path, err);

    if (r == 0)
        r = store_lock(path, &lock, err);
    if (r == 0)
        r = replace(path, from, cancelled, ret, err);
    if (lock >= 0)
        close(lock);
    return r;
}
