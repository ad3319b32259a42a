/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of record/recorder: the thread that writes the store. */
#include "sections.h"

#include "files.h"
#include "manual_clock.h"
#include "record/ledger.h"
#include "record/recorder.h"
#include "record/request.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SUBMIT = 1700000000, NOW = SUBMIT + 100000, QUEUE = 4096 };

int64_t sections_now = NOW;

/* The disk, between SQLite and the real one. */
static struct {
    atomic_bool is_full, hangs;
    atomic_uint writes, hanging;
    atomic_uint dies_after; /* so many more: the process is killed before the next; 0: never */
} disk;

static ssize_t disk_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if (atomic_load(&disk.dies_after) && atomic_fetch_sub(&disk.dies_after, 1) == 1)
        kill(getpid(), SIGKILL);
    atomic_fetch_add(&disk.writes, 1);
    atomic_fetch_add(&disk.hanging, 1);
    while (atomic_load(&disk.hangs))
        sched_yield();
    atomic_fetch_sub(&disk.hanging, 1);
    if (atomic_load(&disk.is_full)) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite(fd, bytes, n, at);
}

/* Memory, between SQLite and the real one. */
static sqlite3_mem_methods real_memory;
static atomic_uint memory_fails_at; /* the allocation, counted from now, that fails; 0: none */

static bool has_memory(void)
{
    return !atomic_load(&memory_fails_at) || atomic_fetch_sub(&memory_fails_at, 1) != 1;
}

static void *allocate(int n)
{
    return has_memory() ? real_memory.xMalloc(n) : NULL;
}

static void *reallocate(void *p, int n)
{
    return has_memory() ? real_memory.xRealloc(p, n) : NULL;
}

static void stand_before_memory(void)
{
    sqlite3_mem_methods memory;

    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
    memory = real_memory;
    memory.xMalloc = allocate;
    memory.xRealloc = reallocate;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* each allocation can fail */
}

static void stand_before_the_disk(void)
{
    sqlite3_vfs *vfs;

    stand_before_memory();
    sqlite3_initialize();
    vfs = sqlite3_vfs_find(NULL);
    for (const char *name = vfs->xNextSystemCall(vfs, NULL); name;
         name = vfs->xNextSystemCall(vfs, name))
        if (str_eq(str_of(name), STR("pwrite")) || str_eq(str_of(name), STR("pwrite64")))
            vfs->xSetSystemCall(vfs, name, (sqlite3_syscall_ptr)disk_pwrite);
}

PROGRAM_FIXTURE(stand_before_the_disk, NULL)

struct fixture {
    struct manual_clock clock;
    const char *path;
    int log_fds[2]; /* a pipe */
    struct log *log;
    char logged[8192];
    size_t n_logged;
    struct recorded_cluster clusters[2];
    bool is_simulated;
    struct recorder *recorder;
};

static struct fixture f;

static const atomic_bool never;

static struct recorder_config config_of(void)
{
    return (struct recorder_config){
        .url = str_of(f.path),
        .is_simulated = f.is_simulated,
        .clusters = f.clusters,
        .n_clusters = COUNT(f.clusters),
        .clock = &f.clock.clock,
        .log = f.log,
    };
}

static void start(void)
{
    struct recorder_config config = config_of();
    struct err err = { 0 };

    if (recorder_start(&config, &f.recorder, &err) < 0)
        fail_msg("%s", err.text);
}

static void set_up_stopped(void)
{
    f = (struct fixture){ .path = test_path("store.db"),
                          .clusters = { { .name = STR("north") }, { .name = STR("south") } } };
    manual_clock_init(&f.clock, NOW * NS_PER_SEC, 50 * NS_PER_SEC);
    assert_int_equal(pipe2(f.log_fds, O_CLOEXEC | O_NONBLOCK), 0);
    f.log = log_new(f.log_fds[1], LOG_INFO, &f.clock.clock);
}

static void set_up(void)
{
    set_up_stopped();
    start();
}

static void remove_files(void)
{
    static const char *const ends[] = { "", "-wal", "-shm" };

    for (size_t i = 0; i < COUNT(ends); i++) {
        char path[80];

        snprintf(path, sizeof(path), "%s%s", f.path, ends[i]);
        unlink(path);
    }
}

static void tear_down(void)
{
    atomic_store(&disk.is_full, false);
    atomic_store(&disk.hangs, false);
    recorder_stop(f.recorder);
    log_free(f.log);
    close(f.log_fds[0]);
    close(f.log_fds[1]);
    manual_clock_destroy(&f.clock);
}

FIXTURE(set_up, tear_down)

static bool has_logged(const char *words)
{
    ssize_t n = read(f.log_fds[0], f.logged + f.n_logged, sizeof(f.logged) - 1 - f.n_logged);

    f.n_logged += n > 0 ? (size_t)n : 0;
    f.logged[f.n_logged] = '\0';
    return strstr(f.logged, words);
}

static size_t lines_logged(void)
{
    size_t lines = 0;

    has_logged("");
    for (const char *p = f.logged; *p; p++)
        lines += *p == '\n';
    return lines;
}

static struct recorder_stats stats_of(void)
{
    struct recorder_stats stats;

    recorder_stats(f.recorder, &stats);
    return stats;
}

static uint64_t errors_of(const char *reason)
{
    struct recorder_stats stats = stats_of();

    for (size_t i = 0; i < RECORDER_REASONS && stats.errors[i].reason; i++)
        if (str_eq(str_of(stats.errors[i].reason), str_of(reason)))
            return stats.errors[i].count;
    return 0;
}

static struct section *jobs_section(uint32_t first_id, size_t n)
{
    struct section *section = section_new(KIND_JOBS);

    section->wall_ns = NOW * NS_PER_SEC;
    section->jobs.n = n;
    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, n);
    for (size_t i = 0; i < n; i++)
        section->jobs.job[i] = (struct job){
            .id = (uint32_t)(first_id + i),
            .array_task_id = MODEL_UNKNOWN_U32,
            .tasks = 1,
            .user_id = 1000,
            .state = { JOB_RUNNING, 0 },
            .user = symbols_put(&section->symbols, STR("alice")),
            .nodes = symbols_put(&section->symbols, STR("n[1-2]")),
            .cpus = 4,
            .node_count = 2,
            .memory_bytes = 1 << 30,
            .time_limit_minutes = 60,
            .priority = 1,
            .submit_time = SUBMIT,
            .start_time = SUBMIT + 5,
        };
    return section;
}

static void note(size_t cluster, struct section *section)
{
    recorder_note(f.recorder, cluster, section);
    section_unref(section);
}

static int put(const struct record_batch *batch, struct err *err)
{
    return recorder_put(f.recorder, batch, clock_mono(&f.clock.clock) + 10 * NS_PER_SEC, &never,
                        err);
}

/* Whatever is asked is answered when what was noted before is written. */
static bool is_answered(void)
{
    const char *name = "any";
    int64_t value;
    struct err err;

    return recorder_get_marks(f.recorder, 0, &name, &value, 1, INT64_MAX, &never, &err) == 0;
}

static void settle(void)
{
    wait_until_true(is_answered());
}

/* What slurmctld's clock says now. */
static void note_time(size_t cluster, int64_t seconds)
{
    struct section *section = section_new(KIND_DIAG);

    section->wall_ns = clock_wall(&f.clock.clock);
    section->mono_ns = clock_mono(&f.clock.clock);
    section->diag.time = seconds;
    note(cluster, section);
}

static int64_t wall_seconds(void)
{
    return clock_wall(&f.clock.clock) / NS_PER_SEC;
}

/* What is written and what is due are done in turn: what is due now is done when a second question
 * is answered. */
static void pass_time(int64_t seconds)
{
    manual_clock_advance(&f.clock, seconds * NS_PER_SEC);
    settle();
    settle();
}

static struct job_record record_of(uint32_t id)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = SUBMIT;
    record.as_of = NOW;
    record.tasks = 1;
    record.state = (struct job_state){ JOB_COMPLETED, 0 };
    record.start_time = SUBMIT + 5;
    record.end_time = SUBMIT + 10;
    record.user = STR("bob");
    record.tres = STR("cpu=4,mem=1G,node=1");
    return record;
}

static int64_t query(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t value;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

TEST(only_what_has_changed_since_the_last_section_is_written)
{
    struct section *third = jobs_section(1, 100);

    note(0, jobs_section(1, 100));
    settle();
    assert_int_equal(stats_of().jobs, 100);
    note(0, jobs_section(1, 100));
    wait_until_true(stats_of().unchanged == 100);
    assert_int_equal(stats_of().jobs, 100);
    assert_int_equal(stats_of().commits, 1);
    third->jobs.job[42].state.flags = JOB_COMPLETING;
    third->wall_ns += NS_PER_SEC;
    note(0, third);
    wait_until_true(stats_of().unchanged == 199);
    assert_int_equal(stats_of().jobs, 101);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 100);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job j JOIN text t ON t.id = j.state "
                                   "WHERE t.value = 'RUNNING+COMPLETING' AND job_id = 43"),
                     1);
}

TEST(a_first_section_of_many_jobs_is_written_in_several_transactions, .is_bulk = true)
{
    note(0, jobs_section(1, 25000));
    for (int i = 0; i < 3; i++)
        settle();
    assert_int_equal(stats_of().jobs, 25000);
    assert_int_equal(stats_of().commits, 3);
    assert_int_equal(stats_of().replaced, 0);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 25000);
}

/* As squeue --array tells it: a line for each task that waits, all with the array's id. */
static struct section *array_section(uint32_t first_task, size_t n, int64_t wall)
{
    struct section *section = jobs_section(7, n);

    section->wall_ns = wall * NS_PER_SEC;
    for (size_t i = 0; i < n; i++) {
        struct job *job = &section->jobs.job[i];

        job->id = job->array_job_id = 7;
        job->array_task_id = first_task + (uint32_t)i;
        job->state.base = JOB_PENDING;
        job->nodes = 0;
    }
    return section;
}

TEST(tasks_of_an_array_that_wait_are_one_run_without_a_number_until_one_is_left)
{
    note(0, array_section(3, 1, NOW)); /* as if it had been the only one */
    settle();
    note(0, array_section(3, 5, NOW + 1));
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 1);
    assert_int_equal(query(f.path, "SELECT tasks FROM job"), 5);
    assert_int_equal(query(f.path, "SELECT array_task_id IS NULL FROM job"), 1);
    note(0, array_section(7, 1, NOW + 2));
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 1);
    assert_int_equal(query(f.path, "SELECT tasks FROM job"), 1);
    assert_int_equal(query(f.path, "SELECT array_task_id FROM job"), 7);
}

TEST(jobs_of_whom_only_the_owner_is_told_are_not_recorded)
{
    struct section *owners = jobs_section(1, 3);

    for (size_t i = 0; i < owners->jobs.n; i++)
        owners->jobs.job[i].submit_time = 0;
    note(0, owners);
    wait_until_true(stats_of().skipped == 3);
    assert_int_equal(stats_of().jobs, 0);
    wait_until_true(has_logged("not recorded"));
}

TEST(equal_ids_on_two_clusters_are_two_jobs)
{
    note(0, jobs_section(1, 10));
    note(1, jobs_section(1, 20));
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 30);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job j JOIN cluster c ON c.id = j.cluster "
                                   "WHERE c.name = 'south'"),
                     20);
}

/* A look at one job now, by the fixture's clock. */
static void look_at(struct job_state state)
{
    struct section *section = jobs_section(1, 1);
    struct job *job = &section->jobs.job[0];

    section->wall_ns = clock_wall(&f.clock.clock);
    job->state = state;
    job->nodes = state.base == JOB_PENDING ? 0 : job->nodes;
    job->end_time = SUBMIT + 10;
    note(0, section);
    settle();
}

static int64_t has_state(const char *state)
{
    char sql[200];

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM jobs WHERE state = '%s'", state);
    return query(f.path, sql);
}

static int64_t has_lived(const char *state)
{
    char sql[200];

    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM life JOIN text ON text.id = state WHERE value = '%s'", state);
    return query(f.path, sql);
}

TEST(where_the_clock_has_gone_back_jobs_are_recorded_all_the_same)
{
    look_at((struct job_state){ JOB_PENDING, 0 });
    assert_int_equal(has_state("PENDING"), 1);
    manual_clock_set_wall(&f.clock, (NOW - 3600) * NS_PER_SEC);
    look_at((struct job_state){ JOB_RUNNING, 0 });
    assert_int_equal(has_state("RUNNING"), 1);

    /* What was newest is known to another process, too. */
    f.recorder = recorder_stop(f.recorder);
    start();
    look_at((struct job_state){ JOB_SUSPENDED, 0 });
    assert_int_equal(has_state("SUSPENDED"), 1);
    look_at((struct job_state){ JOB_RUNNING, JOB_COMPLETING });
    assert_int_equal(has_state("RUNNING+COMPLETING"), 1);
    look_at((struct job_state){ JOB_COMPLETED, 0 });
    assert_int_equal(has_state("COMPLETED"), 1);
    assert_int_equal(query(f.path, "SELECT count(*) FROM life"), 5);
    assert_int_equal(has_lived("RUNNING"), 1);
    assert_int_equal(has_lived("SUSPENDED"), 1);
    assert_int_equal(query(f.path, "SELECT max(as_of) FROM job"), NOW);
    assert_int_equal(query(f.path, "SELECT sum(count) FROM ended"), 1);
}

static struct section *nodes_section(int n)
{
    struct section *section = section_new(KIND_NODES);

    section->wall_ns = (NOW + n) * NS_PER_SEC;
    for (int i = 0; i < n; i++)
        section_add(section, "%c unknown cpus=%d\n", 'a' + i, 10 * n);
    return section;
}

TEST(nodes_are_kept_as_they_were_last_seen_once_a_minute)
{
    note(0, nodes_section(4));
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM node"), 4);
    note(0, nodes_section(3));
    settle();
    manual_clock_advance(&f.clock, 59 * NS_PER_SEC);
    note(0, nodes_section(2));
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM node"), 4);
    assert_true(stats_of().behind_seconds == 0);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, NS_PER_SEC);
    wait_until_true(query(f.path, "SELECT count(*) FROM node") == 2);
    assert_int_equal(query(f.path, "SELECT cpus FROM node WHERE name = 'a'"), 20);
    assert_int_equal(query(f.path, "SELECT seen_time FROM node WHERE name = 'a'"), NOW + 2);
    assert_int_equal(stats_of().replaced, 0);
}

static void note_shares(double factor, int64_t wall)
{
    struct section *section = shares_from("physics factor=%g\n", factor);

    section->wall_ns = wall * NS_PER_SEC;
    note(0, section);
    settle();
}

TEST(what_else_a_cluster_tells_is_kept_once_a_minute_and_written_if_it_differs)
{
    sqlite3 *db;

    note_shares(0.5, NOW);
    assert_int_equal(query(f.path, "SELECT time FROM section WHERE kind = 'shares'"), NOW);
    note_shares(0.25, NOW + 10); /* it is not due yet */
    assert_int_equal(query(f.path, "SELECT time FROM section"), NOW);
    manual_clock_advance(&f.clock, 61 * NS_PER_SEC);
    wait_until_true(query(f.path, "SELECT time FROM section") == NOW + 10);

    /* A document that is not ours shows whether it is written. */
    assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, "UPDATE section SET document = x'01'", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    manual_clock_advance(&f.clock, 61 * NS_PER_SEC);
    note_shares(0.25, NOW + 70);
    assert_int_equal(query(f.path, "SELECT time FROM section"), NOW + 70);
    assert_int_equal(query(f.path, "SELECT document = x'01' FROM section"), 1);
    manual_clock_advance(&f.clock, 61 * NS_PER_SEC);
    note_shares(0.75, NOW + 140);
    assert_int_equal(query(f.path, "SELECT time FROM section"), NOW + 140);
    assert_int_equal(query(f.path, "SELECT document = x'01' FROM section"), 0);
}

TEST(what_slurm_does_not_tell_is_passed_over)
{
    struct section *section = section_new(KIND_ENDED);

    section->wall_ns = NOW * NS_PER_SEC;
    note(0, section);
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM section"), 0);
}

TEST(that_the_queue_is_looked_at_is_told_also_while_nothing_happens)
{
    static const char seen[] = "SELECT value FROM mark WHERE name = 'jobs_seen'";
    static const int64_t seconds[] = { 0, 30, 61 };

    for (size_t i = 0; i < COUNT(seconds); i++) {
        struct section *section = jobs_section(1, 3);

        section->wall_ns += seconds[i] * NS_PER_SEC;
        note(0, section);
        wait_until_true(stats_of().jobs == 3 && stats_of().unchanged == 3 * i);
        assert_int_equal(query(f.path, seen), NOW + (i < 2 ? 0 : seconds[i]));
    }
}

TEST(nothing_of_a_cluster_is_written_until_its_name_is_known, .set_up = set_up_stopped)
{
    struct job_record job = record_of(7);
    char name[40];
    struct err err;

    f.clusters[1].name = STR("");
    start();
    assert_false(recorder_get_name(f.recorder, 1, name, sizeof(name)));
    assert_int_equal(recorder_find(f.recorder, STR("south")), -1);
    assert_int_equal(put(&(struct record_batch){ .cluster = 1, .jobs = &job, .n_jobs = 1 }, &err),
                     -EAGAIN);
    note(1, jobs_section(1, 5));
    note(1, jobs_section(1, 6));
    note(0, jobs_section(1, 1));
    wait_until_true(stats_of().jobs == 1);
    recorder_name(f.recorder, 1, STR("south"));
    wait_until_true(stats_of().jobs == 7);
    assert_int_equal(stats_of().replaced, 1);
    recorder_name(f.recorder, 1, STR("west"));
    assert_true(recorder_get_name(f.recorder, 1, name, sizeof(name)));
    assert_string_equal(name, "south");
    assert_int_equal(recorder_find(f.recorder, STR("south")), 1);
    assert_int_equal(recorder_find(f.recorder, STR("north")), 0);
    assert_int_equal(recorder_n_clusters(f.recorder), 2);
}

TEST(a_batch_is_written_with_its_marks_when_it_is_acknowledged)
{
    struct job_record jobs[] = { record_of(1), record_of(2) };
    const struct final_record final = { .job_id = 1,
                                        .node = STR("n1"),
                                        .begin_time = SUBMIT,
                                        .end_time = SUBMIT + 9,
                                        .document = STR("{}") };
    const struct record_mark mark = { "accounted_until", 12345 };
    const char *const names[] = { "accounted_until", "accounted_since" };
    int64_t values[2];
    struct err err = { 0 };

    assert_int_equal(put(&(struct record_batch){ .jobs = jobs,
                                                 .n_jobs = 2,
                                                 .finals = &final,
                                                 .n_finals = 1,
                                                 .marks = &mark,
                                                 .n_marks = 1 },
                         &err),
                     0);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 2);
    assert_int_equal(query(f.path, "SELECT count(*) FROM final"), 1);
    assert_int_equal(stats_of().jobs, 2);
    assert_int_equal(stats_of().finals, 1);
    assert_int_equal(recorder_get_marks(f.recorder, 0, names, values, 2, INT64_MAX, &never, &err),
                     0);
    assert_int_equal(values[0], 12345);
    assert_int_equal(values[1], 0);
    assert_int_equal(recorder_get_marks(f.recorder, 1, names, values, 1, INT64_MAX, &never, &err),
                     0);
    assert_int_equal(values[0], 0);
}

TEST(that_too_many_records_are_of_unknown_jobs_is_logged_once_a_minute)
{
    const size_t n = STORE_HELD_MAX + 2;
    struct record_batch more = { .n_finals = 1 };
    struct final_record *finals = heap_array(n, sizeof(*finals));
    struct err err = { 0 };

    for (size_t i = 0; i < n; i++)
        finals[i] = (struct final_record){ .job_id = (uint32_t)i + 1,
                                           .node = STR("n1"),
                                           .begin_time = SUBMIT,
                                           .end_time = SUBMIT + 9,
                                           .document = STR("{}") };
    assert_int_equal(put(&(struct record_batch){ .finals = finals, .n_finals = n }, &err), 0);
    wait_until_true(has_logged("jobs that Slurm does not know"));
    assert_non_null(strstr(f.logged, "records=2"));
    for (uint32_t id = 1; id <= 3; id++) { /* dropped long ago, and come again */
        finals[id].job_id = id;
        more.finals = &finals[id];
        assert_int_equal(put(&more, &err), 0);
    }
    manual_clock_advance(&f.clock, 60 * NS_PER_SEC);
    wait_until_true(has_logged("records=3"));
    free(finals);
}

TEST(a_run_that_the_queue_no_longer_shows_was_last_seen_before_also_over_a_restart)
{
    static const char gone[] = "SELECT group_concat(job_id, '') FROM (SELECT job_id FROM job WHERE"
                               " last_seen >= as_of ORDER BY job_id)";

    note(0, jobs_section(1, 5));
    settle();
    note(0, jobs_section(2, 4));
    settle();
    wait_until_true(query(f.path, gone) == 1);
    f.recorder = recorder_stop(f.recorder);
    start();
    note(0, jobs_section(4, 2));
    settle();
    wait_until_true(query(f.path, gone) == 123);
    note(0, jobs_section(2, 4));
    settle();
    wait_until_true(query(f.path, gone) == 1);
}

TEST(runs_that_are_still_seen_are_not_told_as_open)
{
    struct err err = { 0 };
    uint32_t ids[2];
    size_t n;

    note(0, jobs_section(1, 10));
    settle();
    note(0, jobs_section(4, 7));
    wait_until_true(stats_of().unchanged == 7);
    assert_int_equal(recorder_open_runs(f.recorder, 0, NOW + 1000, 0, ids, COUNT(ids), &n,
                                        INT64_MAX, &never, &err),
                     0);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    assert_int_equal(recorder_open_runs(f.recorder, 0, NOW + 1000, ids[1], ids, COUNT(ids), &n,
                                        INT64_MAX, &never, &err),
                     0);
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], 3);
    assert_int_equal(
        recorder_open_runs(f.recorder, 0, NOW, 0, ids, COUNT(ids), &n, INT64_MAX, &never, &err), 0);
    assert_int_equal(n, 0);
}

TEST(a_full_disk_disturbs_nobody_and_is_caught_up_with)
{
    struct job_record job = record_of(700);
    const struct record_batch batch = { .jobs = &job, .n_jobs = 1 };
    struct err err = { 0 };
    unsigned writes;

    note(0, jobs_section(1, 10));
    settle();
    atomic_store(&disk.is_full, true);
    assert_int_equal(put(&batch, &err), -ENOSPC);
    assert_contains(err.text, "room");
    assert_false(stats_of().is_up);
    assert_int_equal(errors_of("no_space"), 1);

    /* Until it is tried again, nobody waits for it. */
    writes = atomic_load(&disk.writes);
    note(0, jobs_section(1, 20));
    assert_int_equal(put(&batch, &err), -ENOSPC);
    assert_int_equal(atomic_load(&disk.writes), writes);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, NS_PER_SEC);
    wait_until_true(errors_of("no_space") == 2);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    assert_true(stats_of().behind_seconds == 1);

    /* The second pause is longer. */
    note(0, jobs_section(1, 30));
    atomic_store(&disk.is_full, false);
    manual_clock_advance(&f.clock, NS_PER_SEC);
    assert_int_equal(put(&batch, &err), -ENOSPC);
    manual_clock_advance(&f.clock, NS_PER_SEC);
    settle();
    assert_true(stats_of().is_up);
    assert_int_equal(stats_of().replaced, 1);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 30);
    assert_int_equal(put(&batch, &err), 0);
    wait_until_true(stats_of().commits == 3);
}

TEST(trouble_is_logged_when_it_begins_and_when_it_is_over)
{
    settle();
    atomic_store(&disk.is_full, true);
    note(0, jobs_section(1, 1));
    for (int i = 0; i < 3; i++) {
        wait_until_true(errors_of("no_space") == (uint64_t)i + 1);
        assert_true(manual_clock_await_waiters(&f.clock, 1));
        manual_clock_advance(&f.clock, 60 * NS_PER_SEC);
    }
    wait_until_true(errors_of("no_space") == 4);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    assert_true(has_logged("level=error"));
    assert_true(has_logged("there is no room"));
    assert_int_equal(lines_logged(), 1);
    atomic_store(&disk.is_full, false);
    manual_clock_advance(&f.clock, 60 * NS_PER_SEC);
    wait_until_true(has_logged("written again"));
    assert_int_equal(lines_logged(), 2);
}

/* SQLite waits for a lock without sleeping: counted is for how long it would have. */
static atomic_uint slept_us;

static int count_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    atomic_fetch_add(&slept_us, (unsigned)us);
    return us;
}

TEST(a_store_that_another_has_locked_is_written_later)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int (*real_sleep)(sqlite3_vfs *, int) = vfs->xSleep;
    sqlite3 *other;

    note(0, jobs_section(1, 1));
    settle();
    assert_int_equal(sqlite3_open(f.path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    vfs->xSleep = count_sleep;
    note(0, jobs_section(1, 9));
    wait_until_true(errors_of("busy") == 1);
    vfs->xSleep = real_sleep;
    assert_in_range(slept_us, 1000000, 2000000);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, NS_PER_SEC);
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 9);
}

TEST(a_file_that_is_removed_is_made_anew_with_all_that_is_known)
{
    struct job_record job = record_of(700);
    struct err err = { 0 };

    note(0, jobs_section(1, 10));
    settle();
    remove_files();
    note(0, jobs_section(1, 10));
    wait_until_true(stats_of().jobs == 20);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 10);
    assert_int_equal(errors_of("missing"), 1);
    wait_until_true(has_logged("removed or replaced"));
    remove_files();
    assert_int_equal(put(&(struct record_batch){ .jobs = &job, .n_jobs = 1 }, &err), 0);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 1);
}

TEST(a_file_that_is_no_store_is_told_and_left_alone)
{
    static const char garbage[] = "this is somebody's letter, and by no means a store of jobs";
    struct stat about;

    note(0, jobs_section(1, 10));
    settle();
    remove_files();
    write_file(f.path, garbage);
    note(0, jobs_section(1, 10));
    wait_until_true(errors_of("garbled") == 1);
    assert_int_equal(stat(f.path, &about), 0);
    assert_int_equal(about.st_size, sizeof(garbage) - 1);
    remove_files();
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, NS_PER_SEC);
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 10);
}

TEST(a_store_that_cannot_be_opened_yet_is_opened_when_it_can, .set_up = set_up_stopped)
{
    write_file(f.path, "this is not a store, and somebody will soon move it away");
    start();
    assert_false(stats_of().is_up);
    note(0, jobs_section(1, 10));
    remove_files();
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, NS_PER_SEC);
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 10);
}

TEST(a_store_that_waiting_does_not_mend_is_refused, .set_up = set_up_stopped)
{
    struct recorder_config config = config_of();
    struct err err = { 0 };

    config.url = STR("mysql://somewhere/sonde");
    assert_int_equal(recorder_start(&config, &f.recorder, &err), -EINVAL);
    assert_true(err.text[0]);
    start();
    note(0, jobs_section(1, 1));
    f.recorder = recorder_stop(f.recorder);
    config = config_of();
    config.is_simulated = true;
    assert_int_equal(recorder_start(&config, &f.recorder, &err), -EINVAL);
}

struct caller {
    pthread_t thread;
    int64_t deadline_ns;
    uint32_t id;
    atomic_bool is_cancelled;
    int code;
};

static void *call(void *arg)
{
    struct caller *caller = arg;
    struct job_record job = record_of(caller->id);
    struct err err;

    caller->code = recorder_put(f.recorder, &(struct record_batch){ .jobs = &job, .n_jobs = 1 },
                                caller->deadline_ns, &caller->is_cancelled, &err);
    return NULL;
}

/* Hangs the disk, and the recorder's thread in it. */
static void hang(void)
{
    settle();
    atomic_store(&disk.hangs, true);
    note(0, jobs_section(1, 1));
    wait_until_true(atomic_load(&disk.hanging) == 1);
}

static void call_from_a_thread(struct caller *caller, uint32_t id)
{
    *caller = (struct caller){ .id = id, .deadline_ns = INT64_MAX };
    assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static void count(void *ctx)
{
    atomic_fetch_add((atomic_uint *)ctx, 1);
}

static int submit(uint32_t id, atomic_uint *notified, struct request **ret)
{
    struct job_record job = record_of(id);
    struct err err;

    return recorder_submit(f.recorder, &(struct record_batch){ .jobs = &job, .n_jobs = 1 }, count,
                           notified, ret, &err);
}

TEST(batches_that_wait_are_written_at_once_and_too_many_are_told_to_come_again)
{
    static struct request *requests[QUEUE];
    atomic_uint notified = 0;
    struct request *refused;
    struct err err;

    hang();
    for (size_t i = 0; i < QUEUE; i++)
        assert_int_equal(submit((uint32_t)(2000 + i), &notified, &requests[i]), 0);
    assert_int_equal(submit(1000, &notified, &refused), -EAGAIN);
    assert_null(refused);
    for (size_t i = 0; i < QUEUE; i++)
        assert_int_equal(recorder_check(requests[i], &err), -EINPROGRESS);
    atomic_store(&disk.hangs, false);
    wait_until_true(atomic_load(&notified) == QUEUE);
    for (size_t i = 0; i < QUEUE; i++) {
        assert_int_equal(recorder_check(requests[i], &err), 0);
        recorder_forget(f.recorder, requests[i]);
    }
    assert_int_equal(stats_of().commits, 2);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), QUEUE + 1);
}

TEST(a_batch_that_is_forgotten_is_not_written_and_tells_nobody)
{
    atomic_uint notified = 0, last = 0;
    struct request *taken, *waiting, *after;

    settle();
    atomic_store(&disk.hangs, true);
    assert_int_equal(submit(10, &notified, &taken), 0);
    wait_until_true(atomic_load(&disk.hanging) == 1);
    assert_int_equal(submit(11, &notified, &waiting), 0);
    recorder_forget(f.recorder, taken); /* the thread has it */
    recorder_forget(f.recorder, waiting);
    recorder_forget(f.recorder, NULL);
    assert_int_equal(submit(12, &last, &after), 0);
    atomic_store(&disk.hangs, false);
    wait_until_true(atomic_load(&last) == 1);
    recorder_forget(f.recorder, after);
    assert_int_equal(atomic_load(&notified), 0);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job WHERE job_id = 11"), 0);
}

TEST(a_batch_that_the_disk_does_not_take_says_why)
{
    atomic_uint notified = 0;
    struct request *request;
    struct err err = { 0 };

    settle();
    atomic_store(&disk.is_full, true);
    assert_int_equal(submit(10, &notified, &request), 0);
    wait_until_true(atomic_load(&notified) == 1);
    assert_int_equal(recorder_check(request, &err), -ENOSPC);
    assert_true(err.text[0]);
    recorder_forget(f.recorder, request);
    assert_int_equal(submit(11, &notified, &request), -ENOSPC);
}

TEST(who_gives_up_leaves_at_once_though_the_disk_hangs)
{
    struct caller taken, cancelled, late;
    struct job_record job = record_of(1);
    struct err err;

    settle();
    atomic_store(&disk.hangs, true);
    call_from_a_thread(&taken, 10); /* and is being written when it gives up */
    wait_until_true(atomic_load(&disk.hanging) == 1);
    call_from_a_thread(&cancelled, 11);
    late = (struct caller){ .id = 12, .deadline_ns = clock_mono(&f.clock.clock) + 5 * NS_PER_SEC };
    assert_int_equal(pthread_create(&late.thread, NULL, call, &late), 0);
    assert_true(manual_clock_await_waiters(&f.clock, 3));
    assert_true(stats_of().behind_seconds == 0);
    atomic_store(&taken.is_cancelled, true);
    atomic_store(&cancelled.is_cancelled, true);
    manual_clock_advance(&f.clock, 100 * NS_PER_MS);
    pthread_join(taken.thread, NULL);
    assert_int_equal(taken.code, -ECANCELED);
    pthread_join(cancelled.thread, NULL);
    assert_int_equal(cancelled.code, -ECANCELED);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, 5 * NS_PER_SEC);
    pthread_join(late.thread, NULL);
    assert_int_equal(late.code, -ETIMEDOUT);
    assert_true(stats_of().behind_seconds > 5);

    /* Who refreshes is not held up either. */
    note(1, jobs_section(1, 3));
    atomic_store(&disk.hangs, false);
    assert_int_equal(put(&(struct record_batch){ .jobs = &job, .n_jobs = 1 }, &err), 0);
    settle();
    assert_int_equal(query(f.path, "SELECT count(*) FROM job WHERE job_id IN (11, 12)"), 0);
}

static void *save(void *until_ns)
{
    recorder_save(f.recorder, *(const int64_t *)until_ns);
    return NULL;
}

TEST(a_save_has_what_waits_written_and_frees_nothing)
{
    int64_t until_ns = INT64_MAX;

    settle();
    note(0, jobs_section(1, 1000));
    save(&until_ns);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 1000);
    note(0, jobs_section(1, 2000)); /* a refresher that does not know yet */
    save(&until_ns);
}

TEST(a_save_gives_up_in_time_though_the_disk_hangs)
{
    int64_t until_ns = clock_mono(&f.clock.clock) + 5 * NS_PER_SEC;
    pthread_t thread;

    settle();
    atomic_store(&disk.hangs, true);
    note(0, jobs_section(1, 1000));
    wait_until_true(atomic_load(&disk.hanging) == 1);
    assert_int_equal(pthread_create(&thread, NULL, save, &until_ns), 0);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, 5 * NS_PER_SEC);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&disk.hanging), 1);
    atomic_store(&disk.hangs, false);
}

TEST(what_waits_is_written_before_the_end)
{
    note(0, nodes_section(4));
    settle();
    note(0, nodes_section(3));
    note(0, jobs_section(1, 1000));
    note(1, jobs_section(1, 1000));
    f.recorder = recorder_stop(f.recorder);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 2000);
    assert_int_equal(query(f.path, "SELECT count(*) FROM node"), 3);
}

TEST(a_log_that_is_removed_costs_nothing_that_was_acknowledged)
{
    struct job_record job = record_of(1);
    struct err err = { 0 };
    char log[80];

    assert_int_equal(put(&(struct record_batch){ .jobs = &job, .n_jobs = 1 }, &err), 0);
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    snprintf(log, sizeof(log), "%s-wal", f.path);
    assert_int_equal(unlink(log), 0);
    job = record_of(2);
    if (put(&(struct record_batch){ .jobs = &job, .n_jobs = 1 }, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 2);
    wait_until_true(has_logged("its log was removed"));
}

TEST(runs_that_ended_long_ago_are_deleted_and_others_kept, .set_up = set_up_stopped)
{
    struct job_record jobs[1201];
    struct err err = { 0 };

    f.clusters[0].retention_ns = 3600 * NS_PER_SEC;
    f.clusters[0].name = STR("");
    start();
    assert_true(manual_clock_await_waiters(&f.clock, 1)); /* nothing can be deleted yet */
    recorder_name(f.recorder, 0, STR("north"));
    for (uint32_t i = 0; i < COUNT(jobs); i++)
        jobs[i] = record_of(i + 1);
    jobs[1200].end_time = NOW - 10;
    for (size_t cluster = 0; cluster < 2; cluster++)
        assert_int_equal(
            put(&(struct record_batch){ .cluster = cluster, .jobs = jobs, .n_jobs = COUNT(jobs) },
                &err),
            0);
    note_time(0, NOW);
    pass_time(60);
    wait_until_true(query(f.path, "SELECT count(*) FROM job") == 1202);
    wait_until_true(has_logged("msg=\"deleted recorded jobs past their retention\" cluster=north "
                               "runs=1200"));
    pass_time(60); /* its size is looked at once a minute */
    assert_int_equal(stats_of().size.runs, 1202);
    assert_true(stats_of().size.bytes > 100000);
}

static const int64_t day = 24 * 3600;

/* Three jobs that ended a day ago, 90 days before their time is up. */
static void start_with_jobs(void)
{
    struct job_record jobs[3];
    struct err err = { 0 };

    f.clusters[0].retention_ns = 90 * day * NS_PER_SEC;
    start();
    for (uint32_t i = 0; i < COUNT(jobs); i++)
        jobs[i] = record_of(i + 1);
    assert_int_equal(put(&(struct record_batch){ .jobs = jobs, .n_jobs = COUNT(jobs) }, &err), 0);
}

static void restart_ahead(int64_t seconds)
{
    recorder_stop(f.recorder);
    manual_clock_set_wall(&f.clock, (wall_seconds() + seconds) * NS_PER_SEC);
    start();
}

static int64_t count_runs(void)
{
    return query(f.path, "SELECT count(*) FROM job");
}

static bool is_retention_paused(void)
{
    return stats_of().is_retention_paused;
}

TEST(a_clock_that_is_ahead_of_slurmctlds_deletes_nothing, .set_up = set_up_stopped)
{
    start_with_jobs();
    assert_false(is_retention_paused());
    restart_ahead(100 * day);
    note_time(0, NOW);
    pass_time(60);
    assert_int_equal(count_runs(), 3);
    assert_true(has_logged("the clock differs from slurmctld's"));
    wait_until_true(is_retention_paused());
    pass_time(7200);
    assert_int_equal(count_runs(), 3);
    manual_clock_set_wall(&f.clock, (wall_seconds() - 100 * day) * NS_PER_SEC);
    pass_time(60);
    assert_int_equal(count_runs(), 3);
    assert_true(has_logged("the clock is trusted again"));
    wait_until_true(!is_retention_paused());
}

TEST(a_clock_that_nothing_confirms_deletes_after_an_hour_without_a_jump, .set_up = set_up_stopped)
{
    start_with_jobs();
    restart_ahead(100 * day);
    pass_time(60);
    assert_int_equal(count_runs(), 3);
    manual_clock_set_wall(&f.clock, (wall_seconds() + day) * NS_PER_SEC);
    pass_time(3540);
    assert_true(has_logged("the clock jumped"));
    pass_time(60);
    assert_int_equal(count_runs(), 3);
    pass_time(3600);
    wait_until_true(count_runs() == 0);
    wait_until_true(has_logged("runs=3"));
}

TEST(a_clock_that_jumps_while_jobs_are_recorded_deletes_nothing, .set_up = set_up_stopped)
{
    start_with_jobs();
    note_time(0, NOW);
    pass_time(60);
    manual_clock_set_wall(&f.clock, (wall_seconds() + 100 * day) * NS_PER_SEC);
    pass_time(60);
    assert_int_equal(count_runs(), 3);
    assert_true(has_logged("the clock differs from slurmctld's"));
}

/* slurmctld runs on the same host: it agrees. */
TEST(a_clock_far_ahead_of_the_last_look_deletes_nothing_at_first, .set_up = set_up_stopped)
{
    start_with_jobs();
    note(0, jobs_section(10, 1));
    settle();
    restart_ahead(100 * day);
    note_time(0, wall_seconds());
    pass_time(60);
    assert_int_equal(count_runs(), 4);
    assert_true(has_logged("ahead of the newest record"));
    pass_time(3600);
    wait_until_true(count_runs() == 1);
}

TEST(a_simulated_cluster_confirms_no_clock, .set_up = set_up_stopped)
{
    f.is_simulated = true;
    start_with_jobs();
    restart_ahead(100 * day);
    note_time(0, wall_seconds());
    pass_time(60);
    assert_int_equal(count_runs(), 3);
}

TEST(what_is_deleted_for_want_of_room_is_logged, .set_up = set_up_stopped)
{
    f.clusters[0].max_bytes = 1;
    start_with_jobs();
    pass_time(60);
    wait_until_true(count_runs() == 0);
    wait_until_true(has_logged("msg=\"deleted the oldest recorded jobs: the store exceeds "
                               "--store.max-size\" cluster=north runs=3"));
}

TEST(a_second_recorder_of_one_store_is_refused)
{
    struct recorder_config config = config_of();
    struct recorder *second = NULL;
    struct err err = { 0 };
    char pid[40];

    snprintf(pid, sizeof(pid), "process %d of another", getpid());
    assert_int_equal(recorder_start(&config, &second, &err), -EALREADY);
    assert_non_null(strstr(err.text, "is in use"));
    assert_non_null(strstr(err.text, pid));
    f.recorder = recorder_stop(f.recorder);
    start();
}

static int write_jobs(struct ledger *ledger, struct section *section, struct round *round)
{
    struct round_cluster cluster = { .name = STR("north"), .jobs = section };
    struct err err = { 0 };
    int code;

    *round = (struct round){ .clusters = &cluster };
    list_init(&round->requests);
    list_init(&round->refused);
    code = ledger_write(ledger, round, &err);
    if (code < 0)
        assert_non_null(strstr(err.text, "memory"));
    return code;
}

static struct section *named_section(const char *name, uint32_t flags)
{
    struct section *section = jobs_section(1, 3);

    for (size_t i = 0; i < 3; i++) {
        section->jobs.job[i].name = symbols_put(&section->symbols, str_of(name));
        section->jobs.job[i].state.flags = flags;
    }
    return section;
}

/* Three jobs, the second time with another state; the n-th allocation of that fails, if there are
 * so many. The store is that of the call before: a new one takes most of the time. */
static bool writes_without_memory(unsigned n)
{
    static const char *const name = "a name of some length, which is kept in a page of its table";
    struct ledger *ledger = ledger_new(str_of(f.path), false, 1);
    struct section *first = named_section(name, 0), *then = named_section(name, JOB_COMPLETING);
    struct round round;
    bool has_failed;

    first->wall_ns += 2 * n * NS_PER_SEC;
    then->wall_ns = first->wall_ns + NS_PER_SEC;
    assert_int_equal(write_jobs(ledger, first, &round), 0);
    atomic_store(&memory_fails_at, n);
    if (write_jobs(ledger, then, &round) < 0) {
        atomic_store(&memory_fails_at, 0);
        assert_int_equal(round.refusals, 0);
        assert_int_equal(write_jobs(ledger, then, &round), 0);
    }
    has_failed = !atomic_exchange(&memory_fails_at, 0);
    assert_int_equal(round.refusals, 0);
    ledger_free(ledger);
    section_unref(first);
    section_unref(then);
    assert_int_equal(query(f.path, "SELECT count(*) FROM jobs WHERE state = 'RUNNING+COMPLETING' "
                                   "AND length(name) = 59 AND user = 'alice' AND "
                                   "node_list = 'n[1-2]'"),
                     3);
    return has_failed;
}

TEST(one_allocation_that_fails_loses_no_job, .set_up = set_up_stopped, .is_bulk = true)
{
    unsigned n = 1;

    while (writes_without_memory(n))
        n++;
    assert_true(n > 10);
}

static int refuse(struct request *request, struct store *store, struct str cluster,
                  const struct changes *seen, struct err *err)
{
    (void)request;
    (void)store;
    (void)cluster;
    (void)seen;
    return err_set(err, EFBIG, "too big for any store");
}

TEST(what_the_store_does_not_take_spoils_nothing_else, .set_up = set_up_stopped)
{
    struct ledger *ledger = ledger_new(str_of(f.path), false, 1);
    struct job_record job = record_of(1);
    const struct record_batch batch = { .jobs = &job, .n_jobs = 1 };
    struct request *good = request_put(&batch), *bad = request_put(&batch);
    struct section *section = jobs_section(10, 5);
    struct round_cluster cluster = { .name = STR("north"), .jobs = section };
    struct round round = { .clusters = &cluster };
    struct err err = { 0 };

    bad->run = refuse;
    list_init(&round.requests);
    list_init(&round.refused);
    list_append(&round.requests, &bad->link);
    list_append(&round.requests, &good->link);
    assert_int_equal(ledger_write(ledger, &round, &err), 0);
    assert_int_equal(round.refusals, 1);
    assert_int_equal(bad->code, -EFBIG);
    assert_int_equal(good->code, 0);
    assert_ptr_equal(list_first(&round.refused), &bad->link);
    assert_ptr_equal(list_first(&round.requests), &good->link);
    assert_int_equal(query(f.path, "SELECT count(*) FROM job"), 6);
    request_free(good);
    request_free(bad);
    section_unref(section);
    ledger_free(ledger);
}

/* Puts one batch after another and tells of each that is acknowledged; after so many of them it is
 * killed within so many writes. */
_Noreturn static void put_until_killed(int told, uint32_t first, unsigned acks, unsigned writes)
{
    struct recorder_config config = config_of();
    struct recorder *recorder;
    struct err err;

    config.clock = &clock_real;
    if (recorder_start(&config, &recorder, &err) < 0)
        _exit(1);
    for (uint32_t id = first;; id += 20) {
        struct job_record jobs[20];
        const struct record_mark mark = { "last", id };

        for (uint32_t i = 0; i < COUNT(jobs); i++)
            jobs[i] = record_of(id + i);
        if (recorder_put(recorder,
                         &(struct record_batch){
                             .jobs = jobs, .n_jobs = COUNT(jobs), .marks = &mark, .n_marks = 1 },
                         INT64_MAX, &never, &err) < 0 ||
            write(told, &id, sizeof(id)) != sizeof(id))
            _exit(1);
        if (--acks == 0)
            atomic_store(&disk.dies_after, writes);
    }
}

TEST(what_was_acknowledged_is_there_whenever_it_is_killed, .set_up = set_up_stopped)
{
    uint32_t acknowledged = 1, seed = (uint32_t)clock_mono(&clock_real);

    for (int i = 0; i < 12; i++) {
        uint32_t first = acknowledged + 20, id;
        unsigned acks = 1 + (seed = seed * 1103515245 + 12345) % 97;
        int fds[2], status;
        pid_t child;
        int64_t last;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
            put_until_killed(fds[1], first, acks, 1 + (seed >> 16) % 50);
        close(fds[1]);
        while (read(fds[0], &id, sizeof(id)) == sizeof(id))
            acknowledged = id;
        close(fds[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));

        /* All that was acknowledged, and of what came after it a whole batch or nothing. */
        last = query(f.path, "SELECT value FROM mark WHERE name = 'last'");
        assert_true(last == acknowledged || last == acknowledged + 20);
        assert_int_equal(query(f.path, "SELECT max(job_id) FROM job"), last + 19);
        assert_int_equal(query(f.path, "SELECT count(*) FROM job"), last - 1);
        assert_int_equal(query(f.path, "SELECT (SELECT count FROM ended) - count(*) FROM job"), 0);
        acknowledged = (uint32_t)last;
    }
}
