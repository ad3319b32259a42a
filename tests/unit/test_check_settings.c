/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file in which a site sets its checks: what it may say, and that a mistake is named with its
 * line. */
#include "test.h"

#include "files.h"
#include "made_job.h"

#include "report/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct arena arena;
static struct check_settings settings;

static void set_up(void)
{
    check_settings_default(&arena, &settings);
}

static void tear_down(void)
{
    arena_clear(&arena);
}

FIXTURE(set_up, tear_down)

static size_t place_of(const char *name)
{
    size_t i = 0;

    while (i < n_checks && strcmp(checks[i].name, name) != 0)
        i++;
    assert_true(i < n_checks);
    return i;
}

static char path[64];
static struct err err;

static int read_text(const char *text)
{
    int fd = memfd_create("checks", MFD_CLOEXEC);
    int code;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    err = (struct err){ 0 };
    code = check_settings_read(path, &arena, &settings, &err);
    close(fd);
    return code;
}

static void assert_refused(const char *text, unsigned line, const char *why)
{
    struct check_setting *before = settings.check;
    char begin[100];

    assert_int_equal(read_text(text), -EINVAL);
    assert_int_equal(err.code, EINVAL);
    assert_ptr_equal(settings.check, before);
    snprintf(begin, sizeof(begin), "%s:%u: ", path, line);
    if (!str_starts(str_of(err.text), str_of(begin)))
        fail_msg("\"%s\" does not begin with \"%s\"", err.text, begin);
    assert_contains(err.text, why);
}

TEST(a_site_sets_threshold_severity_and_link)
{
    const struct check_setting *low;

    if (read_text("least_runtime: 1h30m\n"
                  "checks:\n"
                  "  cpu_low:\n"
                  "    threshold: 62.5\n"
                  "    severity: note\n"
                  "    link: https://docs.example.org/cpu?a=b#c\n"
                  "  swap: {severity: off}\n") < 0)
        fail_msg("%s", err.text);
    low = &settings.check[place_of("cpu_low")];
    assert_int_equal(settings.least_seconds, 5400);
    assert_true(low->threshold == 62.5);
    assert_int_equal(low->severity, SEVERITY_NOTE);
    assert_str(low->link, "https://docs.example.org/cpu?a=b#c");
    assert_int_equal(settings.check[place_of("swap")].severity, SEVERITY_OFF);
    assert_true(settings.check[place_of("swap")].threshold == 100);
    assert_true(settings.check[place_of("cpu_very_low")].threshold == 65);
    assert_int_equal(settings.check[place_of("cpu_very_low")].link.n, 0);
    assert_int_equal(read_text(""), 0);
    assert_int_equal(settings.least_seconds, 300);
    assert_int_equal(read_text("checks:\n"), 0);
}

TEST(what_is_set_is_what_is_judged_by)
{
    struct finding *finding;
    struct job_facts job;
    size_t n;

    assert_int_equal(read_text("checks:\n"
                               "  memory_low: {threshold: 90, severity: critical, link: "
                               "'https://x.example/'}\n"),
                     0);
    made_job(&job, &arena);
    facts_finish(&job);
    checks_run(&settings, &job, &arena, &finding, &n);
    assert_int_equal(n, 1);
    assert_ptr_equal(finding[0].check, &checks[place_of("memory_low")]);
    assert_int_equal(finding[0].severity, SEVERITY_CRITICAL);
    assert_str(finding[0].link, "https://x.example/");
}

TEST(the_example_is_read)
{
    if (check_settings_read(source_path("packaging/examples/checks.yml"), &arena, &settings, &err) <
        0)
        fail_msg("%s", err.text);
    assert_int_equal(settings.check[place_of("scratch_unused")].severity, SEVERITY_NOTE);
}

TEST(mistakes_are_named_with_their_line)
{
    char text[3000];

    assert_refused("checks:\n  cpu_lowe: {severity: off}\n", 2, "did you mean cpu_low?");
    assert_refused("checks:\n  cpu_low: off\n", 2, "is a mapping");
    assert_refused("checks: [cpu_low]\n", 1, "is a mapping");
    assert_refused("checks:\n  cpu_low:\n    treshold: 3\n", 3, "unknown key treshold");
    assert_refused("checks:\n  cpu_low:\n    threshold: 101\n", 3, "from 0 to 100 (%)");
    assert_refused("checks: {cpu_low: {threshold: -1}}\n", 1, "from 0 to 100");
    assert_refused("checks: {cpu_low: {threshold: nan}}\n", 1, "\"nan\" is not");
    assert_refused("checks: {swap: {threshold: inf}}\n", 1, "\"inf\" is not");
    assert_refused("checks: {swap: {threshold: 1e10}}\n", 1, "from 0 to 1000000000 (MiB)");
    assert_refused("checks: {swap: {threshold: [1]}}\n", 1, "threshold is one value");
    assert_refused("checks: {swap: {threshold: }}\n", 1, "threshold is one value");
    assert_refused("checks: {timeout: {threshold: 1}}\n", 1, "timeout has no threshold");
    assert_refused("checks: {swap: {severity: bad}}\n", 1, "off, note, warning or critical");
    assert_refused("checks: {swap: {link: 'javascript:alert(1)'}}\n", 1, "link is a URL");
    assert_refused("checks: {swap: {link: \"https://a b\"}}\n", 1, "link is a URL");
    assert_refused("checks: {swap: {link: \"https://a\\nb\"}}\n", 1, "link is a URL");
    assert_refused("least_runtime: soon\n", 1, "least_runtime is a time");
    assert_refused("least_runtime: 31d\n", 1, "at most 30d");
    assert_refused("least_runtime: -5m\n", 1, "least_runtime is a time");
    assert_refused("cpu_low: {severity: off}\n", 1, "there are least_runtime and checks");
    assert_refused("[1, 2]\n", 1, "the file is a mapping");
    snprintf(text, sizeof(text), "checks: {swap: {link: \"https://%01000d\"}}\n", 7);
    assert_refused(text, 1, "at most 1000 bytes");
    snprintf(text, sizeof(text), "checks: {x%01000d: {severity: off}}\n", 7);
    assert_refused(text, 1, "there is no check x0");
}

TEST(a_file_that_is_not_there_is_told)
{
    err = (struct err){ 0 };
    assert_int_equal(check_settings_read("/nonexistent/checks.yml", &arena, &settings, &err),
                     -EINVAL);
    assert_contains(err.text, "/nonexistent/checks.yml");
}
