/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/pattern: regular expressions. */
#include "test.h"

#include "base/pattern.h"

static bool finds(const char *expression, const char *text)
{
    struct pattern *pattern;
    struct err err;
    bool found;

    assert_int_equal(pattern_new(str_of(expression), &pattern, &err), 0);
    found = pattern_finds(pattern, str_of(text));
    pattern_free(pattern);
    return found;
}

TEST(it_is_found_anywhere_unless_it_is_anchored)
{
    assert_true(finds("cpu", "slurm_cpus_total"));
    assert_false(finds("^cpu", "slurm_cpus_total"));
    assert_true(finds("^slurm_(cpus|mem)_\\w+$", "slurm_cpus_total"));
    assert_false(finds("^slurm_(cpus|mem)$", "slurm_cpus_total"));
}

TEST(what_go_programs_write_is_understood)
{
    assert_true(finds("(?i)SLURM_user", "slurm_user_state_total"));
    assert_true(finds("(?P<who>user|account)_\\d", "user_1"));
    assert_true(finds("\\p{L}+", "é"));
}

TEST(a_mistake_is_told_with_its_place)
{
    struct pattern *pattern;
    struct err err;

    assert_int_equal(pattern_new(STR("slurm_(cpus"), &pattern, &err), -EINVAL);
    assert_contains(err.text, "slurm_(cpus");
    assert_contains(err.text, "11");
}

/* Without a limit this takes longer than anybody waits. */
TEST(one_that_takes_too_long_is_not_found)
{
    assert_false(finds("^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
}
