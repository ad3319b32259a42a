/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is put into a store and what then stands in it, on real SQLite files. */
#include "store/schema.h"
#include "store/sqlite.h"
#include "store_fixture.h"

#include <math.h>
#include <sys/stat.h>

FIXTURE(fixture_begin_open, fixture_end)

TEST(a_url_names_a_sqlite_file_and_nothing_else)
{
    char path[STORE_PATH_MAX];
    struct err err;

    assert_int_equal(store_path(STR("sqlite:/var/lib/sonde.db"), path, &err), 0);
    assert_string_equal(path, "/var/lib/sonde.db");
    assert_int_equal(store_path(STR("relative/a:b.db"), path, &err), 0);
    assert_string_equal(path, "relative/a:b.db");
    assert_int_equal(store_path(STR("mongodb://host/jobs"), path, &err), -EINVAL);
    assert_contains(err.text, "\"mongodb\" is not known");
    assert_int_equal(store_path(STR("mysql://sonde:secret@host/jobs"), path, &err), -EINVAL);
    assert_contains(err.text, "\"mysql\" is not known");
    assert_null(strstr(err.text, "secret"));
    assert_int_equal(store_path(STR("sqlite::memory:"), path, &err), -EINVAL);
    assert_contains(err.text, "in memory");
    assert_int_equal(store_path(STR(":memory:"), path, &err), -EINVAL);
    assert_contains(err.text, "in memory");
    assert_int_equal(store_path(STR("sqlite:"), path, &err), -EINVAL);
    assert_int_equal(store_path(STR(""), path, &err), -EINVAL);
}

TEST(a_new_store_has_its_version_its_log_and_its_rights)
{
    struct stat file;

    assert_string_equal(ask("PRAGMA user_version"), "7");
    assert_string_equal(ask("PRAGMA application_id"), "1936682596");
    assert_string_equal(ask("PRAGMA journal_mode"), "wal");
    assert_string_equal(ask("PRAGMA auto_vacuum"), "2");
    assert_int_equal(stat(fixture.path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0640);
}

TEST(a_whole_record_is_kept)
{
    struct record_extra extra = { STR("WorkDir"), STR("/home/alice") };
    struct job_record record = job_in(JOB_COMPLETED, 7, 1000, 2000);

    record.origin = RECORD_ACCOUNTED;
    record.array_job_id = 5;
    record.array_task_id = 2;
    record.het_job_id = 6;
    record.het_offset = 1;
    record.user_id = 1001;
    record.restarts = 0;
    record.qos = STR("normal");
    record.reservation = STR("course");
    record.nodes = STR("n[1-2]");
    record.tres = STR("billing=16,cpu=16,gres/gpu:v100=1,gres/gpu:a100=2,mem=1G,node=2");
    record.cpus = 16;
    record.node_count = 2;
    record.memory_bytes = UINT64_C(1) << 30;
    record.time_limit_minutes = 60;
    record.priority = 4294901760;
    record.eligible_time = 1001;
    record.suspended_seconds = 3;
    record.exit_code = 1;
    record.exit_signal = 9;
    record.cpu_seconds = 12.5;
    record.memory_peak_bytes = 4096;
    record.energy_joules = 77;
    record.extra = &extra;
    record.n_extra = 1;
    put(record);
    assert_string_equal(
        ask("SELECT cluster, job_id, submit_time, first_submit_time, restarts, array_job_id,"
            " array_task_id, het_job_id, het_offset, tasks, user_id, user, account, partition, qos,"
            " name, reservation, state, reason, node_list FROM jobs"),
        "alpha|7|1000|1000|0|5|2|6|1|1|1001|alice|physics|long|normal|train|course|COMPLETED|NULL|"
        "n[1-2]");
    assert_string_equal(
        ask("SELECT exit_code, exit_signal, priority, eligible_time, start_time, end_time,"
            " suspended_seconds, time_limit_minutes, cpus, node_count, memory_bytes, gpus,"
            " gpu_types, billing, cpu_seconds, user_seconds, memory_peak_bytes, read_bytes,"
            " energy_joules, as_of FROM jobs"),
        "1|9|4294901760|1001|1010|1100|3|60|16|2|1073741824|3|a100=2,v100=1|16|12.5|NULL|4096|NULL|"
        "77|2000");
    assert_string_equal(ask("SELECT length(rest) > 10 FROM job"), "1");
    assert_string_equal(ask("SELECT n.value, l.value FROM member"
                            " JOIN text n ON n.id = node JOIN text l ON l.id = list"
                            " ORDER BY 1"),
                        "n1|n[1-2]\nn2|n[1-2]");
}

#define LIFE                                                                                       \
    "SELECT time, s.value, r.value FROM life JOIN text s ON s.id = state"                          \
    " LEFT JOIN text r ON r.id = reason ORDER BY job, time, state"

static struct job_record waiting(int64_t as_of, struct str reason)
{
    struct job_record record = job_in(JOB_PENDING, 7, 1000, as_of);

    record.reason = reason;
    return record;
}

TEST(a_life_is_what_was_seen_of_it)
{
    put(waiting(1005, STR("Priority")));
    put(waiting(1006, STR("Priority")));
    put(waiting(1008, STR("Resources")));
    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    put(job_in(JOB_SUSPENDED, 7, 1000, 1030));
    put(job_in(JOB_RUNNING, 7, 1000, 1040));
    put(job_in(JOB_FAILED, 7, 1000, 1200));
    assert_string_equal(ask(LIFE), "1000|PENDING|Priority\n"
                                   "1008|PENDING|Resources\n"
                                   "1010|RUNNING|NULL\n"
                                   "1030|SUSPENDED|NULL\n"
                                   "1040|RUNNING|NULL\n"
                                   "1100|FAILED|NULL");
    assert_string_equal(ask("SELECT state, reason, start_time, end_time FROM jobs"),
                        "FAILED|NULL|1010|1100");
}

TEST(a_life_that_only_accounting_tells_has_its_stations)
{
    struct job_record at_once = job_in(JOB_COMPLETED, 7, 1000, 2000);
    struct job_record never_ran = job_in(JOB_CANCELLED, 8, 1000, 2000);

    at_once.origin = never_ran.origin = RECORD_ACCOUNTED;
    at_once.start_time = at_once.end_time = 1000;
    never_ran.nodes = STR("");
    put(at_once);
    put(never_ran);
    assert_string_equal(ask(LIFE), "1000|PENDING|NULL\n"
                                   "1000|RUNNING|NULL\n"
                                   "1000|COMPLETED|NULL\n"
                                   "1000|PENDING|NULL\n"
                                   "1100|CANCELLED|NULL");
}

TEST(a_start_or_end_that_is_only_expected_is_not_kept)
{
    struct job_record record = job_in(JOB_PENDING, 7, 1000, 1005);

    record.start_time = 5000;
    record.end_time = 9000;
    put(record);
    assert_string_equal(ask("SELECT start_time, end_time FROM job"), "NULL|NULL");
    record = job_in(JOB_RUNNING, 7, 1000, 1020);
    record.end_time = 9000;
    put(record);
    assert_string_equal(ask("SELECT start_time, end_time FROM job"), "1010|NULL");
}

TEST(a_life_has_a_ceiling_but_its_end_is_told)
{
    for (int64_t i = 0; i < 500; i++)
        put(waiting(1001 + i, i % 2 ? STR("Priority") : STR("Resources")));
    assert_string_equal(ask("SELECT count(*) FROM life"), "200");
    put(job_in(JOB_COMPLETED, 7, 1000, 3000));
    assert_string_equal(ask("SELECT count(*) FROM life JOIN text ON text.id = state"
                            " WHERE value = 'COMPLETED'"),
                        "1");
}

#define EVERYTHING                                                                                 \
    "SELECT group_concat(hex(rest) || state || coalesce(reason, '') || as_of || is_counted ||"     \
    " coalesce(end_time, '')) FROM job"

static int64_t log_bytes(void)
{
    char path[80];
    struct stat file;

    snprintf(path, sizeof(path), "%s-wal", fixture.path);
    assert_int_equal(stat(path, &file), 0);
    return file.st_size;
}

TEST(saying_the_same_again_changes_nothing)
{
    struct job_record record = job_in(JOB_COMPLETED, 7, 1000, 2000);
    char before[4096];
    int64_t bytes;

    record.tres = STR("cpu=1");
    put(record);
    snprintf(before, sizeof(before), "%s", ask(EVERYTHING));
    bytes = log_bytes();
    put(record);
    put(record);
    assert_string_equal(ask(EVERYTHING), before);
    assert_string_equal(ask("SELECT count(*) FROM life"), "3");
    assert_string_equal(ask("SELECT count FROM ended"), "1");
    assert_int_equal(log_bytes(), bytes); /* nothing was written at all */
}

TEST(an_unknown_value_replaces_no_known_one)
{
    struct record_extra extra = { STR("Comment"), STR("first") };
    struct job_record record = job_in(JOB_RUNNING, 7, 1000, 1020), bare;

    record.tres = STR("cpu=4,gres/gpu=2");
    record.cpus = 4;
    record.time_limit_minutes = 60;
    record.cpu_seconds = 1.5;
    record.extra = &extra;
    record.n_extra = 1;
    put(record);
    job_record_clear(&bare);
    bare.id = 7;
    bare.submit_time = 1000;
    bare.as_of = 1030;
    put(bare);
    assert_string_equal(ask("SELECT user, name, state, node_list, cpus, gpus,"
                            " time_limit_minutes, cpu_seconds, start_time, as_of"
                            " FROM jobs"),
                        "alice|train|RUNNING|n1|4|2|60|1.5|1010|1030");
    assert_string_equal(ask("SELECT length(rest) > 10 FROM job"), "1");
}

TEST(an_older_look_fills_gaps_and_changes_nothing_else)
{
    struct job_record older = waiting(1005, STR("Priority"));

    older.priority = 55;
    older.name = STR("old name");
    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    put(older);
    assert_string_equal(ask("SELECT state, reason, name, priority, as_of FROM jobs"),
                        "RUNNING|NULL|train|55|1020");
    assert_string_equal(ask("SELECT count(*) FROM life"), "2");
}

/* Seen to fail; accounting says that it was cancelled. */
static void put_both(bool is_accounted_first)
{
    struct job_record seen = job_in(JOB_FAILED, 7, 1000, 3000);
    struct job_record accounted = job_in(JOB_CANCELLED, 7, 1000, 2000);

    seen.priority = 9;
    accounted.origin = RECORD_ACCOUNTED;
    accounted.end_time = 1105;
    accounted.cpu_seconds = 2.5;
    put(is_accounted_first ? accounted : seen);
    put(is_accounted_first ? seen : accounted);
    assert_string_equal(ask("SELECT state, end_time, priority, cpu_seconds FROM jobs"),
                        "CANCELLED|1105|9|2.5");
    assert_string_equal(ask(LIFE), "1000|PENDING|NULL\n"
                                   "1010|RUNNING|NULL\n"
                                   "1105|CANCELLED|NULL");
}

TEST(accounting_is_right_when_it_comes_last)
{
    put_both(false);
}

TEST(accounting_is_right_when_it_comes_first)
{
    put_both(true);
}

TEST(an_end_is_not_taken_back_by_a_slow_accounting)
{
    struct job_record accounted = job_in(JOB_RUNNING, 7, 1000, 3000);

    accounted.origin = RECORD_ACCOUNTED;
    put(job_in(JOB_COMPLETED, 7, 1000, 2000));
    put(accounted);
    assert_string_equal(ask("SELECT state, end_time FROM jobs"), "COMPLETED|1100");
}

TEST(fields_of_two_looks_are_united)
{
    struct record_extra seen_extra[] = { { STR("AllocNode"), STR("login1") },
                                         { STR("Comment"), STR("mine") } };
    struct record_extra accounted_extra[] = { { STR("Comment"), STR("theirs") },
                                              { STR("WorkDir"), STR("/w") } };
    struct job_record seen = job_in(JOB_RUNNING, 7, 1000, 1020);
    struct job_record accounted = job_in(JOB_COMPLETED, 7, 1000, 2000);
    char first[4096];

    seen.extra = seen_extra;
    seen.n_extra = COUNT(seen_extra);
    accounted.origin = RECORD_ACCOUNTED;
    accounted.extra = accounted_extra;
    accounted.n_extra = COUNT(accounted_extra);
    put(seen);
    put(accounted);
    snprintf(first, sizeof(first), "%s", ask("SELECT hex(rest) FROM job"));
    put(seen);
    assert_string_equal(ask("SELECT hex(rest) FROM job"), first);
    put_in("other order", &accounted);
    put_in("other order", &seen);
    assert_string_equal(ask("SELECT hex(rest) FROM job WHERE cluster = 2"), first);
}

TEST(fields_in_another_order_are_the_same)
{
    struct record_extra extra[] = { { STR("Comment"), STR("c") }, { STR("WorkDir"), STR("/w") } };
    struct record_extra turned[] = { extra[1], extra[0] };
    struct job_record record = job_in(JOB_COMPLETED, 7, 1000, 2000);
    int64_t bytes;

    record.extra = extra;
    record.n_extra = 2;
    put(record);
    bytes = log_bytes();
    record.extra = turned;
    put(record);
    assert_int_equal(log_bytes(), bytes);
}

#define ENDED                                                                                      \
    "SELECT s.value, p.value, a.value, count FROM ended JOIN text s ON s.id = state"               \
    " LEFT JOIN text p ON p.id = partition LEFT JOIN text a ON a.id = account ORDER BY 1"

TEST(a_run_is_counted_once_when_it_ends)
{
    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    assert_string_equal(ask(ENDED), "");
    put(job_in(JOB_FAILED, 7, 1000, 2000));
    put(job_in(JOB_FAILED, 7, 1000, 3000));
    put(job_in(JOB_CANCELLED, 7, 1000, 4000));
    put(job_in(JOB_FAILED, 8, 1000, 2000));
    assert_string_equal(ask(ENDED), "FAILED|long|physics|2");
}

TEST(jobs_that_could_have_started_in_several_partitions_are_counted_together)
{
    struct job_record job = job_in(JOB_CANCELLED, 7, 1000, 2000);

    job.partition = STR("long,short");
    put(job);
    job.id = 8;
    job.partition = STR("short,long");
    put(job);
    job.id = 9;
    job.partition = STR("short");
    put(job);
    assert_string_equal(ask(ENDED " , 2"),
                        "CANCELLED|several|physics|2\nCANCELLED|short|physics|1");
    assert_string_equal(ask("SELECT partition FROM jobs WHERE job_id = 7"), "long,short");
}

TEST(of_two_names_the_one_with_its_quotes_is_kept)
{
    struct job_record seen = job_in(JOB_RUNNING, 7, 1000, 1500),
                      accounted = job_in(JOB_COMPLETED, 7, 1000, 2000);

    seen.name = STR("say \"hi\" `x`");
    accounted.name = STR("say `hi` `x`");
    accounted.origin = RECORD_ACCOUNTED;
    put(seen);
    put(accounted);
    assert_string_equal(ask("SELECT name FROM jobs"), "say \"hi\" `x`");
    assert_string_equal(ask("SELECT count(*) FROM text WHERE value LIKE 'say%'"), "1");
    accounted.id = seen.id = 8;
    put(accounted);
    put(seen);
    assert_string_equal(ask("SELECT name FROM jobs WHERE job_id = 8"), "say \"hi\" `x`");
    accounted.name = STR("say `ho` `x`");
    accounted.as_of++;
    put(accounted);
    assert_string_equal(ask("SELECT name FROM jobs WHERE job_id = 8"), "say `ho` `x`");
}

TEST(tasks_that_wait_together_take_no_number_from_before)
{
    struct job_record one = job_in(JOB_PENDING, 7, 1000, 1500), many = one;

    one.array_job_id = many.array_job_id = 7;
    one.array_task_id = 3;
    many.array_task_id = MODEL_UNKNOWN_U32;
    many.tasks = 5;
    many.as_of++;
    put(one);
    put(many);
    assert_string_equal(ask("SELECT array_task_id IS NULL, tasks FROM jobs"), "1|5");
    one.array_task_id = 9;
    one.as_of += 2;
    put(one);
    assert_string_equal(ask("SELECT array_task_id, tasks FROM jobs"), "9|1");
}

TEST(a_job_that_cleans_up_has_ended_and_is_counted_by_its_base)
{
    struct job_record completing = job_in(JOB_COMPLETED, 7, 1000, 1101);

    completing.state.flags = JOB_COMPLETING;
    put(completing);
    put(job_in(JOB_COMPLETED, 7, 1000, 1110));
    assert_string_equal(ask(ENDED), "COMPLETED|long|physics|1");
    assert_string_equal(ask(LIFE), "1000|PENDING|NULL\n"
                                   "1010|RUNNING|NULL\n"
                                   "1100|COMPLETED|NULL");
}

static struct job_record requeued(int64_t submit_time, uint32_t restarts, int64_t as_of)
{
    struct job_record record = job_in(JOB_RUNNING, 7, submit_time, as_of);

    record.restarts = restarts;
    return record;
}

#define CHAIN                                                                                      \
    "SELECT submit_time, first_submit_time, restarts, state, end_time FROM jobs"                   \
    " ORDER BY submit_time"

TEST(runs_of_a_requeued_job_know_the_first)
{
    put(requeued(1000, 0, 1100));
    put(requeued(2000, 1, 2100));
    put(requeued(3000, 2, 3100));
    assert_string_equal(ask(CHAIN), "1000|1000|0|REQUEUED|2000\n"
                                    "2000|1000|1|REQUEUED|3000\n"
                                    "3000|1000|2|RUNNING|NULL");
    assert_string_equal(ask(ENDED), "REQUEUED|long|physics|2");
}

TEST(runs_that_are_told_last_first_know_the_first_too)
{
    struct job_record first = requeued(1000, 0, 5000), second = requeued(2000, 1, 5000);

    first.origin = second.origin = RECORD_ACCOUNTED;
    first.state = (struct job_state){ JOB_BASE_UNKNOWN, JOB_REQUEUED };
    first.end_time = 1990;
    second.state.base = JOB_NODE_FAIL;
    second.end_time = 2990;
    put(requeued(3000, 2, 3100));
    put(second);
    put(first);
    assert_string_equal(ask(CHAIN), "1000|1000|0|REQUEUED|1990\n"
                                    "2000|1000|1|NODE_FAIL|2990\n"
                                    "3000|1000|2|RUNNING|NULL");
}

TEST(accounting_corrects_the_end_of_a_requeued_run)
{
    struct job_record first = requeued(1000, 0, 5000);

    put(requeued(1000, 0, 1100));
    put(requeued(2000, 1, 2100));
    first.origin = RECORD_ACCOUNTED;
    first.state.base = JOB_NODE_FAIL;
    first.end_time = 1995;
    put(first);
    assert_string_equal(ask(CHAIN), "1000|1000|0|NODE_FAIL|1995\n"
                                    "2000|1000|1|RUNNING|NULL");
    assert_string_equal(ask(ENDED), "NODE_FAIL|long|physics|1");
}

TEST(runs_without_a_restart_count_are_linked_by_user_and_name)
{
    struct job_record first = requeued(1000, MODEL_UNKNOWN_U32, 5000);
    struct job_record second = requeued(2000, MODEL_UNKNOWN_U32, 5000);
    struct job_record other = requeued(3000, MODEL_UNKNOWN_U32, 5000);

    other.name = STR("another");
    put(first);
    put(second);
    put(other);
    assert_string_equal(ask("SELECT first_submit_time FROM job ORDER BY submit_time"),
                        "1000\n1000\n3000");
}

TEST(an_id_that_comes_again_after_a_wrap_is_another_job)
{
    struct job_record wrapped = requeued(900000, 0, 900100);

    put(requeued(1000, 0, 1100));
    put(wrapped);
    put(requeued(950000, 1, 950100));
    assert_string_equal(ask(CHAIN), "1000|1000|0|RUNNING|NULL\n"
                                    "900000|900000|0|REQUEUED|950000\n"
                                    "950000|900000|1|RUNNING|NULL");
}

TEST(the_same_run_on_two_clusters_is_two_runs)
{
    struct job_record here = job_in(JOB_COMPLETED, 7, 1000, 2000);
    struct job_record there = job_in(JOB_FAILED, 7, 1000, 2000);

    put_in("alpha", &here);
    put_in("beta", &there);
    put_in("beta", &there);
    assert_string_equal(ask("SELECT cluster, state, first_submit_time FROM jobs"
                            " ORDER BY cluster"),
                        "alpha|COMPLETED|1000\nbeta|FAILED|1000");
    assert_string_equal(ask("SELECT cluster, count FROM ended ORDER BY 1"), "1|1\n2|1");
}

TEST(array_tasks_and_components_are_rows)
{
    struct job_record together = job_in(JOB_PENDING, 5, 1000, 1001);
    struct job_record task = job_in(JOB_RUNNING, 6, 1000, 1020);
    struct job_record last = job_in(JOB_RUNNING, 5, 1000, 1030);

    together.array_job_id = task.array_job_id = last.array_job_id = 5;
    together.tasks = 3;
    task.array_task_id = 1;
    last.array_task_id = 3;
    put(together);
    put(task);
    put(last);
    assert_string_equal(ask("SELECT job_id, array_job_id, array_task_id, tasks, state"
                            " FROM jobs ORDER BY job_id"),
                        "5|5|3|1|RUNNING\n6|5|1|1|RUNNING");
}

TEST(a_record_that_names_no_run_is_left_out)
{
    put(job_in(JOB_RUNNING, 0, 1000, 1020));
    put(job_in(JOB_RUNNING, 7, 0, 1020));
    assert_string_equal(ask("SELECT count(*) FROM job"), "0");
}

TEST(hostile_texts_are_kept_as_they_are)
{
    struct job_record record = job_in(JOB_RUNNING, 7, 1000, 1020);

    record.name = STR("'); DROP TABLE job; --\n\"\t\xff\xfe\x80");
    record.account = STR("a'b\"c");
    record.user = (struct str){ "eve\0hidden", 10 };
    put(record);
    assert_string_equal(ask("SELECT hex(name), account, user FROM jobs"),
                        "27293B2044524F50205441424C45206A6F623B202D2D0A2209FFFE80|a'b\"c|eve");
}

TEST(texts_have_a_ceiling_and_end_with_a_whole_character)
{
    struct job_record record = job_in(JOB_RUNNING, 7, 1000, 1020);
    size_t n = 1 << 20;
    char *name = heap_alloc(n), *list = heap_alloc(n);
    struct record_extra extra = { STR("Comment"), { name, n } };

    memset(name, 'x', n);
    memcpy(name + STORE_TEXT_MAX - 1, "\xc3\xa9", 2);
    memset(list, '[', n);
    record.name = (struct str){ name, n };
    record.nodes = (struct str){ list, n };
    record.tres = (struct str){ list, n };
    record.extra = &extra;
    record.n_extra = 1;
    put(record);
    put(record);
    assert_string_equal(ask("SELECT length(CAST(name AS BLOB)), length(node_list)"
                            " FROM jobs"),
                        "4095|65536");
    assert_string_equal(ask("SELECT count(*) FROM member"), "0");
    free(name);
    free(list);
}

TEST(a_list_with_too_many_hosts_has_no_members)
{
    struct job_record record = job_in(JOB_RUNNING, 7, 1000, 1020);

    record.nodes = STR("n[0-99999999]");
    put(record);
    assert_string_equal(ask("SELECT node_list FROM jobs"), "n[0-99999999]");
    assert_string_equal(ask("SELECT count(*) FROM member"), "0");
}

TEST(a_text_that_was_a_name_becomes_a_list)
{
    struct job_record record = job_in(JOB_RUNNING, 7, 1000, 1020);

    record.name = STR("n5");
    record.nodes = STR("n1");
    put(record);
    record = job_in(JOB_RUNNING, 8, 1000, 1020);
    record.nodes = STR("n5");
    put(record);
    assert_string_equal(ask("SELECT n.value, l.value FROM member"
                            " JOIN text n ON n.id = node JOIN text l ON l.id = list"
                            " ORDER BY 1"),
                        "n1|n1\nn5|n5");
}

TEST(what_was_rolled_back_was_never_there)
{
    struct job_record record = job_in(JOB_COMPLETED, 7, 1000, 2000);

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_job(fixture.store, STR("alpha"), &record, &fixture.err));
    store_rollback(fixture.store);
    assert_string_equal(ask("SELECT count(*) FROM cluster"), "0");
    put(record);
    assert_string_equal(ask("SELECT cluster, user, state, node_list FROM jobs"),
                        "alpha|alice|COMPLETED|n1");
    assert_string_equal(ask(ENDED), "COMPLETED|long|physics|1");
}

TEST(what_others_have_changed_is_not_remembered_otherwise)
{
    struct job_record record = job_in(JOB_RUNNING, 7, 1000, 1020);
    sqlite3 *db;

    put(record);
    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DELETE FROM job; DELETE FROM life; DELETE FROM cluster;"
                                  "DELETE FROM text WHERE value IN ('train', 'alice')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    put(record);
    assert_string_equal(ask("SELECT cluster, user, name FROM jobs"), "alpha|alice|train");
}

TEST(a_final_record_is_kept_once_and_the_later_one_stays)
{
    struct final_record record = { .job_id = 7,
                                   .node = STR("n1"),
                                   .begin_time = 1010,
                                   .end_time = 1100,
                                   .document = STR("{\"cpu_seconds\":1}") };

    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
    record.end_time = 1050;
    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    assert_string_equal(ask("SELECT job_id, value, begin_time, end_time,"
                            " length(document) > 0 FROM final JOIN text ON id = node"),
                        "7|n1|1010|1100|1");
}

TEST(a_final_record_that_is_told_again_with_more_takes_the_place_of_the_first)
{
    struct final_record record = {
        .job_id = 7, .node = STR("n1"), .begin_time = 1010, .end_time = 1100, .document = STR("{}")
    };

    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
    record.document = STR("{\"\":7}");
    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    assert_string_equal(ask("SELECT substr(document, 3) FROM final"), "{\"\":7}");
}

static void put_final(uint32_t job_id, const char *node, int64_t end_time)
{
    const struct final_record record = { .job_id = job_id,
                                         .node = str_of(node),
                                         .begin_time = 1010,
                                         .end_time = end_time,
                                         .document = STR("{\"\":7}") };

    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
}

TEST(a_final_record_of_an_unknown_job_is_held_until_a_run_of_it_is_recorded)
{
    struct job_record elsewhere = job_in(JOB_RUNNING, 7, 1000, 1020);

    OK(store_begin(fixture.store, &fixture.err));
    put_final(7, "x1", 1100);
    put_final(7, "x1", 1050);
    put_final(7, "x2", 1100);
    put_final(8, "x1", 1100);
    OK(store_commit(fixture.store, &fixture.err));
    put_in("beta", &elsewhere);
    assert_string_equal(ask("SELECT count(*) FROM final"), "0");
    assert_string_equal(ask("SELECT job_id, node, end_time FROM held ORDER BY 1, 2"),
                        "7|x1|1100\n7|x2|1100\n8|x1|1100");
    /* What is made up leaves no words behind. */
    assert_string_equal(ask("SELECT count(*) FROM text WHERE value IN ('x1', 'x2')"), "0");
    fixture.store = store_close(fixture.store);
    fixture_open();
    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    assert_string_equal(ask("SELECT job_id, value, end_time, substr(document, 3) FROM final"
                            " JOIN text ON id = node ORDER BY 1, 2"),
                        "7|x1|1100|{\"\":7}\n7|x2|1100|{\"\":7}");
    assert_string_equal(ask("SELECT job_id FROM held"), "8");
}

TEST(of_too_many_records_of_unknown_jobs_the_oldest_go)
{
    OK(store_begin(fixture.store, &fixture.err));
    for (uint32_t id = 1; id <= STORE_HELD_MAX + 3; id++)
        put_final(id, "n1", 1100);
    OK(store_commit(fixture.store, &fixture.err));
    assert_string_equal(ask("SELECT count(*) = 50000, min(job_id) FROM held"), "1|4");
    assert_int_equal(store_take_dropped(fixture.store), 3);
    assert_int_equal(store_take_dropped(fixture.store), 0);
}

static struct node_record node_of(const char *name, const char *state, double load)
{
    return (struct node_record){ .name = str_of(name),
                                 .state = str_of(state),
                                 .cpus = 8,
                                 .cpus_alloc = MODEL_UNKNOWN_U32,
                                 .cpus_idle = MODEL_UNKNOWN_U32,
                                 .cpus_other = MODEL_UNKNOWN_U32,
                                 .cpu_load = load,
                                 .memory_bytes = 4096,
                                 .memory_alloc_bytes = MODEL_UNKNOWN_U64,
                                 .memory_free_bytes = MODEL_UNKNOWN_U64 };
}

TEST(only_nodes_that_changed_are_written_and_others_go)
{
    struct node_record nodes[] = { node_of("n1", "idle", 0.5), node_of("n2", "idle", NAN),
                                   node_of("n3", "idle", 0.5) };
    struct node_record later[] = { node_of("n1", "idle", 0.5), node_of("n2", "idle", NAN),
                                   node_of("n4", "down", NAN) };

    later[0].state = STR("mixed");
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_nodes(fixture.store, STR("alpha"), 1000, nodes, 3, &fixture.err));
    OK(store_put_nodes(fixture.store, STR("beta"), 1000, nodes, 1, &fixture.err));
    OK(store_put_nodes(fixture.store, STR("alpha"), 2000, later, 3, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    assert_string_equal(
        ask("SELECT cluster, name, seen_time, state, cpus, cpus_alloc, cpu_load FROM node"
            " ORDER BY cluster, name"),
        "1|n1|2000|mixed|8|NULL|0.5\n1|n2|1000|idle|8|NULL|NULL\n1|n4|2000|down|8|NULL|NULL\n"
        "2|n1|1000|idle|8|NULL|0.5");
    assert_string_equal(ask("SELECT value FROM mark WHERE cluster = 1"
                            " AND name = 'nodes_seen'"),
                        "2000");
}

TEST(marks_outlive_the_process)
{
    int64_t value;

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_get_mark(fixture.store, STR("alpha"), "until", -1, &value, &fixture.err));
    assert_int_equal(value, -1);
    OK(store_set_mark(fixture.store, STR("alpha"), "until", 5, &fixture.err));
    OK(store_set_mark(fixture.store, STR("beta"), "until", 6, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    fixture.store = store_close(fixture.store);
    fixture_open();
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_get_mark(fixture.store, STR("alpha"), "until", -1, &value, &fixture.err));
    assert_int_equal(value, 5);
    OK(store_commit(fixture.store, &fixture.err));
}

static size_t open_runs(const char *cluster, struct open_filter filter, uint32_t *ids, size_t most)
{
    size_t n;

    OK(store_open_runs(fixture.store, str_of(cluster), &filter, ids, most, &n, &fixture.err));
    return n;
}

static bool is_this_job(const void *ctx, uint32_t job_id)
{
    return job_id == *(const uint32_t *)ctx;
}

TEST(runs_that_have_not_ended_are_told_by_their_ids)
{
    uint32_t ids[3], seen = 2;

    put(job_in(JOB_RUNNING, 1, 1000, 1500));
    put(job_in(JOB_PENDING, 2, 1000, 1400));
    put(job_in(JOB_RUNNING, 3, 1000, 1600));
    put(job_in(JOB_RUNNING, 3, 1100, 1600)); /* the id was given anew */
    put(job_in(JOB_COMPLETED, 4, 1000, 1300));
    assert_int_equal(open_runs("alpha", (struct open_filter){ .as_of = 1550 }, ids, 3), 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    assert_int_equal(open_runs("alpha", (struct open_filter){ .as_of = 1700 }, ids, 3), 3);
    assert_int_equal(ids[2], 3);
    assert_int_equal(open_runs("alpha", (struct open_filter){ .as_of = 1700, .after = 1 }, ids, 1),
                     1);
    assert_int_equal(ids[0], 2);
    assert_int_equal(open_runs("alpha", (struct open_filter){ .as_of = 1700, .after = 3 }, ids, 1),
                     0);
    assert_int_equal(
        open_runs("alpha", (struct open_filter){ 1700, 0, is_this_job, &seen }, ids, 3), 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 3);
    assert_int_equal(open_runs("beta", (struct open_filter){ .as_of = 1700 }, ids, 1), 0);
}

static size_t prune(const char *cluster, int64_t oldest_end, uint64_t max_bytes, size_t most)
{
    struct store_retention retention = { oldest_end, max_bytes };
    struct store_pruned pruned;

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_prune(fixture.store, str_of(cluster), &retention, most, &pruned, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    return pruned.by_age + pruned.by_size + pruned.finals;
}

static struct job_record ended_job(uint32_t id, int64_t submit_time, const char *name,
                                   const char *nodes)
{
    struct job_record record = job_in(JOB_COMPLETED, id, submit_time, submit_time + 200);

    record.name = str_of(name);
    record.nodes = str_of(nodes);
    return record;
}

TEST(old_runs_go_with_what_only_they_had)
{
    struct job_record elsewhere = ended_job(9, 1000, "lone", "n[5-6]");
    struct final_record final = {
        .job_id = 1, .node = STR("n1"), .begin_time = 1010, .end_time = 1100, .document = STR("{}")
    };

    put(ended_job(1, 1000, "lone", "n[1-2]"));
    put(ended_job(2, 1001, "shared", "n[3-4]"));
    put(ended_job(3, 1002, "physics", "n[1-2]")); /* also a word */
    put(ended_job(4, 5000, "shared", "n[3-4]"));
    put(job_in(JOB_RUNNING, 5, 1000, 1020));
    put_in("beta", &elsewhere);
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_final(fixture.store, STR("alpha"), &final, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));

    assert_int_equal(prune("alpha", 4000, 0, 2), 3); /* a final, too */
    assert_int_equal(prune("alpha", 4000, 0, 2), 1);
    assert_int_equal(prune("alpha", 4000, 0, 2), 0);
    assert_string_equal(ask("SELECT job_id FROM job ORDER BY job_id"), "4\n5\n9");
    assert_string_equal(ask("SELECT count(*) FROM life WHERE job NOT IN"
                            " (SELECT id FROM job)"),
                        "0");
    assert_string_equal(ask("SELECT value FROM text WHERE value IN"
                            " ('lone', 'shared', 'physics', 'n[1-2]', 'n[3-4]')"
                            " ORDER BY 1"),
                        "lone\nn[3-4]\nphysics\nshared");
    assert_string_equal(ask("SELECT count(*) FROM member WHERE list NOT IN"
                            " (SELECT id FROM text)"),
                        "0");
    assert_string_equal(ask("SELECT count(*) FROM final"), "0");
    assert_string_equal(ask("SELECT sum(count) FROM ended"), "5");
}

TEST(records_of_unknown_jobs_that_ended_long_ago_are_deleted)
{
    OK(store_begin(fixture.store, &fixture.err));
    put_final(7, "n1", 1100);
    put_final(8, "n1", 4100);
    OK(store_commit(fixture.store, &fixture.err));
    assert_int_equal(prune("alpha", 4000, 0, 2), 1);
    assert_string_equal(ask("SELECT job_id FROM held"), "8");
}

TEST(a_name_goes_with_the_last_run_that_has_it_also_where_it_was_changed)
{
    static const char names[] = "SELECT group_concat(value || named) FROM (SELECT * FROM text"
                                " WHERE value IN ('old', 'new') ORDER BY 1)";
    struct job_record renamed = ended_job(1, 1000, "new", "n1");

    put(ended_job(1, 1000, "old", "n1"));
    put(ended_job(2, 2000, "old", "n1"));
    assert_string_equal(ask(names), "old2");
    renamed.as_of++;
    put(renamed);
    put(renamed);
    assert_string_equal(ask(names), "old1,new1");
    assert_int_equal(prune("alpha", 2000, 0, 10), 1);
    assert_string_equal(ask(names), "old1");
    assert_int_equal(prune("alpha", 4000, 0, 10), 1);
    assert_string_equal(ask("SELECT count(*) FROM text WHERE value IN ('old', 'new')"), "0");
}

TEST(when_a_run_that_has_not_ended_was_last_heard_of_never_falls)
{
    int64_t time;

    put(job_in(JOB_RUNNING, 1, 1000, 1500));
    put(job_in(JOB_RUNNING, 2, 1000, 1400));
    put(job_in(JOB_COMPLETED, 3, 1000, 1600));
    OK(store_open_seen(fixture.store, STR("alpha"), &time, &fixture.err));
    assert_int_equal(time, 1500);
    put(job_in(JOB_COMPLETED, 1, 1000, 1700));
    fixture.store = store_close(fixture.store);
    fixture_open();
    OK(store_open_seen(fixture.store, STR("alpha"), &time, &fixture.err));
    assert_int_equal(time, 1500);
    OK(store_open_seen(fixture.store, STR("beta"), &time, &fixture.err));
    assert_int_equal(time, 0);
}

TEST(a_deleted_run_that_is_told_again_is_not_counted_again)
{
    put(ended_job(1, 1000, "a", "n1"));
    prune("alpha", 4000, 0, 10);
    put(ended_job(1, 1000, "a", "n1"));
    put(ended_job(2, 1000, "b", "n1"));
    fixture.store = store_close(fixture.store);
    fixture_open();
    put(ended_job(1, 1000, "a", "n1"));
    put(ended_job(3, 9000, "c", "n1"));
    assert_string_equal(ask("SELECT job_id FROM job"), "3");
    assert_string_equal(ask("SELECT sum(count) FROM ended"), "2");
}

static void put_many(const char *cluster, uint32_t n)
{
    OK(store_begin(fixture.store, &fixture.err));
    for (uint32_t i = 1; i <= n; i++) {
        char name[40];
        struct job_record record = job_in(JOB_COMPLETED, i, 1000 + i, 9000);

        snprintf(name, sizeof(name), "a name that is the %u. of its kind", i);
        record.name = str_of(name);
        OK(store_put_job(fixture.store, str_of(cluster), &record, &fixture.err));
    }
    OK(store_commit(fixture.store, &fixture.err));
}

TEST(the_oldest_go_until_a_cluster_fits_its_share_and_the_file_shrinks)
{
    struct store_size before, after;
    size_t calls = 0;

    put_many("alpha", 4000);
    put_many("beta", 1000);
    fixture.store = store_close(fixture.store);
    fixture_open();
    OK(store_size(fixture.store, &before, &fixture.err));
    assert_int_equal(before.runs, 5000);
    while (prune("alpha", 0, before.bytes / 5, 500) > 0)
        assert_true(++calls < 100);
    assert_true(calls > 2);
    fixture.store = store_close(fixture.store);
    fixture_open();
    OK(store_size(fixture.store, &after, &fixture.err));
    assert_true(after.bytes < before.bytes * 6 / 10);
    assert_string_equal(ask("SELECT max(job_id), min(job_id) > 2000, count(*) > 500"
                            " FROM job WHERE cluster = 1"),
                        "4000|1|1");
    assert_string_equal(ask("SELECT count(*) FROM job WHERE cluster = 2"), "1000");
    assert_string_equal(ask("PRAGMA integrity_check"), "ok");
    put(job_in(JOB_COMPLETED, 1, 1001, 9000));
    assert_string_equal(ask("SELECT sum(count) FROM ended"), "5000");
}

static int add_greeting(sqlite3 *db, struct err *err)
{
    return db_exec(db, "UPDATE job SET greeting = 'hello'", err);
}

TEST(a_later_migration_is_one_row)
{
    static const struct migration later[] = {
        { 1, "Long done", "nonsense", NULL },
        { 101, "Greet each job", "ALTER TABLE job ADD COLUMN greeting", add_greeting },
        { 102, "Remember that", "INSERT INTO meta(name, value) VALUES('greeted', 1)", NULL },
    };
    struct buf told;
    sqlite3 *db;
    int version;

    put(job_in(JOB_RUNNING, 7, 1000, 1020));
    fixture.store = store_close(fixture.store);
    buf_init(&told, 1000);
    OK(db_open(fixture.path, true, &db, &fixture.err));
    OK(schema_read_version(db, 102, &version, &fixture.err));
    assert_int_equal(version, schema_version(schema_migrations, n_schema_migrations));
    OK(schema_migrate(db, version, later, COUNT(later), &told, &fixture.err));
    assert_string_equal(told.p, "101: Greet each job\n102: Remember that\n");
    OK(schema_read_version(db, 102, &version, &fixture.err));
    assert_int_equal(version, 102);
    assert_string_equal(ask("SELECT greeting FROM job"), "hello");
    db_close(db);
    buf_free(&told);
}

TEST(migrations_are_tried_without_a_trace, .set_up = fixture_begin)
{
    struct buf told;

    buf_init(&told, 1000);
    assert_int_equal(store_try_migrations(str_of(fixture.path), &told, &fixture.err), -ENOENT);
    assert_contains(fixture.err.text, "there is no store");
    assert_int_equal(access(fixture.path, F_OK), -1);
    write_file(fixture.path, "");
    OK(store_try_migrations(str_of(fixture.path), &told, &fixture.err));
    assert_string_equal(told.p, "1: Make the tables\n"
                                "2: Add the id to the view of jobs, and when a run was last seen\n"
                                "3: Keep what each job used\n"
                                "4: Keep what each cluster last told of itself\n"
                                "5: Hold records of unknown jobs apart\n"
                                "6: Count each task of arrays that were canceled while pending\n"
                                "7: Count how long jobs were pending\n");
    buf_reset(&told);
    fixture_open();
    OK(store_try_migrations(str_of(fixture.path), &told, &fixture.err));
    assert_int_equal(told.n, 0);
    buf_free(&told);
}

TEST(ids_of_states_grow_from_waiting_to_ended)
{
    assert_string_equal(ask("SELECT group_concat(value) FROM (SELECT value FROM text"
                            " ORDER BY id LIMIT 4)"),
                        "PENDING,RUNNING,SUSPENDED,COMPLETED");
}
