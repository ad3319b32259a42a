/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every unit test includes: how a test is written, cmocka's checks, and a few that print what
 * differs.
 *
 *     TEST(a_host_list_is_expanded)
 *     {
 *         assert_int_equal(...);
 *     }
 *
 * A test is a function whose name says the behaviour; it registers itself. Tests run in the order
 * of the source. The program takes names of tests as arguments, to run only those. */
#ifndef SONDE_TESTS_TEST_H
#define SONDE_TESTS_TEST_H

#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"

/* How long any wait may hang until the test fails. It only bounds a hang: no test waits for it. */
#define TEST_DEADLINE (5 * 60 * NS_PER_SEC)

struct test {
    const char *name;
    int line;
    void (*run)(void);
    void (*set_up)(void), (*tear_down)(void); /* NULL: those of FIXTURE */
    bool is_bulk; /* much data, no concurrency: left out with the thread sanitizer, which is slow */
    /* for test.c */
    struct test *next;
    struct CMUnitTest *entry;
    bool is_set_up;
};

/* TEST(name) or, with a fixture of its own, TEST(name, .set_up = f, .tear_down = g). */
#define TEST(function, ...)                                                                        \
    static void function(void);                                                                    \
    __attribute__((constructor)) static void register_##function(void)                             \
    {                                                                                              \
        static struct test test = {                                                                \
            .name = #function, .line = __LINE__, .run = function, ##__VA_ARGS__                    \
        };                                                                                         \
                                                                                                   \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void function(void)

/* Run around each test that has none of its own; either may be NULL. What a set-up asserts fails
 * the test; it is torn down also when the test fails, but not after a set-up that failed. */
#define FIXTURE(set_up, tear_down)                                                                 \
    __attribute__((constructor)) static void register_fixture(void)                                \
    {                                                                                              \
        test_fixture(set_up, tear_down);                                                           \
    }

/* Run once, around all tests of the program. */
#define PROGRAM_FIXTURE(set_up, tear_down)                                                         \
    __attribute__((constructor)) static void register_program_fixture(void)                        \
    {                                                                                              \
        test_program_fixture(set_up, tear_down);                                                   \
    }

void test_register(struct test *test);
void test_fixture(void (*set_up)(void), void (*tear_down)(void));
void test_program_fixture(void (*set_up)(void), void (*tear_down)(void));

/* For a program that starts itself as a child: called before any test; returns if the arguments are
 * not those of a child. */
void test_child_main(int argc, char **argv);

/* Ends the test, or all tests if called by the program's set-up, as skipped. */
__attribute__((noreturn, format(printf, 1, 2))) void skip_because(const char *format, ...);

/* Skips as "needs NAME: REASON" if the machine lacks something: SONDE_MISSING has a line
 * "name: reason" for each capability that ./check has found missing (tests/capabilities.py). */
void need(const char *name);

/* Takes the capabilities of the calling thread, and of those it starts, until the test ends: file
 * permissions then hold also for root, of the machine or of a user namespace, as for any owner. */
void lower_capabilities(void);

/* cmocka's own says no reason, and prints it as a failure. */
#undef skip

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

/* For what another thread does in its own time, such as counting after it has answered. The naps
 * leave the processor to that thread. */
#define wait_until_true(condition)                                                                 \
    do {                                                                                           \
        int64_t deadline_ = clock_mono(&clock_real) + TEST_DEADLINE;                               \
        while (!(condition) && clock_mono(&clock_real) < deadline_)                                \
            poll(NULL, 0, 1);                                                                      \
        assert_true(condition);                                                                    \
    } while (0)

#endif
