/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports by a child: a script stands in for sonde-report. */
#include "test.h"

#include "base/arena.h"
#include "base/thread.h"
#include "files.h"
#include "http/confine.h"
#include "web/report_child.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *program, *gate, *log_path;

static void set_up(void)
{
    program = test_path("report");
    gate = test_path("gate");
    log_path = test_path("log");
}

FIXTURE(set_up, NULL)

static struct report_question question_of(const char *job, int64_t timeout_ns)
{
    return (struct report_question){ .form = { "--chart=cpu", "--png" },
                                     .job = str_of(job),
                                     .cluster = STR("beluga"),
                                     .deadline_ns = clock_mono(&clock_real) + timeout_ns };
}

static struct report_child *child_of(char *const *flags)
{
    struct report_child *child = NULL;
    struct err err;

    if (report_child_new(program, flags, &child, &err) < 0)
        fail_msg("%s", err.text);
    return child;
}

TEST(the_job_comes_last_and_is_never_a_flag)
{
    char flag[] = "--store=x.db", *const flags[] = { flag, NULL };
    struct report_child *child = child_of(flags);
    struct report_question question = question_of("--mail", TEST_DEADLINE);
    struct buf out;
    struct err err;

    write_script(program, "printf '[%s]' \"$@\"");
    buf_init(&out, REPORT_CHILD_BYTES);
    assert_int_equal(report_child_run(child, &question, &out, &err), 0);
    assert_str(buf_str(&out), "[--store=x.db][--chart=cpu][--png][--][beluga:--mail]");
    buf_free(&out);
    report_child_free(child);
}

/* A thread that asks. */
struct asker {
    struct report_child *child;
    int64_t timeout_ns;
    atomic_int code; /* 1: none yet */
    pthread_t thread;
};

static void *ask(void *arg)
{
    struct asker *asker = arg;
    struct report_question question = question_of("1", asker->timeout_ns);
    struct buf out;
    struct err err;

    buf_init(&out, REPORT_CHILD_BYTES);
    asker->code = report_child_run(asker->child, &question, &out, &err);
    buf_free(&out);
    return NULL;
}

static void *ask_confined(void *arg)
{
    struct asker *asker = arg;
    struct err err;

    asker->code = confine_thread(&err);
    return asker->code == 0 ? ask(asker) : NULL;
}

/* As the workers of the server do, who may start no command themselves. */
TEST(a_confined_thread_gets_a_report)
{
    struct report_child *child = child_of(NULL);
    struct asker asker = { .child = child, .timeout_ns = TEST_DEADLINE };
    struct err err;

    write_script(program, "echo report");
    assert_int_equal(thread_start(&asker.thread, "confined", ask_confined, &asker, &err), 0);
    pthread_join(asker.thread, NULL);
    assert_int_equal(asker.code, 0);
    report_child_free(child);
}

TEST(a_child_that_hangs_ends_with_the_deadline)
{
    struct report_child *child = child_of(NULL);
    struct report_question question = question_of("1", 200 * NS_PER_MS);
    struct buf out;
    struct err err;

    write_script(program, "exec sleep 1000");
    buf_init(&out, REPORT_CHILD_BYTES);
    assert_int_equal(report_child_run(child, &question, &out, &err), -ETIMEDOUT);
    buf_free(&out);
    report_child_free(child);
}

TEST(a_child_that_never_stops_writing_is_stopped)
{
    struct report_child *child = child_of(NULL);
    struct report_question question = question_of("1", TEST_DEADLINE);
    struct buf out;
    struct err err;

    write_script(program, "exec cat /dev/zero");
    buf_init(&out, 2 * (size_t)REPORT_CHILD_BYTES);
    assert_int_equal(report_child_run(child, &question, &out, &err), -EFBIG);
    assert_true(out.n <= REPORT_CHILD_BYTES);
    buf_free(&out);
    report_child_free(child);
}

TEST(nothing_to_draw_is_told_from_a_failure)
{
    struct report_child *child = child_of(NULL);
    struct report_question question = question_of("1", TEST_DEADLINE);
    struct buf out;
    struct err err;

    buf_init(&out, REPORT_CHILD_BYTES);
    write_script(program, "echo 'sonde report: there is nothing to draw: no samples' >&2; exit 1");
    assert_int_equal(report_child_run(child, &question, &out, &err), -ENODATA);
    write_script(program, "echo 'sonde report: the disk is full' >&2; exit 1");
    assert_int_equal(report_child_run(child, &question, &out, &err), -EREMOTEIO);
    assert_contains(err.text, "the disk is full");
    buf_free(&out);
    report_child_free(child);
}

static off_t log_bytes(void)
{
    struct stat stat_of_log;

    return stat(log_path, &stat_of_log) == 0 ? stat_of_log.st_size : 0;
}

/* Whoever runs says so in the log and waits at the gate. */
static int close_gate(void)
{
    char body[400];
    int fd;

    assert_int_equal(mkfifo(gate, 0600), 0);
    fd = open(gate, O_RDWR | O_CLOEXEC); /* stays open: nobody at the gate sees its end */
    snprintf(body, sizeof(body), "printf x >>%s; read line <%s", log_path, gate);
    write_script(program, body);
    return fd;
}

static void start_askers(struct report_child *child, struct asker *asker, size_t n)
{
    struct err err;

    for (size_t i = 0; i < n; i++) {
        asker[i] = (struct asker){ .child = child, .timeout_ns = TEST_DEADLINE, .code = 1 };
        assert_int_equal(thread_start(&asker[i].thread, "asker", ask, &asker[i], &err), 0);
    }
}

static size_t count_refused(struct asker *asker, size_t n)
{
    size_t refused = 0;

    for (size_t i = 0; i < n; i++)
        refused += asker[i].code == -EBUSY;
    return refused;
}

/* How many of them were refused; all others have what they asked for. */
static size_t end_askers(struct asker *asker, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pthread_join(asker[i].thread, NULL);
        if (asker[i].code != -EBUSY)
            assert_int_equal(asker[i].code, 0);
    }
    return count_refused(asker, n);
}

TEST(only_two_run_at_once_and_others_wait_for_their_turn)
{
    enum { ASKERS = REPORT_CHILDREN + 1 };
    struct report_child *child = child_of(NULL);
    struct asker asker[ASKERS], late = { .child = child, .timeout_ns = 100 * NS_PER_MS };
    int fd = close_gate();

    start_askers(child, asker, ASKERS);
    wait_until_true(log_bytes() == REPORT_CHILDREN);
    ask(&late); /* both stand at the gate: it gets no turn within its time */
    assert_int_equal(late.code, -EBUSY);
    assert_int_equal(log_bytes(), REPORT_CHILDREN);
    assert_int_equal(write(fd, "\n\n\n", ASKERS), ASKERS); /* a line lets one through */
    assert_int_equal(end_askers(asker, ASKERS), 0);
    assert_int_equal(log_bytes(), ASKERS);
    close(fd);
    report_child_free(child);
}

/* Which of them is refused is up to who comes last. */
TEST(when_enough_wait_the_next_is_refused_at_once)
{
    enum { SERVED = REPORT_CHILDREN + REPORT_WAITERS, ASKERS = SERVED + 1 };
    struct report_child *child = child_of(NULL);
    struct asker asker[ASKERS];
    int fd = close_gate();

    start_askers(child, asker, ASKERS);
    wait_until_true(count_refused(asker, ASKERS) == 1); /* while the gate is closed */
    assert_int_equal(write(fd, "\n\n\n\n", SERVED), SERVED);
    assert_int_equal(end_askers(asker, ASKERS), 1);
    assert_int_equal(log_bytes(), SERVED);
    close(fd);
    report_child_free(child);
}
