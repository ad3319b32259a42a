/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/stop_guard. A guard may exit the process, so each test runs in a child that writes
 * what happens into the log. */
#include "test.h"

#include "base/stop_guard.h"
#include "files.h"
#include "manual_clock.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BY_ITSELF = 7, SAVED = 8, BROKEN = 99 };

static struct {
    struct manual_clock manual;
    struct log *log;
    struct stop_guard *guard;
} f;

static void set_up(void)
{
    manual_clock_init(&f.manual, 1700000000 * NS_PER_SEC, 1000 * NS_PER_SEC);
    f.log = test_log(&f.manual.clock);
}

static void tear_down(void)
{
    log_free(f.log);
    manual_clock_destroy(&f.manual);
}

FIXTURE(set_up, tear_down)

/* --- in the child --- */

static void check(bool is_so, const char *what)
{
    if (is_so)
        return;
    LOG(f.log, LOG_ERROR, "not so", LOG_STR("what", what));
    _exit(BROKEN);
}

static void start(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    check(stop_guard_start(&signals, &f.manual.clock, f.log, &f.guard, NULL) == 0, "a guard");
}

static void stop_by(int signal)
{
    kill(getpid(), signal);
    check(stop_guard_wait(f.guard, -1) == SIGTERM, "a stop");
}

/* Time passes when the guard waits for it. */
static void pass(int64_t ns)
{
    check(manual_clock_await_waiters(&f.manual, 1), "a guard that waits");
    manual_clock_advance(&f.manual, ns);
}

static void say(const char *literal)
{
    log_write(f.log, LOG_INFO, literal, NULL, 0);
}

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

/* --- what becomes of it --- */

static int status_of(void (*scenario)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        scenario();
        _exit(BY_ITSELF);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The messages of the log's lines, in order. */
static void assert_logged(const char *const *expected)
{
    const char *text = logged().p;

    for (; *expected; expected++) {
        text = strstr(text, *expected);
        if (!text)
            fail_msg("no %s, or not in its place, in \"%s\"", *expected, logged().p);
    }
}

#define ASSERT_LOGGED(...) assert_logged((const char *const[]){ __VA_ARGS__, NULL })

static void hang_in_a_part(void)
{
    start();
    stop_by(SIGTERM);
    stop_guard_part(f.guard, "HTTP server");
    stop_guard_part(f.guard, "sampler");
    pass(STOP_NS - 1);
    say("nearly");
    pass(1);
    hang();
}

TEST(a_part_that_hangs_is_named_and_left_behind)
{
    assert_int_equal(status_of(hang_in_a_part), 0);
    ASSERT_LOGGED("msg=stopping signal=SIGTERM", "nearly", "level=error", "part=sampler");
}

static void end_in_time(void)
{
    start();
    stop_by(SIGINT);
    stop_guard_part(f.guard, "sampler");
    pass(STOP_NS - 1);
    stop_guard_end(f.guard);
    manual_clock_advance(&f.manual, 10 * STOP_WRITE_NS);
}

TEST(who_stops_in_time_is_left_alone)
{
    assert_int_equal(status_of(end_in_time), BY_ITSELF);
    assert_int_equal(count_logged("level=error"), 0);
    ASSERT_LOGGED("msg=stopping signal=SIGINT");
}

static void hang_before_the_signal(void)
{
    start();
    stop_guard_part(f.guard, "reload");
    kill(getpid(), SIGTERM);
    pass(STOP_NS);
    hang();
}

TEST(a_main_thread_that_hangs_is_no_obstacle)
{
    assert_int_equal(status_of(hang_before_the_signal), 0);
    ASSERT_LOGGED("part=reload");
}

static void send_it_twice(void)
{
    start();
    stop_by(SIGTERM);
    pass(STOP_NS / 2);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    say("again");
    pass(STOP_NS / 2);
    hang();
}

TEST(a_second_signal_changes_nothing)
{
    assert_int_equal(status_of(send_it_twice), 0);
    ASSERT_LOGGED("msg=stopping", "again", "level=error");
    assert_int_equal(count_logged("msg=stopping"), 1);
}

static void reload_and_stop(void)
{
    start();
    check(stop_guard_wait(f.guard, 0) == 0, "nothing yet");
    for (int i = 0; i < 3; i++) {
        kill(getpid(), SIGHUP);
        check(stop_guard_wait(f.guard, -1) == SIGHUP, "a reload");
    }
    stop_by(SIGTERM);
    stop_guard_end(f.guard);
}

TEST(it_hands_on_reloads)
{
    assert_int_equal(status_of(reload_and_stop), BY_ITSELF);
}

static void fail_to_start(void)
{
    start();
    stop_guard_fail(f.guard, 2);
    stop_guard_part(f.guard, "HTTP server");
    pass(STOP_NS);
    hang();
}

TEST(a_failure_keeps_its_status)
{
    assert_int_equal(status_of(fail_to_start), 2);
    assert_int_equal(count_logged("msg=stopping"), 0);
}

/* --- data --- */

static void save(void *ctx, int64_t until_ns)
{
    check(ctx == &f, "the context");
    LOG(f.log, LOG_INFO, "saved",
        LOG_INT("seconds_left", (until_ns - clock_mono(&f.manual.clock)) / NS_PER_SEC));
}

static void clean(void *ctx)
{
    check(ctx == &f, "the context");
    say("cleaned");
}

static void hang_with_data(void)
{
    start();
    stop_guard_use(f.guard, &(struct stop_guard_hooks){ .save = save, .clean = clean, .ctx = &f });
    stop_by(SIGTERM);
    stop_guard_part(f.guard, "sampler");
    pass(STOP_NS);
    hang();
}

TEST(data_is_saved_before_it_exits)
{
    assert_int_equal(status_of(hang_with_data), 0);
    ASSERT_LOGGED("msg=saved seconds_left=6", "msg=cleaned", "part=sampler");
}

/* --- a log that hangs --- */

static int64_t hang_forever(const struct clock *clock)
{
    (void)clock;
    hang();
}

/* It hangs where a line gets its time. */
static void start_with_a_log_that_hangs(void)
{
    static const struct clock hanging = { .wall_ns = hang_forever };

    f.log = log_new(STDERR_FILENO, LOG_INFO, &hanging);
    start();
}

static void stop_without_a_log(void)
{
    start_with_a_log_that_hangs();
    stop_by(SIGTERM);
    check(stop_guard_left(f.guard) == STOP_PEERS_NS, "all of the time");
}

TEST(a_log_that_hangs_does_not_keep_the_main_thread)
{
    assert_int_equal(status_of(stop_without_a_log), BY_ITSELF);
}

static void save_and_exit(void *ctx, int64_t until_ns)
{
    (void)ctx;
    (void)until_ns;
    _exit(SAVED);
}

static void fail_without_a_log(void)
{
    start_with_a_log_that_hangs();
    stop_guard_use(f.guard, &(struct stop_guard_hooks){ .save = save_and_exit });
    stop_guard_fail(f.guard, 2);
    pass(STOP_NS);
    hang();
}

TEST(data_is_saved_before_the_log_can_hang)
{
    assert_int_equal(status_of(fail_without_a_log), SAVED);
}

/* --- disks and servers --- */

static void hang_in_a_writer(void)
{
    start();
    stop_by(SIGTERM);
    stop_guard_writer(f.guard, "spool");
    pass(STOP_NS);
    pass(STOP_WRITE_NS - STOP_NS - 1);
    say("nearly");
    pass(1);
    hang();
}

TEST(a_disk_has_more_time_but_not_for_ever)
{
    assert_int_equal(status_of(hang_in_a_writer), 0);
    ASSERT_LOGGED("nearly", "level=error", "part=spool");
}

static void write_slowly(void)
{
    start();
    stop_by(SIGTERM);
    stop_guard_writer(f.guard, "spool");
    pass(STOP_NS);
    say("written");
    stop_guard_part(f.guard, "HTTP server");
    hang();
}

TEST(after_a_disk_that_took_all_the_time_nothing_else_is_waited_for)
{
    assert_int_equal(status_of(write_slowly), 0);
    ASSERT_LOGGED("written", "level=error", "part=spool");
}

static void count_down(void)
{
    start();
    check(stop_guard_left(f.guard) == STOP_PEERS_NS, "all of it");
    stop_by(SIGTERM);
    pass(NS_PER_SEC);
    check(stop_guard_left(f.guard) == STOP_PEERS_NS - NS_PER_SEC, "a part of it");
    manual_clock_advance(&f.manual, NS_PER_SEC - 1);
    check(stop_guard_left(f.guard) == 0, "nothing");
    stop_guard_end(f.guard);
}

TEST(other_servers_have_what_is_left)
{
    assert_int_equal(status_of(count_down), BY_ITSELF);
}

TEST(no_guard_is_none)
{
    stop_guard_part(NULL, "x");
    stop_guard_writer(NULL, "x");
    stop_guard_fail(NULL, 1);
    stop_guard_use(NULL, &(struct stop_guard_hooks){ 0 });
    assert_int_equal(stop_guard_left(NULL), 0);
    assert_null(stop_guard_end(NULL));
}
