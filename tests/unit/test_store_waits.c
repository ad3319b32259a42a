/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long jobs were pending: each run that has started is counted once, whoever tells it. */
#include "store_fixture.h"

FIXTURE(fixture_begin_open, fixture_end)

#define WAITED                                                                                     \
    "SELECT p.value, bound, count, seconds FROM waited JOIN text p ON p.id = partition"            \
    " ORDER BY 1, 2"

/* The first poll: the store begins. */
static void begin(int64_t as_of)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_look(fixture.store, STR("alpha"), as_of, NULL, 0, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

static struct job_record accounted(enum job_base base, uint32_t id, int64_t submit_time,
                                   int64_t as_of)
{
    struct job_record record = job_in(base, id, submit_time, as_of);

    record.origin = RECORD_ACCOUNTED;
    return record;
}

static void open_again(void)
{
    fixture.store = store_close(fixture.store);
    fixture_open();
}

TEST(a_start_is_counted_once_whoever_tells_it)
{
    begin(900);
    put(job_in(JOB_RUNNING, 1, 1000, 1020)); /* pending for 10 s */
    assert_string_equal(ask(WAITED), "long|15|1|10");
    put(job_in(JOB_COMPLETED, 1, 1000, 1200));
    put(accounted(JOB_COMPLETED, 1, 1000, 1300));
    /* one that no poll has shown, and then one does after all */
    put(accounted(JOB_FAILED, 2, 1000, 1300));
    put(job_in(JOB_FAILED, 2, 1000, 1200));
    assert_string_equal(ask(WAITED), "long|15|2|20");
    open_again();
    put(accounted(JOB_COMPLETED, 1, 1000, 1400));
    put(accounted(JOB_FAILED, 2, 1000, 1400));
    assert_string_equal(ask(WAITED), "long|15|2|20");
    put(accounted(JOB_COMPLETED, 2, 5000, 6000)); /* requeued: it was pending again */
    assert_string_equal(ask(WAITED), "long|15|3|30");
}

TEST(what_started_before_the_store_was_begun_is_not_counted)
{
    begin(1011);
    put(job_in(JOB_RUNNING, 1, 1000, 1020));
    put(accounted(JOB_COMPLETED, 2, 1000, 1300));
    assert_string_equal(ask(WAITED), "");
    put(accounted(JOB_COMPLETED, 3, 1001, 1300));
    assert_string_equal(ask(WAITED), "long|15|1|10");
}

TEST(what_has_not_started_is_not_counted)
{
    struct job_record canceled = job_in(JOB_PENDING, 3, 1000, 1200);

    begin(900);
    put(job_in(JOB_PENDING, 1, 1000, 1020));
    put(accounted(JOB_RUNNING, 2, 1000, 1020)); /* its nodes may have to boot */
    canceled.origin = RECORD_ACCOUNTED;
    canceled.state.base = JOB_CANCELLED;
    canceled.end_time = 1100;
    put(canceled);
    assert_string_equal(ask(WAITED), "");
}

TEST(a_wait_is_counted_from_when_the_job_could_have_run)
{
    struct job_record record = accounted(JOB_COMPLETED, 1, 1000, 900000);

    begin(900);
    record.eligible_time = 700000;
    record.start_time = 700002;
    put(record);
    record.id = 2;
    record.eligible_time = 0;
    put(record);
    assert_string_equal(ask(WAITED), "long|0|1|699002\nlong|5|1|2");
}

TEST(what_is_counted_is_read_by_partition)
{
    struct job_record other = job_in(JOB_RUNNING, 2, 1000, 1020);
    struct arena arena = { 0 };
    struct partition_wait *waits;
    size_t n;

    begin(900);
    put(job_in(JOB_RUNNING, 1, 1000, 1020));
    other.partition = STR("short");
    other.start_time = 1000 + 700000;
    put(other);
    OK(store_waits(fixture.store, STR("alpha"), &arena, &waits, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_str(waits[0].partition, "long");
    assert_int_equal(waits[0].wait.buckets[2], 1); /* at most 15 s */
    assert_true(waits[0].wait.sum == 10);
    assert_str(waits[1].partition, "short");
    assert_int_equal(waits[1].wait.buckets[WAIT_BOUNDS], 1);
    assert_true(waits[1].wait.sum == 700000);
    arena_clear(&arena);
    OK(store_waits(fixture.store, STR("beta"), &arena, &waits, &n, &fixture.err));
    assert_int_equal(n, 0);
    arena_clear(&arena);
}
