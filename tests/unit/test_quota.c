/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/quota. */
#include "test.h"

#include "base/quota.h"

TEST(what_is_taken_counts_for_all_groups_around_it)
{
    struct quota all = { .max = 10 }, job = { &all, .max = 6 }, step = { &job, .max = 4 };

    assert_true(quota_take(&step, 3));
    assert_true(quota_take(&job, 1));
    assert_int_equal(step.n, 3);
    assert_int_equal(job.n, 4);
    assert_int_equal(all.n, 4);
    quota_give(&step, 3);
    assert_int_equal(step.n, 0);
    assert_int_equal(job.n, 1);
    assert_int_equal(all.n, 1);
}

TEST(a_full_group_refuses_all_of_it_and_counts_that)
{
    uint64_t by_step = 0, by_all = 0;
    struct quota all = { .max = 5, .refusals = &by_all };
    struct quota one = { &all, .max = 4, .refusals = &by_step };
    struct quota two = { &all, .max = 4, .refusals = &by_step };

    assert_true(quota_take(&one, 4));
    assert_false(quota_take(&one, 1));
    assert_int_equal(by_step, 1);
    assert_false(quota_take(&two, 2));
    assert_int_equal(by_all, 1);
    assert_int_equal(two.n, 0);
    assert_int_equal(all.n, 4);
    assert_true(quota_take(&two, 1));
    quota_give(&one, 4);
    assert_true(quota_take(&two, 3));
}

TEST(without_a_quota_there_is_no_limit)
{
    assert_true(quota_take(NULL, SIZE_MAX));
    quota_give(NULL, SIZE_MAX);
}
