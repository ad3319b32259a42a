/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/clock, and of the manual clock that other tests use. */
#include "test.h"

#include "files.h"
#include "manual_clock.h"

#include <fcntl.h>

struct waiting {
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int64_t until_mono_ns;
    bool was_signalled; /* under the lock */
    bool saw_signal;
};

static void waiting_init(struct waiting *waiting, const struct clock *clock, int64_t until_mono_ns)
{
    *waiting = (struct waiting){ .clock = clock, .until_mono_ns = until_mono_ns };
    pthread_mutex_init(&waiting->lock, NULL);
    clock_cond_init(&waiting->cond);
}

static void waiting_destroy(struct waiting *waiting)
{
    pthread_cond_destroy(&waiting->cond);
    pthread_mutex_destroy(&waiting->lock);
}

static void *wait_for_signal_or_deadline(void *arg)
{
    struct waiting *waiting = arg;
    bool in_time = true;

    pthread_mutex_lock(&waiting->lock);
    while (!waiting->was_signalled && in_time)
        in_time =
            clock_wait(waiting->clock, &waiting->cond, &waiting->lock, waiting->until_mono_ns);
    waiting->saw_signal = waiting->was_signalled;
    pthread_mutex_unlock(&waiting->lock);
    return NULL;
}

static void give_signal(struct waiting *waiting)
{
    pthread_mutex_lock(&waiting->lock);
    waiting->was_signalled = true;
    pthread_cond_signal(&waiting->cond);
    pthread_mutex_unlock(&waiting->lock);
}

TEST(real_time_goes_on_and_a_passed_deadline_ends_the_wait)
{
    struct waiting waiting;
    int64_t begin = clock_mono(&clock_real);

    waiting_init(&waiting, &clock_real, begin + 5 * NS_PER_MS);
    wait_for_signal_or_deadline(&waiting);
    assert_false(waiting.saw_signal);
    assert_true(clock_mono(&clock_real) >= begin + 5 * NS_PER_MS);
    assert_true(clock_wall(&clock_real) > INT64_C(1700000000) * NS_PER_SEC);
    waiting_destroy(&waiting);
}

TEST(manual_time_stands_still_until_it_is_moved)
{
    struct manual_clock manual;

    manual_clock_init(&manual, 1000, 5);
    assert_int_equal(clock_wall(&manual.clock), 1000);
    assert_int_equal(clock_mono(&manual.clock), 5);
    manual_clock_advance(&manual, 30);
    assert_int_equal(clock_wall(&manual.clock), 1030);
    assert_int_equal(clock_mono(&manual.clock), 35);
    manual_clock_set_wall(&manual, 7);
    assert_int_equal(clock_wall(&manual.clock), 7);
    assert_int_equal(clock_mono(&manual.clock), 35);
    manual_clock_destroy(&manual);
}

TEST(a_wait_for_a_manual_moment_that_has_passed_returns_at_once)
{
    struct manual_clock manual;
    struct waiting waiting;

    manual_clock_init(&manual, 0, 100);
    waiting_init(&waiting, &manual.clock, 100);
    wait_for_signal_or_deadline(&waiting);
    assert_false(waiting.saw_signal);
    waiting_destroy(&waiting);
    manual_clock_destroy(&manual);
}

TEST(advancing_wakes_those_whose_moment_has_come_and_no_other)
{
    enum { EARLY = 3, LATE = 2 };
    struct manual_clock manual;
    struct waiting waiting[EARLY + LATE];
    pthread_t threads[EARLY + LATE];

    manual_clock_init(&manual, 0, 0);
    for (size_t i = 0; i < EARLY + LATE; i++) {
        waiting_init(&waiting[i], &manual.clock, i < EARLY ? 10 : 20);
        pthread_create(&threads[i], NULL, wait_for_signal_or_deadline, &waiting[i]);
    }
    assert_true(manual_clock_await_waiters(&manual, EARLY + LATE));
    manual_clock_advance(&manual, 9);
    assert_true(manual_clock_await_waiters(&manual, EARLY + LATE));
    manual_clock_advance(&manual, 1);
    for (size_t i = 0; i < EARLY; i++)
        pthread_join(threads[i], NULL);
    assert_true(manual_clock_await_waiters(&manual, LATE));
    manual_clock_advance(&manual, 100);
    for (size_t i = EARLY; i < EARLY + LATE; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < EARLY + LATE; i++) {
        assert_false(waiting[i].saw_signal);
        waiting_destroy(&waiting[i]);
    }
    assert_int_equal(manual.n_waiters, 0);
    manual_clock_destroy(&manual);
}

TEST(a_signal_ends_a_manual_wait_before_its_moment)
{
    struct manual_clock manual;
    struct waiting waiting;
    pthread_t thread;

    manual_clock_init(&manual, 0, 0);
    waiting_init(&waiting, &manual.clock, NS_PER_SEC);
    pthread_create(&thread, NULL, wait_for_signal_or_deadline, &waiting);
    assert_true(manual_clock_await_waiters(&manual, 1));
    give_signal(&waiting);
    pthread_join(thread, NULL);
    assert_true(waiting.saw_signal);
    waiting_destroy(&waiting);
    manual_clock_destroy(&manual);
}

TEST(signals_and_advances_that_race_lose_nobody)
{
    struct manual_clock manual;

    manual_clock_init(&manual, 0, 0);
    for (int i = 0; i < 500; i++) {
        struct waiting waiting;
        pthread_t thread;

        waiting_init(&waiting, &manual.clock, clock_mono(&manual.clock) + 1);
        pthread_create(&thread, NULL, wait_for_signal_or_deadline, &waiting);
        if (i % 2)
            give_signal(&waiting);
        manual_clock_advance(&manual, 1);
        pthread_join(thread, NULL);
        waiting_destroy(&waiting);
    }
    manual_clock_destroy(&manual);
}

TEST(the_environment_may_stop_wall_time)
{
    static const char *const wrong[] = { "", "now", "9223372036854775807" };

    assert_int_equal(setenv("SONDE_CLOCK", "1800000000", 1), 0);
    assert_int_equal(clock_wall(clock_of_environment()), 1800000000 * NS_PER_SEC);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(setenv("SONDE_CLOCK", wrong[i], 1), 0);
        assert_ptr_equal(clock_of_environment(), &clock_real);
    }
    assert_int_equal(unsetenv("SONDE_CLOCK"), 0);
    assert_ptr_equal(clock_of_environment(), &clock_real);
}

static void set_number(const char *path, int64_t number)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, &number, sizeof(number), 0), sizeof(number));
    close(fd);
}

TEST(the_environment_may_let_time_pass)
{
    const char *path = write_file("ahead", "");
    const struct clock *clock;
    struct waiting waiting;
    pthread_t thread;
    int64_t before;

    assert_int_equal(setenv("SONDE_CLOCK_AHEAD", path, 1), 0);
    assert_ptr_equal(clock_of_environment(), &clock_real); /* the file is empty */
    set_number(path, 0);
    clock = clock_of_environment();
    assert_ptr_not_equal(clock, &clock_real);
    assert_ptr_equal(clock_of_environment(), clock);
    before = clock_mono(clock);
    waiting_init(&waiting, clock, before + 3600 * NS_PER_SEC);
    pthread_create(&thread, NULL, wait_for_signal_or_deadline, &waiting);
    set_number(path, 3600 * NS_PER_SEC);
    pthread_join(thread, NULL);
    assert_false(waiting.saw_signal);
    assert_true(clock_mono(clock) >= before + 3600 * NS_PER_SEC);
    assert_true(clock_wall(clock) > clock_wall(&clock_real));
    waiting_destroy(&waiting);

    assert_int_equal(setenv("SONDE_CLOCK", "1800000000", 1), 0);
    clock = clock_of_environment();
    assert_int_equal(clock_mono(clock), 1800003600 * NS_PER_SEC);
    set_number(path, 1);
    assert_int_equal(clock_wall(clock), 1800000000 * NS_PER_SEC + 1);
    unsetenv("SONDE_CLOCK");
    unsetenv("SONDE_CLOCK_AHEAD");
}

TEST(a_clock_that_may_jump_lets_nobody_sleep_for_long)
{
    const struct clock jumping = { .longest_nap_ns = 7 };

    assert_int_equal(clock_nap(&jumping, 8), 7);
    assert_int_equal(clock_nap(&jumping, 6), 6);
    assert_int_equal(clock_nap(&jumping, -1), -1);
    assert_int_equal(clock_nap(&clock_real, INT64_MAX), INT64_MAX);
}
