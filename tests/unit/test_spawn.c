/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/spawn.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

static int refuse(void *ctx, struct str piece, struct err *err)
{
    (void)ctx;
    (void)piece;
    return err_set(err, EBADMSG, "not what was asked for");
}

struct outcome {
    int code;
    struct err err;
    struct spawn_result result;
    struct buf output;
    int64_t took_ns;
};

/* Runs a shell script; `change` may alter the request. */
static struct outcome run(const char *script, void (*change)(struct spawn *))
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    struct outcome outcome = { 0 };
    int64_t began = clock_mono(&clock_real);
    struct spawn spawn = {
        .argv = argv,
        .deadline_ns = began + 20 * NS_PER_SEC,
        .max_output = 1 << 20,
        .sink = collect,
    };

    buf_init(&outcome.output, 1 << 20);
    spawn.ctx = &outcome.output;
    if (change)
        change(&spawn);
    outcome.code = spawn_run(&spawn, &outcome.result, &outcome.err);
    outcome.took_ns = clock_mono(&clock_real) - began;
    return outcome;
}

static void output_and_warnings_are_kept_apart(void **state)
{
    struct outcome o = run("echo out; echo ' careful ' >&2", NULL);

    (void)state;
    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "out\n");
    assert_string_equal(o.result.warning, "careful");
    assert_int_equal(o.result.output_bytes, 4);
    buf_free(&o.output);
}

static void use_missing(struct spawn *spawn)
{
    static const char *const argv[] = { "sonde-no-such-command", NULL };

    spawn->argv = argv;
}

static void a_missing_command_says_so(void **state)
{
    struct outcome o = run("", use_missing);

    (void)state;
    assert_int_equal(o.code, -ENOENT);
    assert_contains(o.err.text, "sonde-no-such-command");
    assert_contains(o.err.text, "installed");
}

static void a_failing_command_is_quoted(void **state)
{
    struct outcome o = run("echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1", NULL);

    (void)state;
    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "status 1");
    assert_contains(o.err.text, "Unable to contact");
}

static void a_command_ended_by_a_signal_is_an_error(void **state)
{
    struct outcome o = run("kill -SEGV $$", NULL);

    (void)state;
    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "signal 11");
}

static void hurry(struct spawn *spawn)
{
    spawn->deadline_ns = clock_mono(&clock_real) + 200 * NS_PER_MS;
}

static void a_hung_command_is_killed_at_the_deadline(void **state)
{
    struct outcome o = run("echo started; exec sleep 100", hurry);

    (void)state;
    assert_int_equal(o.code, -ETIMEDOUT);
    assert_str(buf_str(&o.output), "started\n");
    assert_true(o.took_ns < 5 * NS_PER_SEC);
    buf_free(&o.output);
}

static void what_a_command_started_is_killed_with_it(void **state)
{
    /* The grandchild holds the pipe and ignores everything that can be ignored. */
    struct outcome o = run("trap '' TERM HUP INT; (sleep 100; echo late) & echo $!; wait", hurry);
    uint64_t pid = 0;
    char path[64];

    (void)state;
    assert_int_equal(o.code, -ETIMEDOUT);
    for (const char *p = o.output.p; *p >= '0' && *p <= '9'; p++)
        pid = pid * 10 + (uint64_t)(*p - '0');
    assert_true(pid > 1);
    /* Killed, though perhaps not yet reaped by its new parent. */
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    for (int i = 0; i < 1000; i++) {
        char stat[256] = "";
        FILE *file = fopen(path, "r");

        if (!file)
            break;
        (void)!fgets(stat, sizeof(stat), file);
        fclose(file);
        if (strstr(stat, ") Z "))
            break;
        assert_int_not_equal(i, 999);
        poll(NULL, 0, 5);
    }
    buf_free(&o.output);
}

static void a_background_child_does_not_hold_up_the_end(void **state)
{
    struct outcome o = run("sleep 100 & echo done", NULL);

    (void)state;
    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "done\n");
    assert_true(o.took_ns < 5 * NS_PER_SEC);
    buf_free(&o.output);
}

static void small_ceiling(struct spawn *spawn)
{
    spawn->max_output = 100000;
}

static void endless_output_is_stopped_at_the_ceiling(void **state)
{
    struct outcome o = run("exec yes", small_ceiling);

    (void)state;
    assert_int_equal(o.code, -EFBIG);
    assert_contains(o.err.text, "100000");
    assert_true(o.took_ns < 10 * NS_PER_SEC);
    buf_free(&o.output);
}

static void use_refusing_sink(struct spawn *spawn)
{
    spawn->sink = refuse;
}

static void a_sink_that_refuses_stops_the_command(void **state)
{
    struct outcome o = run("exec yes", use_refusing_sink);

    (void)state;
    assert_int_equal(o.code, -EBADMSG);
    assert_string_equal(o.err.text, "not what was asked for");
}

static atomic_bool stop_now = true;

static void cancel(struct spawn *spawn)
{
    spawn->cancelled = &stop_now;
}

static void a_cancelled_command_ends_at_once(void **state)
{
    struct outcome o = run("exec sleep 100", cancel);

    (void)state;
    assert_int_equal(o.code, -ECANCELED);
    assert_true(o.took_ns < 5 * NS_PER_SEC);
}

static void set_env(struct spawn *spawn)
{
    static const char *const env[] = { "SLURM_TIME_FORMAT=%s", "HOME=/elsewhere", "SQUEUE_*",
                                       "SQUEUE_FORMAT2=ours", NULL };

    spawn->env = env;
}

static void environment_is_added_to_replaced_and_dropped(void **state)
{
    struct outcome o;

    (void)state;
    setenv("HOME", "/here", 1);
    setenv("HOMER", "kept", 1);
    setenv("SQUEUE_STATES", "RUNNING", 1);
    o = run("echo $SLURM_TIME_FORMAT $HOME $HOMER $SQUEUE_STATES $SQUEUE_FORMAT2", set_env);
    assert_str(buf_str(&o.output), "%s /elsewhere kept ours\n");
    buf_free(&o.output);
}

static void no_descriptor_is_inherited(void **state)
{
    int leak = dup(STDERR_FILENO); /* without CLOEXEC, as a careless library would leave it */
    struct outcome o = run("ls /proc/self/fd | wc -l", NULL);

    (void)state;
    close(leak);
    /* 0, 1, 2 and the one that ls reads the directory with */
    assert_str(str_trim(buf_str(&o.output)), "4");
    buf_free(&o.output);
}

static void no_zombie_is_left(void **state)
{
    struct outcome o = run("exit 3", NULL);

    (void)state;
    assert_int_equal(o.code, -EREMOTEIO);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_command_line_is_cut_at_spaces_and_quotes_keep_them(void **state)
{
    char **argv = spawn_split(STR("  cat 'a b'  --x=\"c 'd\" '' e"));

    (void)state;
    assert_string_equal(argv[0], "cat");
    assert_string_equal(argv[1], "a b");
    assert_string_equal(argv[2], "--x=c 'd");
    assert_string_equal(argv[3], "");
    assert_string_equal(argv[4], "e");
    assert_null(argv[5]);
    free(argv);
    assert_null(spawn_split(STR("   ")));
    assert_null(spawn_split(STR("cat 'open")));
    argv = spawn_split(STR("a b c d"));
    assert_string_equal(argv[3], "d");
    assert_null(argv[4]);
    free(argv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_warnings_are_kept_apart),
        cmocka_unit_test(a_missing_command_says_so),
        cmocka_unit_test(a_failing_command_is_quoted),
        cmocka_unit_test(a_command_ended_by_a_signal_is_an_error),
        cmocka_unit_test(a_hung_command_is_killed_at_the_deadline),
        cmocka_unit_test(what_a_command_started_is_killed_with_it),
        cmocka_unit_test(a_background_child_does_not_hold_up_the_end),
        cmocka_unit_test(endless_output_is_stopped_at_the_ceiling),
        cmocka_unit_test(a_sink_that_refuses_stops_the_command),
        cmocka_unit_test(a_cancelled_command_ends_at_once),
        cmocka_unit_test(environment_is_added_to_replaced_and_dropped),
        cmocka_unit_test(no_descriptor_is_inherited),
        cmocka_unit_test(no_zombie_is_left),
        cmocka_unit_test(a_command_line_is_cut_at_spaces_and_quotes_keep_them),
    };

    return RUN_TESTS(tests);
}
