/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store whose file is full, locked, damaged, gone, somebody else's, or whose writer is killed. */
#include "base/num.h"
#include "kill_at_write.h"
#include "store/copy.h"
#include "store/query.h"
#include "store_fixture.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

FIXTURE(fixture_begin, fixture_end)

static int put_one(uint32_t id)
{
    struct job_record record = job_in(JOB_COMPLETED, id, 1000 + id, 90000);
    char name[100];
    int r = store_begin(fixture.store, &fixture.err);

    snprintf(name, sizeof(name), "%u%080u", id, id);
    record.name = str_of(name);
    if (r == 0)
        r = store_put_job(fixture.store, STR("alpha"), &record, &fixture.err);
    if (r == 0)
        r = store_commit(fixture.store, &fixture.err);
    if (r < 0)
        store_rollback(fixture.store);
    return r;
}

/* Runs in a process of its own, whose limits and mounts die with it. */
static int run_apart(void (*run)(void))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, fixture.err.text);  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Fills it until there is no room; gives the number of jobs that are there for sure. */
static uint32_t fill(void)
{
    uint32_t n = 0;
    int r;

    MUST(store_open(str_of(fixture.path), false, &fixture.store, &fixture.err) == 0);
    while ((r = put_one(n + 1)) == 0)
        MUST(++n < 100000);
    MUST(r == -ENOSPC);
    MUST(strstr(fixture.err.text, "no room") && strstr(fixture.err.text, fixture.path));
    MUST(put_one(n + 1) == -ENOSPC);
    return n;
}

static void check_goes_on(uint32_t n)
{
    char expected[60];

    MUST(put_one(n + 1) == 0);
    fixture.store = store_close(fixture.store);
    snprintf(expected, sizeof(expected), "%u|%u", n + 1, n + 1);
    ask("SELECT (SELECT count(*) FROM job), (SELECT sum(count) FROM ended)");
    MUST(strcmp(fixture.answer, expected) == 0);
    MUST(strcmp(ask("PRAGMA integrity_check"), "ok") == 0);
}

static void fill_past_a_limit(void)
{
    struct rlimit limit = { 300000, RLIM_INFINITY };
    uint32_t n;

    signal(SIGXFSZ, SIG_IGN);
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    n = fill();
    limit.rlim_cur = RLIM_INFINITY;
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_goes_on(n);
}

TEST(a_copy_that_is_canceled_leaves_nothing_behind)
{
    const char *copy = test_path("copy.db"), *part = test_path("copy.db.part");
    atomic_bool cancelled = true;
    struct store_copied copied;

    fixture_open();
    OK(put_one(1));
    assert_int_equal(store_backup(str_of(fixture.path), copy, &cancelled, &copied, &fixture.err),
                     -ECANCELED);
    assert_int_equal(access(copy, F_OK), -1);
    assert_int_equal(access(part, F_OK), -1);
    cancelled = false;
    OK(store_backup(str_of(fixture.path), copy, &cancelled, &copied, &fixture.err));
    assert_int_equal(copied.runs, 1);
    assert_int_equal(access(part, F_OK), -1);
}

TEST(a_limit_of_files_is_no_room_and_what_was_committed_stays)
{
    assert_int_equal(run_apart(fill_past_a_limit), 0);
}

static void fill_a_disk(void)
{
    uint32_t n;

    MUST(unshare(CLONE_NEWNS) == 0);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL); /* in a chroot it is no mount, and fails */
    MUST(mount("none", test_dir(), "tmpfs", 0, "size=600k") == 0);
    n = fill();
    MUST(mount("none", test_dir(), "tmpfs", MS_REMOUNT, "size=8m") == 0);
    check_goes_on(n);
    MUST(umount(test_dir()) == 0); /* others see it too if it could not be made private */
}

TEST(a_full_disk_is_told_and_what_was_committed_stays)
{
    need("mounts");
    assert_int_equal(run_apart(fill_a_disk), 0);
}

/* Holds the lock until it is told to go. */
static pid_t lock_elsewhere(int *ret_to_child)
{
    int to_child[2], to_parent[2];
    char byte;
    sqlite3 *db;
    pid_t child;

    assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
    assert_int_equal(pipe2(to_parent, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(to_child[1]);
        if (sqlite3_open(fixture.path, &db) != SQLITE_OK ||
            sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
            _exit(1);
        if (write(to_parent[1], "x", 1) != 1 || read(to_child[0], &byte, 1) < 0)
            _exit(1);
        sqlite3_close(db);
        _exit(0);
    }
    close(to_child[0]);
    close(to_parent[1]);
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    close(to_parent[0]);
    *ret_to_child = to_child[1];
    return child;
}

/* SQLite waits for a lock without sleeping: counted is for how long it would have. */
static unsigned slept_us;

static int count_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    slept_us += (unsigned)us;
    return us;
}

TEST(a_store_that_another_writes_is_busy_for_a_while)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int (*real_sleep)(sqlite3_vfs *, int) = vfs->xSleep;
    int to_child, status;
    pid_t child;

    fixture_open();
    child = lock_elsewhere(&to_child);
    vfs->xSleep = count_sleep;
    assert_int_equal(put_one(1), -EBUSY);
    vfs->xSleep = real_sleep;
    assert_in_range(slept_us, 1000000, 2000000);
    assert_contains(fixture.err.text, "another process writes it");
    close(to_child);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(put_one(1), 0);
}

static void check_refused(int expected, const char *sentence)
{
    assert_int_equal(store_open(str_of(fixture.path), false, &fixture.store, &fixture.err),
                     expected);
    assert_contains(fixture.err.text, sentence);
    assert_contains(fixture.err.text, fixture.path);
}

TEST(a_file_of_something_else_is_refused_and_left_as_it_is)
{
    static const char garbage[8192] = "this is a letter, not a database";
    struct stat file;

    write_bytes(fixture.path, (struct str){ garbage, sizeof(garbage) });
    check_refused(-EBADMSG, "not a store");
    assert_int_equal(stat(fixture.path, &file), 0);
    assert_int_equal(file.st_size, sizeof(garbage));
}

static void make_database(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

TEST(a_database_of_something_else_is_refused)
{
    make_database("CREATE TABLE holiday(day)");
    check_refused(-EBADMSG, "not a store of sonde");
    assert_string_equal(ask("PRAGMA journal_mode"), "delete");
}

TEST(a_store_of_a_newer_sonde_is_refused)
{
    struct buf told;

    fixture_open();
    fixture.store = store_close(fixture.store);
    make_database("PRAGMA user_version = 99");
    check_refused(-EPROTO, "newer sonde");
    buf_init(&told, 100);
    assert_int_equal(store_try_migrations(str_of(fixture.path), &told, &fixture.err), -EPROTO);
    buf_free(&told);
}

TEST(simulated_and_real_jobs_do_not_mix)
{
    OK(store_open(str_of(fixture.path), true, &fixture.store, &fixture.err));
    fixture.store = store_close(fixture.store);
    check_refused(-EINVAL, "is of simulated jobs, these are real");
    OK(store_open(str_of(fixture.path), true, &fixture.store, &fixture.err));
    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    fixture_open();
    fixture.store = store_close(fixture.store);
    assert_int_equal(store_open(str_of(fixture.path), true, &fixture.store, &fixture.err), -EINVAL);
}

TEST(a_file_that_is_removed_or_replaced_is_noticed)
{
    char aside[80];

    fixture_open();
    assert_true(store_is_there(fixture.store));
    assert_int_equal(put_one(1), 0);
    snprintf(aside, sizeof(aside), "%s.aside", fixture.path);
    assert_int_equal(rename(fixture.path, aside), 0);
    assert_false(store_is_there(fixture.store));
    assert_int_equal(put_one(2), -ENOENT);
    assert_contains(fixture.err.text, "removed or replaced");
    write_file(fixture.path, "");
    assert_false(store_is_there(fixture.store));
    assert_int_equal(put_one(2), -ENOENT);
    assert_int_equal(rename(aside, fixture.path), 0);
    assert_int_equal(put_one(2), 0);
}

static void replace(const char *path, bool is_gone)
{
    assert_int_equal(unlink(path), 0);
    if (!is_gone)
        write_file(path, "");
}

TEST(a_log_that_is_removed_or_replaced_is_noticed_and_nothing_in_it_lost)
{
    static const char *const suffixes[] = { "-wal", "-shm" };

    for (size_t i = 0; i < 2 * COUNT(suffixes); i++) {
        struct store_reader *reader = NULL;
        struct cluster_row *clusters;
        struct arena arena = { 0 };
        char path[80];
        size_t n;

        fixture_begin_open();
        assert_int_equal(put_one(1), 0);
        OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
        snprintf(path, sizeof(path), "%s%s", fixture.path, suffixes[i / 2]);
        replace(path, i % 2);
        assert_false(store_is_there(fixture.store));
        assert_int_equal(put_one(2), -ENOENT);
        assert_contains(fixture.err.text, "its log");
        fixture.store = store_close(fixture.store);
        fixture_open();
        assert_true(store_is_there(fixture.store));
        assert_int_equal(put_one(2), 0);
        assert_string_equal(ask("SELECT count(*) FROM job"), "2");
        OK(store_clusters(reader, &arena, &clusters, &n, &fixture.err));
        assert_int_equal(clusters[0].runs, 2);
        store_reader_close(reader);
        arena_clear(&arena);
        fixture_end();
    }
}

TEST(a_store_without_a_directory_or_that_is_one_is_refused)
{
    assert_int_equal(
        store_open(STR("/nonexistent/of/all/store.db"), false, &fixture.store, &fixture.err),
        -ENOENT);
    assert_contains(fixture.err.text, "check its directory");
    assert_int_equal(store_open(str_of(test_dir()), false, &fixture.store, &fixture.err), -EBADMSG);
    assert_contains(fixture.err.text, "name a file in it");
}

static void open_without_capabilities(void)
{
    int r;

    lower_capabilities();
    r = store_open(str_of(fixture.path), false, &fixture.store, &fixture.err);
    MUST(r == -EACCES || r == -EROFS);
    MUST(strstr(fixture.err.text, "rights"));
    MUST(strstr(fixture.err.text, fixture.path));
}

TEST(a_store_that_may_not_be_written_says_so)
{
    int result;

    fixture_open();
    fixture.store = store_close(fixture.store);
    chmod(fixture.path, 0444);
    chmod(test_dir(), 0555);
    result = run_apart(open_without_capabilities);
    chmod(test_dir(), 0755);
    assert_int_equal(result, 0);
}

static int64_t file_bytes(const char *path)
{
    struct stat file;

    assert_int_equal(stat(path, &file), 0);
    return file.st_size;
}

/* From the second page on, every third has a few bytes turned over. */
static void damage(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int64_t bytes = file_bytes(path);

    assert_true(fd >= 0);
    for (int64_t at = 4096; at < bytes; at += 3 * 4096) {
        unsigned char part[64];

        for (int64_t offset = 0; offset < 4096; offset += 1024) {
            assert_int_equal(pread(fd, part, sizeof(part), at + offset), sizeof(part));
            for (size_t i = 0; i < sizeof(part); i++)
                part[i] = (unsigned char)~part[i];
            assert_int_equal(pwrite(fd, part, sizeof(part), at + offset), sizeof(part));
        }
    }
    close(fd);
}

TEST(a_damaged_store_is_told_and_nothing_crashes)
{
    size_t told = 0;

    fixture_open();
    for (uint32_t i = 1; i <= 300; i++)
        assert_int_equal(put_one(i), 0);
    fixture.store = store_close(fixture.store);
    damage(fixture.path);
    if (store_open(str_of(fixture.path), false, &fixture.store, &fixture.err) < 0) {
        assert_int_equal(fixture.err.code, EBADMSG);
        return;
    }
    for (uint32_t i = 1; i <= 400; i++) {
        int r = put_one(i);

        told += r == -EBADMSG;
        assert_true(r == 0 || r == -EBADMSG);
    }
    assert_true(told > 0);
    assert_contains(fixture.err.text, fixture.path);
}

enum { BATCH = 40, KILLS = 30 };

/* Batches without end, each acknowledged by a byte after its commit. */
static void write_batches(uint32_t first, int acknowledge, uint32_t least, unsigned writes)
{
    struct final_record final = {
        .node = STR("n1"), .begin_time = 1, .end_time = 2, .document = STR("{}")
    };

    MUST(store_open(str_of(fixture.path), false, &fixture.store, &fixture.err) == 0);
    for (uint32_t batch = first;; batch++) {
        if (batch == first + least)
            kill_at_write(writes);
        MUST(store_begin(fixture.store, &fixture.err) == 0);
        for (uint32_t i = 0; i < BATCH; i++) {
            uint32_t id = batch * BATCH + i + 1;
            struct job_record record = job_in(JOB_COMPLETED, id, 1000 + id, 900000);

            final.job_id = id;
            MUST(store_put_job(fixture.store, STR("alpha"), &record, &fixture.err) == 0);
            MUST(store_put_final(fixture.store, STR("alpha"), &final, &fixture.err) == 0);
        }
        MUST(store_set_mark(fixture.store, STR("alpha"), "batch", batch, &fixture.err) == 0);
        MUST(store_commit(fixture.store, &fixture.err) == 0);
        MUST(write(acknowledge, "x", 1) == 1);
    }
}

/* A writer that is killed after that many batches and writes; gives the number of batches that it
 * acknowledged. */
static uint32_t kill_in_the_middle(uint32_t first, uint32_t least, unsigned writes)
{
    int acknowledged[2], status;
    uint32_t n = 0;
    pid_t child;
    char byte;

    assert_int_equal(pipe2(acknowledged, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_batches(first, acknowledged[1], least, writes);
    close(acknowledged[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    while (read(acknowledged[0], &byte, 1) == 1)
        n++;
    close(acknowledged[0]);
    return n;
}

static void check_whole(uint32_t acknowledged, uint32_t *ret_batches)
{
    uint64_t jobs;
    char expected[100];

    fixture_open();
    assert_string_equal(ask("PRAGMA integrity_check"), "ok");
    assert_true(num_get_u64(str_of(ask("SELECT count(*) FROM job")), &jobs));
    assert_int_equal(jobs % BATCH, 0);
    assert_true(jobs >= (uint64_t)acknowledged * BATCH);
    snprintf(expected, sizeof(expected), "%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64, jobs,
             3 * jobs, jobs, jobs / BATCH - 1);
    if (jobs)
        assert_string_equal(ask("SELECT (SELECT sum(count) FROM ended),"
                                " (SELECT count(*) FROM life),"
                                " (SELECT count(*) FROM final),"
                                " (SELECT value FROM mark WHERE name = 'batch')"),
                            expected);
    fixture.store = store_close(fixture.store);
    *ret_batches = (uint32_t)(jobs / BATCH);
}

TEST(a_killed_writer_leaves_all_it_acknowledged_and_nothing_half)
{
    uint32_t batches = 0, random = 1;

    for (unsigned i = 0; i < KILLS; i++) {
        uint32_t acknowledged;

        random = random * 1664525 + 1013904223;
        acknowledged = kill_in_the_middle(batches, i % 4, 1 + (random >> 26));
        check_whole(batches + acknowledged, &batches);
    }
    assert_true(batches > KILLS);
}
