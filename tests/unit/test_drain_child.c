/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In place of sonde report, scripts that write what happens to them into a file. */
#include "test.h"

#include "cmd/drain_child.h"
#include "files.h"
#include "manual_clock.h"

#include <sys/wait.h>

struct fixture {
    struct manual_clock clock;
    const char *told;
    struct log *log;
    struct drain_child *child;
};

static struct fixture f;

static void set_up(void)
{
    f = (struct fixture){ .told = write_file("told", "") };
    manual_clock_init(&f.clock, NS_PER_SEC, 50 * NS_PER_SEC);
    f.log = test_log(&f.clock.clock);
}

static void tear_down(void)
{
    drain_child_stop(f.child);
    log_free(f.log);
    manual_clock_destroy(&f.clock);
}

FIXTURE(set_up, tear_down)

/* $told is a file. */
static void start(const char *script)
{
    char commands[1000];
    struct drain_child_config config = {
        .config_file = "/etc/x y.yml",
        .clock = &f.clock.clock,
        .log = f.log,
    };
    struct err err;

    snprintf(commands, sizeof(commands), "told=%s\n%s", f.told, script);
    config.program = write_script("report", commands);
    if (drain_child_start(&config, &f.child, &err) < 0)
        fail_msg("%s", err.text);
}

static size_t lines_told(void)
{
    size_t n = 0;

    for (const char *p = read_file(f.told).p; *p; p++)
        n += *p == '\n';
    return n;
}

TEST(it_runs_until_it_is_told_to_end)
{
    /* A signal just before read(2) would be lost; none is before wait. */
    start("sleep 1000 &\n"
          "trap 'echo ended >>\"$told\"; kill $! 2>/dev/null; exit' TERM\n"
          "echo \"$*\" >>\"$told\"\nwait");
    wait_until_true(lines_told() == 1);
    assert_str(read_file(f.told), "--config.file=/etc/x y.yml --drain --follow\n");
    wait_until_true(drain_child_is_up(f.child));
    f.child = drain_child_stop(f.child);
    assert_str(read_file(f.told), "--config.file=/etc/x y.yml --drain --follow\nended\n");
}

/* Time goes on only when the script has ended: however long it takes, it did not run for long. */
static void notice_end(void)
{
    siginfo_t info;

    waitid(P_ALL, 0, &info, WEXITED | WNOWAIT); /* fails if the end was noticed before */
    assert_true(manual_clock_await_waiters(&f.clock, 1));
    manual_clock_advance(&f.clock, 100 * NS_PER_MS);
}

static bool is_logged(const char *words)
{
    return strstr(logged().p, words);
}

TEST(one_that_ends_is_started_again_ever_more_rarely)
{
    start("echo x >>\"$told\"; exit 2");
    for (size_t n = 1, seconds = 1; n <= 3; n++, seconds *= 2) {
        char words[32];

        wait_until_true(lines_told() == n);
        notice_end();
        snprintf(words, sizeof(words), " in_seconds=%zu ", seconds);
        wait_until_true(is_logged(words));
        assert_true(manual_clock_await_waiters(&f.clock, 1));
        assert_false(drain_child_is_up(f.child));
        manual_clock_advance(&f.clock, (int64_t)seconds * NS_PER_SEC);
    }
    assert_contains(logged().p, "sonde report --drain has ended; it is started again");
    assert_contains(logged().p,
                    "status=2 in_seconds=1 hint=\"look at the file of --report.config\"");
}
