/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record/history, with tests/data/sacct/bin/sacct for slurmdbd and, for the recorder, the functions
 * below that keep what they are given. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "files.h"
#include "manual_clock.h"
#include "record/history.h"

#include <fcntl.h>

/* The recorded jobs were submitted at 1794841634 … 1794841639. */
enum { SEEN = 1794841640, NOW = SEEN + 600, HOUR = 3600, DAY = 24 * HOUR, MARKS = 2 };

struct recorder {
    pthread_mutex_t lock;
    bool has_name;
    int64_t marks[MARKS];
    int code;           /* what everything answers */
    size_t fails_after; /* batches that are taken before */
    size_t n_batches, n_largest, n_jobs, n_marked;
    uint32_t ids[4000];
    uint32_t open[1200];
    size_t n_open;
    int64_t open_as_of;
};

int recorder_put(struct recorder *r, const struct record_batch *batch, int64_t deadline_ns,
                 const atomic_bool *cancelled, struct err *err)
{
    int code = 0;

    (void)deadline_ns;
    (void)cancelled;
    pthread_mutex_lock(&r->lock);
    assert_int_equal(batch->cluster, 3);
    if (r->code && r->n_batches >= r->fails_after) {
        code = err_set(err, -r->code, "the disk is full");
    } else {
        r->n_batches++;
        if (batch->n_jobs > r->n_largest)
            r->n_largest = batch->n_jobs;
        for (size_t i = 0; i < batch->n_jobs; i++) {
            assert_true(batch->jobs[i].name.n);
            r->ids[r->n_jobs++ % COUNT(r->ids)] = batch->jobs[i].id;
        }
        r->n_marked += batch->n_marks > 0;
        for (size_t i = 0; i < batch->n_marks; i++)
            r->marks[strcmp(batch->marks[i].name, "accounted_until") == 0] = batch->marks[i].value;
    }
    pthread_mutex_unlock(&r->lock);
    return code;
}

int recorder_get_marks(struct recorder *r, size_t cluster, const char *const *names,
                       int64_t *values, size_t n, int64_t deadline_ns, const atomic_bool *cancelled,
                       struct err *err)
{
    (void)cluster;
    (void)deadline_ns;
    (void)cancelled;
    (void)err;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < n; i++)
        values[i] = r->marks[strcmp(names[i], "accounted_until") == 0];
    pthread_mutex_unlock(&r->lock);
    return 0;
}

int recorder_open_runs(struct recorder *r, size_t cluster, int64_t as_of, uint32_t after,
                       uint32_t *ids, size_t most, size_t *ret_n, int64_t deadline_ns,
                       const atomic_bool *cancelled, struct err *err)
{
    size_t n = 0;

    (void)cluster;
    (void)deadline_ns;
    (void)cancelled;
    (void)err;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n_open && n < most; i++)
        if (r->open[i] > after)
            ids[n++] = r->open[i];
    *ret_n = n;
    r->open_as_of = as_of;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

bool recorder_get_name(struct recorder *r, size_t cluster, char *to, size_t room)
{
    bool has_name;

    (void)cluster;
    pthread_mutex_lock(&r->lock);
    has_name = r->has_name;
    pthread_mutex_unlock(&r->lock);
    if (has_name)
        snprintf(to, room, "sandbox");
    return has_name;
}

struct world {
    struct recorder recorder;
    struct manual_clock clock;
    struct history *history;
    struct history_config config;
    struct log *log;
};

static struct world *w;

static void set_up(void)
{
    w = heap_alloc(sizeof(*w));
    setenv("FAKE_SACCT_ANSWER", source_path("tests/data/sacct/24.11.txt"), 1);
    setenv("FAKE_SACCT_LOG", write_file("calls", ""), 1);
    unsetenv("FAKE_SACCT_REFUSAL");
    manual_clock_init(&w->clock, NOW * NS_PER_SEC, NS_PER_SEC);
    pthread_mutex_init(&w->recorder.lock, NULL);
    w->recorder.has_name = true;
    w->log = test_log(&w->clock.clock);
    w->config = (struct history_config){
        .recorder = &w->recorder,
        .cluster = 3,
        .source = { .bin_path = str_of(source_path("tests/data/sacct/bin")),
                    .max_answer = 64 << 20 },
        .interval_ns = 60 * NS_PER_SEC,
        .timeout_ns = 60 * NS_PER_SEC,
        .clock = &w->clock.clock,
        .log = w->log,
    };
}

static void start(void)
{
    struct err err;

    if (history_start(&w->config, &w->history, &err) < 0)
        fail_msg("%s", err.text);
}

static void tear_down(void)
{
    history_stop(w->history);
    log_free(w->log);
    manual_clock_destroy(&w->clock);
    pthread_mutex_destroy(&w->recorder.lock);
    free(w);
}

FIXTURE(set_up, tear_down)

static struct history_stats stats_of(void)
{
    struct history_stats stats;

    history_stats(w->history, &stats);
    return stats;
}

static bool is_complete(void)
{
    return stats_of().is_complete;
}

/* It has asked that often and has done all that follows from it: it waits. */
static void await_questions(uint64_t questions)
{
    wait_until_true(stats_of().questions == questions);
    assert_true(manual_clock_await_waiters(&w->clock, 1));
}

static size_t count(struct str text, const char *part)
{
    size_t n = 0, at;

    while ((at = str_find_str(text, str_of(part))) < text.n) {
        text = str_skip(text, at + 1);
        n++;
    }
    return n;
}

/* How often sacct was called with that among its arguments. */
static size_t called(const char *part)
{
    return count(read_file("calls"), part);
}

static bool has_id(uint32_t id)
{
    bool found = false;

    pthread_mutex_lock(&w->recorder.lock);
    for (size_t i = 0; i < w->recorder.n_jobs && i < COUNT(w->recorder.ids) && !found; i++)
        found = w->recorder.ids[i] == id;
    pthread_mutex_unlock(&w->recorder.lock);
    return found;
}

TEST(a_new_store_gets_what_is_new_and_then_all_from_before)
{
    start();
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(stats_of().until, NOW);
    assert_int_equal(stats_of().since, 1009843200);
    assert_int_equal(w->recorder.marks[0], 1009843200);
    assert_int_equal(w->recorder.marks[1], NOW);
    assert_true(has_id(5435002));
    assert_true(has_id(5435008));
    assert_true(stats_of().is_up);
    assert_int_equal(stats_of().failures, 0);
    assert_int_equal(called("--starttime 2026-11-16T14:17:20 --endtime 2026-11-16T15:17:20"), 2);
    assert_int_equal(called("--starttime 2002-01-01T00:00:00"), 2);
    /* Empty years are asked for a year at a time. */
    assert_true(stats_of().questions < 50);
    assert_int_equal(count_logged("all that slurmdbd has kept is in the store"), 1);
}

TEST(afterwards_only_what_is_new_is_asked_for)
{
    uint64_t questions;

    w->config.first_time = NOW - DAY;
    start();
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(stats_of().since, NOW - DAY);
    questions = stats_of().questions;
    manual_clock_advance(&w->clock, 60 * NS_PER_SEC);
    wait_until_true(stats_of().questions == questions + 1);
    wait_until_true(stats_of().until == NOW + 60);
    assert_int_equal(called("--starttime 2026-11-16T14:17:20 --endtime 2026-11-16T15:18:20"), 2);
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(stats_of().questions, questions + 1);
    assert_int_equal(stats_of().since, NOW - DAY);
}

TEST(a_gap_is_closed_the_oldest_first)
{
    w->config.first_time = NOW - 100 * DAY;
    w->recorder.marks[0] = NOW - 100 * DAY;
    w->recorder.marks[1] = NOW - 10 * DAY;
    start();
    wait_until_true(stats_of().until == NOW);
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(called("--starttime 2026-11-06T14:17:20 --endtime 2026-11-07T14:17:20"), 2);
    assert_int_equal(stats_of().since, NOW - 100 * DAY);
    assert_true(has_id(5435002));
}

TEST(the_mark_moves_with_the_last_of_a_window_only)
{
    struct buf answer;

    buf_init(&answer, 1 << 20);
    buf_text(&answer, "JobID,JobIDRaw,State,Submit,JobName,Eligible,End\n");
    for (int i = 1; i <= 4500; i++)
        buf_printf(&answer, "%d~%d~COMPLETED~%d~job~%d~%d~\n", i, i, SEEN, SEEN, SEEN);
    setenv("FAKE_SACCT_ANSWER", write_bytes("answer", buf_str(&answer)), 1);
    buf_free(&answer);
    w->config.first_time = NOW + 10 - HOUR;
    w->recorder.code = -ENOSPC;
    w->recorder.fails_after = 1;
    start();
    await_questions(1);
    assert_int_equal(stats_of().failures, 1);
    assert_int_equal(w->recorder.n_batches, 1);
    assert_int_equal(w->recorder.n_marked, 0);
    assert_int_equal(w->recorder.marks[1], 0);
    assert_int_equal(count_logged("cannot be written into the store"), 1);

    pthread_mutex_lock(&w->recorder.lock);
    w->recorder.code = 0;
    pthread_mutex_unlock(&w->recorder.lock);
    manual_clock_advance(&w->clock, 10 * NS_PER_SEC);
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(w->recorder.n_batches, 4);
    assert_int_equal(w->recorder.n_marked, 1);
    assert_int_equal(w->recorder.n_largest, 2000);
    assert_int_equal(w->recorder.n_jobs, 2000 + 4500);
    assert_int_equal(w->recorder.marks[1], NOW + 10);
    assert_int_equal(count_logged("slurmdbd is asked again"), 1);
}

TEST(a_refusal_of_so_wide_a_time_asks_for_less)
{
    uint64_t failures;

    setenv("FAKE_SACCT_REFUSAL",
           "[ $width -le 7200 ] || { echo 'sacct: error: Too wide of a date range in query' >&2; "
           "exit 1; }",
           1);
    w->config.first_time = NOW - 2 * DAY;
    start();
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_true(stats_of().is_up);
    failures = stats_of().failures;
    assert_true(failures > 0);
    /* What is answered takes two calls. */
    assert_int_equal(called("--starttime"), 2 * stats_of().questions - failures);
    assert_int_equal(w->recorder.marks[0], NOW - 2 * DAY);
    assert_int_equal(count_logged("less is asked for"), 1);
    assert_true(has_id(5435002));
    /* Once it is known what is too wide, it is tried rarely: 48 hours are 32 windows. */
    assert_true(stats_of().questions < 50);
}

TEST(half_of_what_was_asked_for_is_asked_for_next)
{
    setenv("FAKE_SACCT_REFUSAL",
           "[ $width -le 1800 ] || { echo 'sacct: error: Too wide of a date range in query' >&2; "
           "exit 1; }",
           1);
    w->config.first_time = NOW - HOUR;
    start();
    wait_until_true(is_complete());
    assert_int_equal(called("--starttime 2026-11-16T14:17:20 --endtime 2026-11-16T15:17:20"), 1);
    assert_int_equal(called("--starttime 2026-11-16T14:17:20 --endtime 2026-11-16T14:47:20"), 2);
    assert_int_equal(stats_of().failures, 1);
}

TEST(slurmdbd_is_down_at_the_first_timeout)
{
    w->config.timeout_ns = 1;
    start();
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(stats_of().questions, 1);
    assert_int_equal(stats_of().failures, 1);
    assert_false(stats_of().is_up);
    assert_int_equal(count_logged("no answer within --store.history-timeout (1 s)"), 1);
}

TEST(a_failure_is_told_once_and_tried_again_ever_more_rarely)
{
    int64_t waits[] = { 10, 20, 40, 80, 160, 300, 300 };

    setenv("FAKE_SACCT_REFUSAL",
           "echo 'sacct: error: Problem talking to the database: Connection refused' >&2; exit 1",
           1);
    start();
    for (size_t i = 0; i < COUNT(waits); i++) {
        await_questions(i + 1);
        manual_clock_advance(&w->clock, (waits[i] - 1) * NS_PER_SEC);
        assert_true(manual_clock_await_waiters(&w->clock, 1));
        assert_int_equal(stats_of().failures, i + 1);
        manual_clock_advance(&w->clock, NS_PER_SEC);
    }
    await_questions(COUNT(waits) + 1);
    assert_int_equal(stats_of().failures, COUNT(waits) + 1);
    assert_false(stats_of().is_up);
    assert_int_equal(count_logged("slurmdbd cannot be asked"), 1);
    assert_int_equal(count_logged("is slurmdbd running?"), 1);
}

TEST(accounting_that_is_missing_is_looked_for_after_a_minute_and_then_up_to_an_hour)
{
    int64_t waits[] = { 60, 120, 240, 480, 960, 1920, 3600, 3600 };

    w->config.source.bin_path = STR("/no/such/place");
    w->config.first_time = NOW - DAY;
    start();
    for (size_t i = 0; i < COUNT(waits); i++) {
        await_questions(i + 1);
        manual_clock_advance(&w->clock, (waits[i] - 1) * NS_PER_SEC);
        assert_true(manual_clock_await_waiters(&w->clock, 1));
        assert_int_equal(stats_of().questions, i + 1);
        manual_clock_advance(&w->clock, NS_PER_SEC);
    }
    await_questions(COUNT(waits) + 1);
    assert_int_equal(stats_of().failures, COUNT(waits) + 1);
    assert_int_equal(count_logged("jobs are known as far as they are seen"), 1);
    assert_int_equal(count_logged("cluster=sandbox"), 1);
}

TEST(accounting_that_is_switched_on_is_found)
{
    const char *off = write_file("off", "");
    char refusal[200];

    snprintf(refusal, sizeof(refusal),
             "[ ! -e %s ] || { echo 'Slurm accounting storage is disabled' >&2; exit 1; }", off);
    setenv("FAKE_SACCT_REFUSAL", refusal, 1);
    w->config.first_time = NOW - DAY;
    start();
    await_questions(1);
    assert_false(stats_of().is_up);
    unlink(off);
    manual_clock_advance(&w->clock, 60 * NS_PER_SEC);
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_true(stats_of().is_up);
}

TEST(nothing_is_asked_until_the_cluster_has_a_name)
{
    w->recorder.has_name = false;
    w->config.first_time = NOW - HOUR;
    start();
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(stats_of().questions, 0);
    pthread_mutex_lock(&w->recorder.lock);
    w->recorder.has_name = true;
    pthread_mutex_unlock(&w->recorder.lock);
    manual_clock_advance(&w->clock, NS_PER_SEC);
    wait_until_true(is_complete());
}

TEST(runs_of_which_nothing_was_heard_are_asked_for_by_their_ids)
{
    w->config.first_time = NOW - HOUR;
    w->recorder.open[0] = 5435008;
    w->recorder.open[1] = 77; /* sacct does not know it either */
    w->recorder.n_open = 2;
    start();
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    assert_int_equal(called("--jobs 5435008,77"), 1);
    assert_int_equal(w->recorder.open_as_of, NOW - 600);
    assert_int_equal(w->recorder.ids[w->recorder.n_jobs - 1], 5435008);
}

TEST(runs_that_slurmdbd_does_not_know_leave_others_their_turn)
{
    w->config.first_time = NOW - HOUR;
    w->recorder.n_open = 1100;
    for (uint32_t i = 0; i < 1100; i++)
        w->recorder.open[i] = i + 1;
    start();
    for (uint64_t round = 1; round <= 4; round++) {
        await_questions(2 * round);
        manual_clock_advance(&w->clock, 60 * NS_PER_SEC);
    }
    await_questions(10);
    assert_int_equal(called("--jobs 1,2,"), 2);
    assert_int_equal(called("--jobs 501,502,"), 2);
    assert_int_equal(called("--jobs 1001,1002,"), 1);
}

TEST(a_store_that_fails_is_no_question_that_failed)
{
    w->config.first_time = NOW - HOUR;
    w->recorder.code = -ENOSPC;
    start();
    await_questions(1);
    assert_int_equal(stats_of().failures, 0);
    assert_false(stats_of().is_up);
}

TEST(what_was_asked_for_goes_back_with_the_clock)
{
    w->config.first_time = NOW - DAY;
    w->recorder.marks[0] = NOW - DAY;
    w->recorder.marks[1] = NOW + 30 * DAY;
    start();
    wait_until_true(stats_of().until == NOW);
    assert_int_equal(w->recorder.marks[0], NOW - DAY);
    assert_int_equal(called("--starttime 2026-11-16T14:17:20 --endtime 2026-11-16T15:17:20"), 2);
}

TEST(jobs_that_are_not_ours_are_not_kept)
{
    struct str account = STR("bio");
    struct keep *keep;
    struct err err;

    assert_int_equal(keep_new(&account, 1, NULL, 0, &keep, &err), 0);
    w->config.keep = keep;
    w->config.first_time = NOW - HOUR;
    start();
    wait_until_true(is_complete());
    assert_true(has_id(5435009));
    assert_false(has_id(5435002));
    keep_free(keep);
}

TEST(a_store_that_is_replaced_is_filled_anew)
{
    w->config.first_time = NOW - 30 * DAY;
    start();
    wait_until_true(is_complete());
    assert_true(manual_clock_await_waiters(&w->clock, 1));
    pthread_mutex_lock(&w->recorder.lock);
    w->recorder.marks[0] = w->recorder.marks[1] = 0;
    w->recorder.n_jobs = 0;
    pthread_mutex_unlock(&w->recorder.lock);
    manual_clock_advance(&w->clock, 60 * NS_PER_SEC);
    wait_until_true(stats_of().until == NOW + 60);
    wait_until_true(is_complete());
    assert_true(has_id(5435002));
}

TEST(it_can_be_stopped_while_sacct_hangs)
{
    setenv("FAKE_SACCT_REFUSAL", "exec sleep 60", 1);
    start();
    wait_until_true(called("--starttime") == 1);
    w->history = history_stop(w->history);
    assert_int_equal(count_logged("level=warn"), 0);
}
