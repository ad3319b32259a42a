/* SPDX-License-Identifier: GPL-2.0-or-later */
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

static void it_is_found_anywhere_unless_it_is_anchored(void **state)
{
    (void)state;
    assert_true(finds("cpu", "slurm_cpus_total"));
    assert_false(finds("^cpu", "slurm_cpus_total"));
    assert_true(finds("^slurm_(cpus|mem)_\\w+$", "slurm_cpus_total"));
    assert_false(finds("^slurm_(cpus|mem)$", "slurm_cpus_total"));
}

static void what_go_programs_write_is_understood(void **state)
{
    (void)state;
    assert_true(finds("(?i)SLURM_user", "slurm_user_state_total"));
    assert_true(finds("(?P<who>user|account)_\\d", "user_1"));
    assert_true(finds("\\p{L}+", "é"));
}

static void a_mistake_is_told_with_its_place(void **state)
{
    struct pattern *pattern;
    struct err err;

    (void)state;
    assert_int_equal(pattern_new(STR("slurm_(cpus"), &pattern, &err), -EINVAL);
    assert_contains(err.text, "slurm_(cpus");
    assert_contains(err.text, "11");
}

/* Without a limit this takes longer than anybody waits. */
static void one_that_takes_too_long_is_not_found(void **state)
{
    (void)state;
    assert_false(finds("^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_found_anywhere_unless_it_is_anchored),
        cmocka_unit_test(what_go_programs_write_is_understood),
        cmocka_unit_test(a_mistake_is_told_with_its_place),
        cmocka_unit_test(one_that_takes_too_long_is_not_found),
    };

    return RUN_TESTS(tests);
}
