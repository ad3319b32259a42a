/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/clock_watch: when a wall clock may be believed. */
#include "test.h"

#include "base/clock_watch.h"
#include "files.h"
#include "manual_clock.h"

enum { NOW = 1700000000, HOUR = 3600, DAY = 24 * HOUR };

static struct manual_clock manual;
static struct clock_watch watch;
static struct log *lines;

static void set_up(void)
{
    manual_clock_init(&manual, NOW * NS_PER_SEC, 50 * NS_PER_SEC);
    lines = test_log(&manual.clock);
    clock_watch_init(&watch, &manual.clock, "job history");
}

static void tear_down(void)
{
    log_free(lines);
    manual_clock_destroy(&manual);
}

FIXTURE(set_up, tear_down)

static void pass(int64_t seconds)
{
    manual_clock_advance(&manual, seconds * NS_PER_SEC);
}

static void set_ahead(int64_t seconds)
{
    manual_clock_set_wall(&manual, clock_wall(&manual.clock) + seconds * NS_PER_SEC);
}

/* slurmctld's clock is ahead of the right time by so much. */
static void hear(int64_t seconds)
{
    int64_t mono_ns = clock_mono(&manual.clock);

    clock_watch_hear(&watch, NOW + mono_ns / NS_PER_SEC - 50 + seconds, mono_ns);
}

static bool is_allowed(void)
{
    return clock_watch_allows(&watch, lines);
}

TEST(a_clock_alone_is_believed_after_an_hour)
{
    assert_false(is_allowed());
    pass(HOUR - 1);
    assert_false(is_allowed());
    assert_false(clock_watch_is_paused(&watch));
    pass(1);
    assert_true(is_allowed());
    assert_int_equal(count_logged("deleted by age"), 0);
}

TEST(a_jump_begins_the_hour_anew)
{
    pass(HOUR);
    assert_true(is_allowed());
    set_ahead(100 * DAY);
    assert_false(is_allowed());
    assert_int_equal(clock_watch_judge(&watch), CLOCK_JUMPED);
    assert_int_equal(count_logged("the clock jumped"), 1);
    pass(HOUR - 1);
    assert_false(is_allowed());
    assert_true(clock_watch_is_paused(&watch));
    pass(1);
    assert_true(is_allowed());
    assert_false(clock_watch_is_paused(&watch));
    assert_int_equal(count_logged("the clock jumped"), 1);
    assert_int_equal(count_logged("trusted again"), 1);
}

TEST(small_corrections_are_no_jump)
{
    pass(HOUR);
    set_ahead(200);
    assert_true(is_allowed());
    set_ahead(-200);
    assert_true(is_allowed());
}

TEST(many_small_corrections_are_one)
{
    pass(HOUR);
    for (int i = 0; i < 3; i++) {
        assert_true(is_allowed());
        set_ahead(100);
    }
    assert_true(is_allowed());
    set_ahead(1);
    assert_false(is_allowed());
}

TEST(slurmctld_confirms_a_clock_at_once)
{
    assert_false(is_allowed());
    hear(3);
    assert_true(is_allowed());
}

TEST(a_clock_that_slurmctld_contradicts_is_never_believed)
{
    set_ahead(100 * DAY);
    hear(0);
    assert_false(is_allowed());
    assert_int_equal(count_logged("differs from slurmctld's"), 1);
    pass(10 * HOUR);
    hear(0);
    assert_false(is_allowed());
    set_ahead(-100 * DAY);
    assert_true(is_allowed());
    assert_int_equal(count_logged("differs from slurmctld's"), 1);
    assert_int_equal(count_logged("trusted again"), 1);
}

TEST(what_slurmctld_said_holds_while_it_is_silent)
{
    hear(0);
    pass(10 * HOUR);
    assert_true(is_allowed());
    set_ahead(100 * DAY);
    pass(10 * HOUR);
    assert_int_equal(clock_watch_judge(&watch), CLOCK_DISAGREES);
}

/* On one host both have the same clock. */
TEST(two_clocks_that_jump_together_confirm_nothing)
{
    hear(0);
    assert_true(is_allowed());
    set_ahead(100 * DAY);
    pass(10);
    hear(100 * DAY);
    assert_false(is_allowed());
    set_ahead(-100 * DAY);
    pass(10);
    hear(0);
    assert_false(is_allowed());
    pass(HOUR);
    assert_true(is_allowed());
}

TEST(an_older_word_of_slurmctld_changes_nothing)
{
    int64_t mono_ns = clock_mono(&manual.clock);

    hear(0);
    clock_watch_hear(&watch, NOW + DAY, mono_ns - NS_PER_SEC);
    assert_true(is_allowed());
}

TEST(a_clock_far_ahead_of_the_records_has_to_be_steady)
{
    clock_watch_recall(&watch, NOW - 100 * DAY);
    hear(0);
    assert_false(is_allowed());
    assert_int_equal(count_logged("ahead of the newest record"), 1);
    pass(HOUR);
    assert_true(is_allowed());
}

TEST(records_of_yesterday_or_of_a_time_to_come_change_nothing)
{
    hear(0);
    clock_watch_recall(&watch, NOW - DAY);
    assert_true(is_allowed());
    clock_watch_recall(&watch, NOW + 100 * DAY);
    assert_true(is_allowed());
}
