/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main() of every unit test: runs what has registered itself, by cmocka.
 * cmocka prints TAP if CMOCKA_MESSAGE_OUTPUT=TAP. A skipped test passes for cmocka; its name then
 * ends with "# SKIP reason", which is how TAP tells it. */
#include "test.h"

#include "files.h"

#include "base/arena.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct test_fixture {
    void (*set_up)(void), (*tear_down)(void);
};

static struct test *first_test;
static struct test_fixture for_each, for_all;
static struct CMUnitTest *entries;
static bool is_all_skipped;

/* Where skip_because() goes back to, and what it says. */
static jmp_buf at_skip;
static char reason[1000];

/* Constructors of a file run in any order, tests in that of their lines. */
void test_register(struct test *test)
{
    struct test **at = &first_test;

    while (*at && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void test_fixture(void (*set_up)(void), void (*tear_down)(void))
{
    for_each = (struct test_fixture){ set_up, tear_down };
}

void test_program_fixture(void (*set_up)(void), void (*tear_down)(void))
{
    for_all = (struct test_fixture){ set_up, tear_down };
}

__attribute__((weak)) void test_child_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
}

void skip_because(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    longjmp(at_skip, 1);
}

void need(const char *name)
{
    const char *missing = getenv("SONDE_MISSING");
    struct str lines = str_of(missing ? missing : ""), line;

    while (lines.n) {
        line = str_cut(&lines, '\n');
        if (str_eq(str_cut(&line, ':'), str_of(name)))
            skip_because("needs %s: %.*s", name, STR_ARG(str_trim(line)));
    }
}

static void set_effective_capabilities(bool all)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

    assert_int_equal(syscall(SYS_capget, &header, words), 0);
    for (size_t i = 0; i < COUNT(words); i++)
        words[i].effective = all ? words[i].permitted : 0;
    assert_int_equal(syscall(SYS_capset, &header, words), 0);
}

void lower_capabilities(void)
{
    set_effective_capabilities(false);
}

/* False if the function has skipped. */
static bool run_skippable(void (*function)(void))
{
    if (setjmp(at_skip))
        return false;
    if (function)
        function();
    return true;
}

static int set_up_all(void **state)
{
    (void)state;
    is_all_skipped = !run_skippable(for_all.set_up);
    return 0;
}

static int tear_down_all(void **state)
{
    (void)state;
    if (for_all.tear_down && !is_all_skipped)
        for_all.tear_down();
    files_end_program();
    return 0;
}

/* cmocka prints the name after the test has run. */
static void tell_skipped(struct test *test)
{
    char *text;

    assert_true(asprintf(&text, "%s # SKIP %s", test->name, reason) > 0);
    test->entry->name = text;
}

/* Sets up as well: what a set-up of cmocka's asserts is not printed as TAP. */
static void run(void **state)
{
    struct test *test = *state;

    files_begin_test();
    test->is_set_up =
        !is_all_skipped && run_skippable(test->set_up ? test->set_up : for_each.set_up);
    if (!test->is_set_up || !run_skippable(test->run))
        tell_skipped(test);
}

static int tear_down(void **state)
{
    struct test *test = *state;
    void (*function)(void) = test->tear_down ? test->tear_down : for_each.tear_down;

    set_effective_capabilities(true);
    if (test->is_set_up && function)
        function();
    files_end_test();
    return 0;
}

static struct test *find(const char *name)
{
    struct test *test = first_test;

    while (test && strcmp(test->name, name) != 0)
        test = test->next;
    return test;
}

#ifdef __SANITIZE_THREAD__
#define HAS_THREAD_SANITIZER true
#else
#define HAS_THREAD_SANITIZER false
#endif

static bool is_wanted(const struct test *test, char **names)
{
    if (!*names)
        return !(test->is_bulk && HAS_THREAD_SANITIZER);
    while (*names && strcmp(*names, test->name) != 0)
        names++;
    return *names;
}

int main(int argc, char **argv)
{
    size_t n = 0;

    test_child_main(argc, argv);
    for (char **name = argv + 1; *name; name++)
        if (!find(*name)) {
            fprintf(stderr, "%s: there is no test %s\n", argv[0], *name);
            return 2;
        }
    for (const struct test *test = first_test; test; test = test->next)
        n++;
    if (!n) {
        fprintf(stderr, "%s: no test is registered\n", argv[0]);
        return 2;
    }
    entries = heap_alloc(n * sizeof(*entries));
    n = 0;
    for (struct test *test = first_test; test; test = test->next)
        if (is_wanted(test, argv + 1)) {
            test->entry = &entries[n++];
            *test->entry = (struct CMUnitTest){ test->name, run, NULL, tear_down, test };
        }
    return _cmocka_run_group_tests(argv[0], entries, n, set_up_all, tear_down_all);
}
