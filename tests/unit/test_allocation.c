/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is left of an allocation, how long it lasts, and how many may be in use all the time. */
#include "test.h"

#include "model/allocation.h"

#include <math.h>

static const int64_t day = 24 * 3600;
static const int64_t start_of_2026 = 1767225600, start_of_2027 = 1798761600;
static const int64_t start_of_2028 = 1830297600, start_of_2029 = 1861920000;

static struct allocation gpus(int64_t from, int64_t to, double years, double used, double rate)
{
    return (struct allocation){
        .from = from,
        .to = to,
        .seconds = { NAN, years * (double)ALLOCATION_YEAR_SECONDS },
        .used = { NAN, used },
        .rate = { NAN, rate },
        .storage_bytes = NAN,
        .students = NAN,
    };
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6 * fmax(1, fabs(expected))))
        fail_msg("%f is not %f", value, expected);
}

TEST(a_year_of_365_days_holds_a_little_less_than_a_gpu_year)
{
    struct allocation of = gpus(start_of_2026, start_of_2027, 10, 0, 0);

    assert_near(allocation_steady(&of, ALLOCATION_GPUS), 10 * 365.25 / 365);
}

TEST(a_leap_year_holds_a_little_more)
{
    struct allocation of = gpus(start_of_2028, start_of_2029, 10, 0, 0);

    assert_int_equal(start_of_2029 - start_of_2028, 366 * day);
    assert_near(allocation_steady(&of, ALLOCATION_GPUS), 10 * 365.25 / 366);
}

TEST(half_a_year_lets_twice_as_many_be_used)
{
    struct allocation of =
        gpus(start_of_2026, start_of_2026 + ALLOCATION_YEAR_SECONDS / 2, 10, 0, 0);

    assert_near(allocation_steady(&of, ALLOCATION_GPUS), 20);
}

TEST(what_was_promised_for_good_has_a_threshold_and_no_end)
{
    struct allocation of = gpus(0, 0, 10, 5, 100);

    assert_near(allocation_steady(&of, ALLOCATION_GPUS), 10);
    assert_true(isnan(allocation_left(&of, ALLOCATION_GPUS)));
    assert_true(isnan(allocation_empty_at(&of, ALLOCATION_GPUS, start_of_2027)));
}

TEST(what_was_not_promised_is_unknown)
{
    struct allocation of = gpus(start_of_2026, start_of_2027, 10, 0, 1);

    of.used[ALLOCATION_CPUS] = 7;
    of.rate[ALLOCATION_CPUS] = 7;
    assert_true(isnan(allocation_steady(&of, ALLOCATION_CPUS)));
    assert_true(isnan(allocation_left(&of, ALLOCATION_CPUS)));
    assert_true(isnan(allocation_empty_at(&of, ALLOCATION_CPUS, start_of_2026 + day)));
}

TEST(what_is_used_is_taken_from_what_was_promised)
{
    struct allocation of = gpus(start_of_2026, start_of_2027, 1, 1557600, 0);

    assert_near(allocation_left(&of, ALLOCATION_GPUS), 30000000);
}

TEST(it_runs_out_when_the_rest_is_used_at_the_present_rate)
{
    /* 100 GPU-days, of which 40 are gone; 6 GPUs in use: ten days more */
    struct allocation of = gpus(start_of_2026, start_of_2027, 100 / 365.25, 40. * (double)day, 6);
    int64_t now = start_of_2026 + 30 * day;

    assert_near(allocation_empty_at(&of, ALLOCATION_GPUS, now), (double)(now + 10 * day));
}

TEST(what_lasts_until_its_end_does_not_run_out)
{
    struct allocation of =
        gpus(start_of_2026, start_of_2026 + 40 * day, 100 / 365.25, 40. * (double)day, 6);
    int64_t ten_days_before = start_of_2026 + 30 * day;

    assert_true(isnan(allocation_empty_at(&of, ALLOCATION_GPUS, ten_days_before + 1)));
    assert_false(isnan(allocation_empty_at(&of, ALLOCATION_GPUS, ten_days_before - 1)));
}

TEST(what_nobody_uses_does_not_run_out)
{
    struct allocation of = gpus(start_of_2026, start_of_2027, 10, 0, 0);

    assert_true(isnan(allocation_empty_at(&of, ALLOCATION_GPUS, start_of_2026 + day)));
}

TEST(an_unknown_use_or_rate_gives_no_date)
{
    struct allocation unused = gpus(start_of_2026, start_of_2027, 10, NAN, 1e6);
    struct allocation unrated = gpus(start_of_2026, start_of_2027, 10, 5, NAN);

    assert_true(isnan(allocation_empty_at(&unused, ALLOCATION_GPUS, start_of_2026 + day)));
    assert_true(isnan(allocation_empty_at(&unrated, ALLOCATION_GPUS, start_of_2026 + day)));
}

TEST(one_that_is_exhausted_was_empty_in_the_past)
{
    /* 10 GPU-days too many, 5 GPUs in use: two days ago */
    struct allocation of = gpus(start_of_2026, start_of_2027, 100 / 365.25, 110. * (double)day, 5);
    int64_t now = start_of_2026 + 30 * day;

    assert_near(allocation_left(&of, ALLOCATION_GPUS), -10. * (double)day);
    assert_near(allocation_empty_at(&of, ALLOCATION_GPUS, now), (double)(now - 2 * day));
    of.rate[ALLOCATION_GPUS] = 0;
    assert_near(allocation_empty_at(&of, ALLOCATION_GPUS, now), (double)now);
    of.rate[ALLOCATION_GPUS] = 0.01;
    assert_near(allocation_empty_at(&of, ALLOCATION_GPUS, now), (double)start_of_2026);
}

TEST(one_that_promises_nothing_is_empty_from_its_start)
{
    struct allocation of = gpus(start_of_2026, start_of_2027, 0, 0, 0);

    assert_near(allocation_steady(&of, ALLOCATION_GPUS), 0);
    assert_near(allocation_left(&of, ALLOCATION_GPUS), 0);
    assert_near(allocation_empty_at(&of, ALLOCATION_GPUS, start_of_2026), (double)start_of_2026);
}

TEST(one_that_has_not_begun_is_used_from_its_beginning_on)
{
    struct allocation of = gpus(start_of_2026, start_of_2027, 100 / 365.25, 0, 10);

    assert_near(allocation_empty_at(&of, ALLOCATION_GPUS, start_of_2026 - 100 * day),
                (double)(start_of_2026 + 10 * day));
}

TEST(one_that_has_ended_with_a_rest_never_runs_out)
{
    struct allocation rest = gpus(start_of_2026, start_of_2027, 10, 5, 1e9);
    struct allocation none =
        gpus(start_of_2026, start_of_2027, 100 / 365.25, 110. * (double)day, 5);

    assert_true(isnan(allocation_empty_at(&rest, ALLOCATION_GPUS, start_of_2028)));
    assert_near(allocation_empty_at(&none, ALLOCATION_GPUS, start_of_2028),
                (double)(start_of_2027 - 2 * day));
}
