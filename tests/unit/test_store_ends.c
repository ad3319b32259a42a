/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How ends of runs are counted, what is known of runs whose end nobody told, and how far back a
 * store reaches when it was pruned. */
#include "store/schema.h"
#include "store/sqlite.h"
#include "store_fixture.h"

FIXTURE(fixture_begin_open, fixture_end)

#define ENDED                                                                                      \
    "SELECT s.value, count FROM ended JOIN text s ON s.id = state JOIN cluster ON"                 \
    " cluster.id = cluster WHERE cluster.name = 'alpha' ORDER BY 1"

static struct job_record accounted(struct job_state state, uint32_t id, int64_t submit_time,
                                   int64_t as_of)
{
    struct job_record record = job_in(JOB_RUNNING, id, submit_time, as_of);

    record.origin = RECORD_ACCOUNTED;
    record.state = state;
    record.end_time = submit_time + 100;
    return record;
}

static const struct job_state completed = { JOB_COMPLETED, 0 }, cancelled = { JOB_CANCELLED, 0 },
                              resized = { JOB_BASE_UNKNOWN, JOB_RESIZING },
                              node_fail = { JOB_NODE_FAIL, 0 };

TEST(where_there_is_accounting_ends_count_when_it_tells_them)
{
    put(accounted(completed, 1, 1000, 2000));
    assert_string_equal(ask(ENDED), "COMPLETED|1");
    put(job_in(JOB_FAILED, 2, 1000, 2000));
    assert_string_equal(ask(ENDED), "COMPLETED|1");
    assert_string_equal(ask("SELECT state FROM jobs WHERE job_id = 2"), "FAILED");
    fixture.store = store_close(fixture.store);
    fixture_open();
    put(job_in(JOB_FAILED, 3, 1000, 2000));
    put(accounted(cancelled, 2, 1000, 3000));
    put(accounted(cancelled, 2, 1000, 4000));
    assert_string_equal(ask(ENDED), "CANCELLED|1\nCOMPLETED|1");
}

TEST(an_end_that_was_seen_before_accounting_came_counts_once)
{
    struct job_record elsewhere = job_in(JOB_FAILED, 2, 1000, 2000);

    put_in("beta", &elsewhere);
    put(job_in(JOB_FAILED, 1, 1000, 2000));
    put(job_in(JOB_FAILED, 2, 1000, 2000));
    assert_string_equal(ask(ENDED), "FAILED|2");
    put(accounted(node_fail, 1, 1000, 3000));
    put(accounted((struct job_state){ JOB_FAILED, 0 }, 2, 1000, 3000));
    assert_string_equal(ask(ENDED), "FAILED|1\nNODE_FAIL|1");
    assert_string_equal(ask("SELECT sum(count) FROM ended"), "3");
}

/* What slurmdbd tells of a job that went on with another size, and of one whose node failed: the
 * queue has one run of the first, and of the second two, with words that depend on the moment. */
static void put_accounting(void)
{
    put(accounted(resized, 1, 1000, 9000));
    put(accounted(completed, 1, 1100, 9000));
    put(accounted(node_fail, 2, 1000, 9000));
    put(accounted(completed, 2, 2000, 9000));
    put(accounted(completed, 7, 500, 600));
}

static struct job_record restarted(enum job_base base, int64_t submit_time, uint32_t restarts)
{
    struct job_record record = job_in(base, 2, submit_time, submit_time + 500);

    record.restarts = restarts;
    return record;
}

TEST(two_stores_agree_whatever_each_has_seen_of_runs_that_came_again)
{
    char counted[4096];

    put(job_in(JOB_COMPLETED, 1, 1000, 3000));
    put(restarted(JOB_RUNNING, 1000, 0));
    put(restarted(JOB_RUNNING, 2000, 1));
    put_accounting();
    put(restarted(JOB_COMPLETED, 2000, 1));
    snprintf(counted, sizeof(counted), "%s", ask(ENDED));
    assert_string_equal(counted, "COMPLETED|3\nNODE_FAIL|1\nRESIZING|1");

    fixture_end();
    fixture_begin_open();
    put(accounted(completed, 7, 500, 600));
    put(restarted(JOB_NODE_FAIL, 1000, 0));
    put(restarted(JOB_COMPLETED, 2000, 1));
    put_accounting();
    assert_string_equal(ask(ENDED), counted);
}

TEST(a_run_that_was_requeued_counts_when_accounting_tells_its_end)
{
    struct job_record first = restarted(JOB_RUNNING, 1000, 0);

    first.origin = RECORD_ACCOUNTED;
    put(first);
    put(restarted(JOB_RUNNING, 2000, 1));
    assert_string_equal(ask("SELECT state FROM jobs WHERE submit_time = 1000"), "REQUEUED");
    assert_string_equal(ask(ENDED), "");
    put(accounted(node_fail, 2, 1000, 3000));
    assert_string_equal(ask(ENDED), "NODE_FAIL|1");
}

/* As sacct has tasks of an array that were canceled together while pending: no nodes. */
static struct job_record canceled_array(uint32_t id, uint32_t tasks, int64_t as_of)
{
    struct job_record record = job_in(JOB_PENDING, id, 1000, as_of);

    record.origin = RECORD_ACCOUNTED;
    record.state = cancelled;
    record.array_job_id = id;
    record.tasks = tasks;
    record.end_time = 1100;
    return record;
}

TEST(each_task_of_an_array_that_ended_while_pending_counts)
{
    struct job_record waiting = job_in(JOB_PENDING, 7, 1000, 1050);

    waiting.array_job_id = 7;
    waiting.tasks = 1000;
    put(waiting);
    put(canceled_array(7, 1000, 5000));
    put(canceled_array(7, 1000, 6000));
    put(canceled_array(8, 7, 5000));
    put(accounted(cancelled, 9, 1000, 5000));
    assert_string_equal(ask(ENDED), "CANCELLED|1008");
}

/* Slurm has all tasks of the array for up to some minutes, although some have ended before; 22.05
 * has a record without an array first. */
TEST(an_array_counts_when_slurmdbd_has_had_the_time_to_learn_its_tasks)
{
    struct open_filter filter = { .as_of = 9000 };
    uint32_t ids[4];
    size_t n;

    put(canceled_array(7, 6, 1101));
    put(canceled_array(8, 1, 1101));
    assert_string_equal(ask(ENDED), "");
    assert_string_equal(ask("SELECT state, tasks FROM jobs"), "CANCELLED|6\nCANCELLED|1");
    OK(store_open_runs(fixture.store, STR("alpha"), &filter, ids, COUNT(ids), &n, &fixture.err));
    assert_int_equal(n, 2);
    put(canceled_array(7, 6, 1400));
    put(canceled_array(8, 6, 1105));
    assert_string_equal(ask(ENDED), "");
    put(canceled_array(7, 4, 1700));
    put(canceled_array(8, 6, 1700));
    assert_string_equal(ask(ENDED), "CANCELLED|10");
    /* the clock was set back */
    put(canceled_array(7, 4, 1101));
    put(canceled_array(7, 4, 1800));
    assert_string_equal(ask(ENDED), "CANCELLED|10");
}

TEST(tasks_that_slurmdbd_learns_of_later_are_added_and_none_is_taken_back)
{
    put(canceled_array(7, 1, 5000));
    assert_string_equal(ask(ENDED), "CANCELLED|1");
    put(canceled_array(7, 6, 5001));
    assert_string_equal(ask(ENDED), "CANCELLED|6");
    put(canceled_array(7, 4, 5002));
    assert_string_equal(ask(ENDED), "CANCELLED|6");
}

TEST(without_accounting_each_task_counts_as_the_queue_shows_it)
{
    struct job_record seen = canceled_array(7, 6, 1101);

    seen.origin = RECORD_SEEN;
    put(seen);
    assert_string_equal(ask(ENDED), "CANCELLED|6");
}

static void look(int64_t as_of, const struct run_name *gone, size_t n)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_look(fixture.store, STR("alpha"), as_of, gone, n, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

#define LAST_SEEN "SELECT job_id, last_seen FROM job ORDER BY job_id"

TEST(a_run_that_the_queue_no_longer_shows_was_last_seen_in_the_look_before)
{
    const struct run_name gone[] = { { 1, 1000 }, { 2, 1000 }, { 3, 1000 }, { 9, 1000 } };
    struct job_record told = job_in(JOB_RUNNING, 1, 1000, 4000);

    put(job_in(JOB_RUNNING, 1, 1000, 1500));
    put(job_in(JOB_RUNNING, 2, 1000, 1500));
    put(job_in(JOB_COMPLETED, 3, 1000, 1500));
    put(job_in(JOB_RUNNING, 4, 1000, 1500));
    look(2000, NULL, 0);
    fixture.store = store_close(fixture.store);
    fixture_open();
    look(3000, gone, COUNT(gone));
    assert_string_equal(ask(LAST_SEEN), "1|2000\n2|2000\n3|NULL\n4|NULL");
    look(3500, gone, COUNT(gone));
    told.origin = RECORD_ACCOUNTED; /* it may well take it for running */
    put(told);
    put(job_in(JOB_RUNNING, 2, 1000, 4000)); /* it is back */
    assert_string_equal(ask(LAST_SEEN), "1|2000\n2|NULL\n3|NULL\n4|NULL");
}

TEST(runs_that_have_not_ended_are_listed_with_their_submit_times)
{
    struct run_name *runs;
    size_t n;

    put(job_in(JOB_RUNNING, 1, 1000, 1500));
    put(job_in(JOB_COMPLETED, 2, 1000, 1500));
    put(job_in(JOB_PENDING, 3, 1200, 1500));
    OK(store_list_open(fixture.store, STR("alpha"), &runs, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_int_equal(runs[0].job_id, 1);
    assert_int_equal(runs[1].job_id, 3);
    assert_int_equal(runs[1].submit_time, 1200);
    free(runs);
}

TEST(an_end_that_accounting_has_not_told_is_asked_for)
{
    struct open_filter filter = { .as_of = 9000 };
    uint32_t ids[4];
    size_t n;

    put(accounted(completed, 1, 1000, 2000));
    put(job_in(JOB_FAILED, 2, 1000, 2000));
    put(job_in(JOB_FAILED, 3, 1000, 2000));
    put(accounted(cancelled, 3, 1000, 2000));
    OK(store_open_runs(fixture.store, STR("alpha"), &filter, ids, COUNT(ids), &n, &fixture.err));
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], 2);
    put(accounted(cancelled, 2, 1000, 2000));
    OK(store_open_runs(fixture.store, STR("alpha"), &filter, ids, COUNT(ids), &n, &fixture.err));
    assert_int_equal(n, 0);
}

static int64_t pruned_end(void)
{
    int64_t value;

    OK(store_get_mark(fixture.store, STR("alpha"), "pruned_end", 0, &value, &fixture.err));
    return value;
}

static size_t prune(struct store_retention retention, size_t most)
{
    struct store_pruned pruned;

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_prune(fixture.store, STR("alpha"), &retention, most, &pruned, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    return pruned.by_age + pruned.by_size + pruned.finals;
}

TEST(until_when_runs_that_were_deleted_for_their_size_ended_is_kept)
{
    struct job_record lasting = job_in(JOB_COMPLETED, 1, 1000, 90000), late;

    lasting.end_time = 80000;
    put(lasting);
    put(job_in(JOB_COMPLETED, 2, 2000, 90000));
    put(job_in(JOB_COMPLETED, 3, 3000, 90000));
    assert_int_equal(pruned_end(), 0);
    assert_int_equal(prune((struct store_retention){ .max_bytes = 1 }, 2), 2);
    assert_int_equal(pruned_end(), 80000);

    /* One that comes late and ended before is not too old for that. */
    put(job_in(JOB_COMPLETED, 4, 2500, 90000));
    assert_string_equal(ask("SELECT job_id FROM job ORDER BY 1"), "3\n4");
    /* One that would have been deleted with them is missing, too. */
    late = job_in(JOB_COMPLETED, 5, 1500, 90000);
    late.end_time = 85000;
    put(late);
    assert_string_equal(ask("SELECT job_id FROM job ORDER BY 1"), "3\n4");
    assert_int_equal(pruned_end(), 85000);
}

TEST(a_store_reaches_no_further_back_than_runs_are_kept_for_their_age)
{
    assert_int_equal(prune((struct store_retention){ .oldest_end = 4000 }, 10), 0);
    assert_int_equal(pruned_end(), 4000); /* older ones would not be taken */
    put(job_in(JOB_COMPLETED, 1, 3000, 9000));
    assert_string_equal(ask("SELECT count(*) FROM job"), "0");
}

/* As the first release made it. */
static void make_first_version(void)
{
    sqlite3 *db;

    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    OK(schema_migrate(db, 0, schema_migrations, 1, NULL, &fixture.err));
    OK(db_exec(db,
               "INSERT INTO meta(name, value) VALUES('is_simulated', 0);"
               "INSERT INTO cluster(name) VALUES('alpha');"
               "INSERT INTO mark VALUES(1, 'accounted_until', 5000), (1, 'pruned_end', 700);"
               "INSERT INTO job(id, cluster, job_id, submit_time, first_submit_time, end_time,"
               " state, as_of, origin, is_counted) VALUES(44, 1, 7, 1000, 1000, 1100, 4, 2000, 1,"
               " 1);"
               "INSERT INTO ended VALUES(1, 4, 0, 0, 1)",
               &fixture.err));
    db_close(db);
}

TEST(a_store_of_the_first_version_goes_on)
{
    make_first_version();
    fixture_open();
    assert_string_equal(ask("SELECT id, cluster, job_id, state FROM jobs"), "44|alpha|7|COMPLETED");
    put(accounted(completed, 7, 1000, 3000));
    put(job_in(JOB_FAILED, 8, 1000, 3000));
    put(accounted(completed, 9, 500, 3000)); /* was deleted */
    assert_string_equal(ask(ENDED), "COMPLETED|1");
    assert_string_equal(ask("SELECT jobs.job_id, count(*) FROM jobs JOIN life ON"
                            " life.job = jobs.id GROUP BY 1 ORDER BY 1"),
                        "7|1\n8|3");
}

/* Runs of a store whose arrays were counted as one: state 5 is CANCELLED. */
#define ARRAY_ROW(id, cluster, partition, origin, counted, tasks)                                  \
    "(" #id ", " #cluster ", " #id ", 1000, 1000, 1100, 5, " #partition ", 21, 2000, " #origin     \
    ", " #counted ", " #tasks ")"

static void make_fifth_version(void)
{
    sqlite3 *db;

    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    OK(schema_migrate(db, 0, schema_migrations, 5, NULL, &fixture.err));
    OK(db_exec(
        db,
        "INSERT INTO meta(name, value) VALUES('is_simulated', 0);"
        "INSERT INTO cluster(name) VALUES('alpha'), ('beta');"
        "INSERT INTO mark VALUES(1, 'is_accounted', 1);"
        "INSERT INTO text(id, value) VALUES(20, 'long'), (21, 'physics'), (22, 'a,b');"
        "INSERT INTO job(id, cluster, job_id, submit_time, first_submit_time, end_time,"
        " state, partition, account, as_of, origin, is_counted, tasks) VALUES" ARRAY_ROW(1, 1, 20, 1, 1, 1000) "," ARRAY_ROW(
            2, 1, 20, 1, 1,
            1) "," ARRAY_ROW(3, 1, 22, 1, 1,
                             7) "," ARRAY_ROW(4, 1, 20, 0, 1,
                                              50) "," ARRAY_ROW(5, 1, 20, 0, 2,
                                                                50) "," ARRAY_ROW(6, 2, 20, 0, 1,
                                                                                  3) ";"
                                                                                     "INSERT INTO "
                                                                                     "ended "
                                                                                     "VALUES(1, 5, "
                                                                                     "20, 21, 2), "
                                                                                     "(2, 5, 20, "
                                                                                     "21, 1)",
        &fixture.err));
    db_close(db);
}

TEST(tasks_that_an_older_store_counted_as_one_are_counted_when_it_is_migrated)
{
    make_fifth_version();
    fixture_open();
    assert_string_equal(ask("SELECT c.name, s.value, p.value, a.value, count FROM ended"
                            " JOIN cluster c ON c.id = cluster JOIN text s ON s.id = state"
                            " JOIN text p ON p.id = partition JOIN text a ON a.id = account"
                            " ORDER BY 1, 3"),
                        "alpha|CANCELLED|long|physics|1001\nalpha|CANCELLED|several|physics|6\n"
                        "beta|CANCELLED|long|physics|3");
}
