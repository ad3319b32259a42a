/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/spawn: commands with deadlines. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/spawn.h"
#include "files.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
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
};

/* Runs a shell script; `change` may alter the request. */
static struct outcome run(const char *script, void (*change)(struct spawn *))
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    struct outcome outcome = { 0 };
    struct spawn spawn = {
        .argv = argv,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
        .max_output = 1 << 20,
        .sink = collect,
    };

    buf_init(&outcome.output, 1 << 20);
    spawn.ctx = &outcome.output;
    if (change)
        change(&spawn);
    outcome.code = spawn_run(&spawn, &outcome.result, &outcome.err);
    return outcome;
}

TEST(output_and_warnings_are_kept_apart)
{
    struct outcome o = run("echo out; echo ' careful ' >&2", NULL);

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

TEST(a_missing_command_says_so)
{
    struct outcome o = run("", use_missing);

    assert_int_equal(o.code, -ENOENT);
    assert_contains(o.err.text, "sonde-no-such-command");
    assert_contains(o.err.text, "installed");
}

TEST(a_failing_command_is_quoted)
{
    struct outcome o = run("echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1", NULL);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "status 1");
    assert_contains(o.err.text, "Unable to contact");
}

TEST(a_command_ended_by_a_signal_is_an_error)
{
    struct outcome o = run("kill -SEGV $$", NULL);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "signal 11");
}

/* The request whose deadline comes when its command has printed something: however slow the
 * machine is, it has come so far and hangs then. */
static struct spawn *hurried;

static int collect_and_hurry(void *ctx, struct str piece, struct err *err)
{
    hurried->deadline_ns = clock_mono(&clock_real) + NS_PER_MS;
    return collect(ctx, piece, err);
}

static void hurry(struct spawn *spawn)
{
    hurried = spawn;
    spawn->sink = collect_and_hurry;
}

TEST(a_hung_command_is_killed_at_the_deadline)
{
    struct outcome o = run("echo started; exec sleep 1000", hurry);

    assert_int_equal(o.code, -ETIMEDOUT);
    assert_str(buf_str(&o.output), "started\n");
    buf_free(&o.output);
}

static bool is_gone_or_zombie(uint64_t pid)
{
    char path[64], stat[256] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return true;
    (void)!fgets(stat, sizeof(stat), file);
    fclose(file);
    return !stat[0] || strstr(stat, ") Z ");
}

TEST(what_a_command_started_is_killed_with_it)
{
    /* The grandchild holds the pipe and ignores everything that can be ignored. */
    struct outcome o = run("trap '' TERM HUP INT; (sleep 1000; echo late) & echo $!; wait", hurry);
    uint64_t pid = 0;

    assert_int_equal(o.code, -ETIMEDOUT);
    for (const char *p = o.output.p; *p >= '0' && *p <= '9'; p++)
        pid = pid * 10 + (uint64_t)(*p - '0');
    assert_true(pid > 1);
    /* Killed, though perhaps not yet reaped by its new parent. */
    wait_until_true(is_gone_or_zombie(pid));
    buf_free(&o.output);
}

TEST(a_background_child_does_not_hold_up_the_end)
{
    struct outcome o = run("sleep 1000 & echo done", NULL);

    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "done\n");
    buf_free(&o.output);
}

static void small_ceiling(struct spawn *spawn)
{
    spawn->max_output = 100000;
}

TEST(endless_output_is_stopped_at_the_ceiling)
{
    struct outcome o = run("exec yes", small_ceiling);

    assert_int_equal(o.code, -EFBIG);
    assert_contains(o.err.text, "100000");
    buf_free(&o.output);
}

/* A copy of this program that belongs to root and takes root's identity: an ordinary user who has
 * started it cannot kill it, as squeue through sudo. */
static const char *make_unkillable(void)
{
    const char *path = write_bytes("unkillable", read_file("/proc/self/exe"));

    assert_int_equal(chmod(path, 04755), 0);
    return path;
}

/* Prints something when it cannot be killed any more. */
static int be_unkillable(void)
{
    if (setresuid(0, 0, 0) < 0 || write(STDOUT_FILENO, "!", 1) != 1)
        return 1;
    return poll(NULL, 0, (int)(TEST_DEADLINE / NS_PER_MS));
}

/* As nobody: runs it twice and says on the pipe which process was left behind. */
static int run_unkillable(const char *path, int report)
{
    const char *const argv[] = { path, "--unkillable", NULL };
    struct spawn_result result;
    struct err err;
    pid_t stuck = 0;
    struct buf output;
    struct spawn spawn = {
        .argv = argv,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
        .max_output = 1000,
        .ctx = &output,
        .stuck = &stuck,
    };

    buf_init(&output, 1000);
    hurry(&spawn);
    if (setresuid(65534, 65534, 65534) < 0 || spawn_run(&spawn, &result, &err) != -ETIMEDOUT)
        return 1;
    (void)!write(report, &stuck, sizeof(stuck));
    if (!strstr(err.text, "left behind"))
        return 2;
    spawn.deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE;
    if (spawn_run(&spawn, &result, &err) != -ETIMEDOUT || !strstr(err.text, "can still not"))
        return 3;
    return 0;
}

TEST(a_command_that_cannot_be_killed_is_left_behind_and_not_started_again)
{
    const char *path;
    pid_t child, left = 0;
    int report[2], status;

    need("set-uid");
    put_dir_on_disk();
    path = make_unkillable();
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    child = fork();
    if (child == 0)
        _exit(run_unkillable(path, report[1]));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(read(report[0], &left, sizeof(left)), sizeof(left));
    assert_true(left > 1);
    kill(left, SIGKILL);
    close(report[0]);
    close(report[1]);
    assert_int_equal(status, 0);
}

static void use_refusing_sink(struct spawn *spawn)
{
    spawn->sink = refuse;
}

TEST(a_sink_that_refuses_stops_the_command)
{
    struct outcome o = run("exec yes", use_refusing_sink);

    assert_int_equal(o.code, -EBADMSG);
    assert_string_equal(o.err.text, "not what was asked for");
}

static atomic_bool stop_now = true;

static void cancel(struct spawn *spawn)
{
    spawn->cancelled = &stop_now;
}

TEST(a_cancelled_command_ends_at_once)
{
    struct outcome o = run("exec sleep 1000", cancel);

    assert_int_equal(o.code, -ECANCELED);
}

static void set_env(struct spawn *spawn)
{
    static const char *const env[] = { "SLURM_TIME_FORMAT=%s", "HOME=/elsewhere", "SQUEUE_*",
                                       "SQUEUE_FORMAT2=ours", NULL };

    spawn->env = env;
}

TEST(environment_is_added_to_replaced_and_dropped)
{
    struct outcome o;

    setenv("HOME", "/here", 1);
    setenv("HOMER", "kept", 1);
    setenv("SQUEUE_STATES", "RUNNING", 1);
    o = run("echo $SLURM_TIME_FORMAT $HOME $HOMER $SQUEUE_STATES $SQUEUE_FORMAT2", set_env);
    assert_str(buf_str(&o.output), "%s /elsewhere kept ours\n");
    buf_free(&o.output);
}

TEST(no_descriptor_is_inherited)
{
    int leak = dup(STDERR_FILENO); /* without CLOEXEC, as a careless library would leave it */
    struct outcome o = run("ls /proc/self/fd | wc -l", NULL);

    close(leak);
    /* 0, 1, 2 and the one that ls reads the directory with */
    assert_str(str_trim(buf_str(&o.output)), "4");
    buf_free(&o.output);
}

TEST(a_command_is_looked_for_where_it_would_be_run)
{
    assert_true(spawn_exists("sh"));
    assert_true(spawn_exists("/bin/sh"));
    assert_false(spawn_exists("sonde-no-such-command"));
    assert_false(spawn_exists("/bin/sonde-no-such-command"));
}

static void give_input(struct spawn *spawn)
{
    static char input[SPAWN_INPUT_MAX];

    memset(input, 'x', sizeof(input));
    spawn->input = (struct str){ input, sizeof(input) };
}

TEST(input_is_read_to_its_end_and_need_not_be_read_at_all)
{
    struct outcome o = run("wc -c", give_input);

    assert_int_equal(o.code, 0);
    assert_str(str_trim(buf_str(&o.output)), "16777216");
    buf_free(&o.output);
    o = run("echo ignored", give_input);
    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "ignored\n");
    buf_free(&o.output);
}

static void wait_for_mark(struct spawn *spawn)
{
    spawn->mark = STR("<begin>\n");
    spawn->name = "the other side";
}

TEST(what_stands_before_the_mark_is_passed_over)
{
    struct outcome o = run("echo greeting; printf '<<beg'; printf 'in>\nown\n<begin>\n';"
                           "seq 1 9999 >&2; printf '<beg' >&2; printf 'in>\nown words\n' >&2",
                           wait_for_mark);

    assert_int_equal(o.code, 0);
    assert_true(o.result.begun);
    assert_str(buf_str(&o.output), "own\n<begin>\n");
    assert_string_equal(o.result.warning, "own words");
    buf_free(&o.output);
}

/* Reads no more of the command until it has ended. */
static int wait_for_its_end(void *ctx, struct str piece, struct err *err)
{
    int fd = open(getenv("END"), O_RDONLY);
    char byte;

    while (read(fd, &byte, 1) > 0)
        ;
    close(fd);
    return collect(ctx, piece, err);
}

static void read_late(struct spawn *spawn)
{
    wait_for_mark(spawn);
    spawn->sink = wait_for_its_end;
}

TEST(all_that_it_said_until_its_end_is_read)
{
    const char *end = test_path("end");
    struct outcome o;

    assert_int_equal(mkfifo(end, 0600), 0);
    setenv("END", end, 1);
    /* A pipe holds up to 1 MB, 64 KB unless somebody asks (1031 is F_SETPIPE_SZ). */
    o = run("printf '<begin>\nout'; exec 3>$END;"
            "perl -e 'fcntl STDERR, 1031, 1 << 20; print STDERR \"x\" x 1000000';"
            "printf '<begin>\nlast words' >&2",
            read_late);
    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "out");
    assert_string_equal(o.result.warning, "last words");
    buf_free(&o.output);
    unsetenv("END");
}

TEST(a_mark_that_comes_in_single_bytes_is_seen)
{
    struct outcome o =
        run("for c in a '<' b '<' b e g i n '>'; do printf %s \"$c\"; sleep 0.01; done;"
            "printf '\\nown'",
            wait_for_mark);

    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "own");
    buf_free(&o.output);
}

TEST(without_its_mark_the_last_words_are_kept)
{
    struct outcome o =
        run("echo greeting; seq 1 9999 >&2; echo the reason >&2; exit 9", wait_for_mark);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_false(o.result.begun);
    assert_int_equal(o.result.status, 9);
    assert_int_equal(o.output.n, 0);
    assert_true(str_ends(str_of(o.result.warning), STR("\n9999\nthe reason")));
    assert_contains(o.err.text, "the other side exited with status 9: 99");
    buf_free(&o.output);
}

TEST(no_zombie_is_left)
{
    struct outcome o = run("exit 3", NULL);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

TEST(a_command_line_is_cut_at_spaces_and_quotes_keep_them)
{
    char **argv = spawn_split(STR("  cat 'a b'  --x=\"c 'd\" '' e"));

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

void test_child_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--unkillable") == 0)
        _exit(be_unkillable());
}
