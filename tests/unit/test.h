/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every unit test includes: cmocka, and a few checks that print what differs.
 * A test is a function whose name says the behaviour; list it in main with cmocka_unit_test. */
#ifndef SONDE_TESTS_TEST_H
#define SONDE_TESTS_TEST_H

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"

#define assert_str(actual, expected)                                                               \
    do {                                                                                           \
        struct str actual_ = (actual), expected_ = str_of(expected);                               \
        if (!str_eq(actual_, expected_))                                                           \
            fail_msg("got \"%.*s\", expected \"%.*s\"", STR_ARG(actual_), STR_ARG(expected_));     \
    } while (0)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        struct str text_ = str_of(text), part_ = str_of(part);                                     \
        if (part_.n && str_find_str(text_, part_) == text_.n)                                      \
            fail_msg("\"%.*s\" does not contain \"%.*s\"", STR_ARG(text_), STR_ARG(part_));        \
    } while (0)

/* For what another thread does in its own time, such as counting after it has answered. */
#define wait_until_true(condition)                                                                 \
    do {                                                                                           \
        int64_t deadline_ = clock_mono(&clock_real) + 20 * NS_PER_SEC;                             \
        while (!(condition) && clock_mono(&clock_real) < deadline_)                                \
            sched_yield();                                                                         \
        assert_true(condition);                                                                    \
    } while (0)

#define RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)

#endif
