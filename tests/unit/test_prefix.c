/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/prefix: Slurm's commands run on another host. */
#include "test.h"

#include "base/buf.h"
#include "base/num.h"
#include "kernel_time.h"
#include "source/prefix.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

struct outcome {
    int code;
    struct err err;
    struct spawn_result result;
    struct buf output;
};

static const char *const no_env[] = { NULL };

/* Once the command has said something, all of the time has passed. */
static int collect_and_leap(void *ctx, struct str piece, struct err *err)
{
    time_leap(TEST_DEADLINE);
    return collect(ctx, piece, err);
}

static struct outcome run_with(const char *const *prefix, const char *const *argv,
                               const char *const *env, const char *secret, int64_t milliseconds,
                               int (*sink)(void *ctx, struct str piece, struct err *err))
{
    struct outcome outcome = { 0 };
    struct spawn spawn = {
        .argv = argv,
        .env = env,
        .deadline_ns = clock_mono(&clock_real) + milliseconds * NS_PER_MS,
        .max_output = 1 << 20,
        .sink = sink,
    };

    buf_init(&outcome.output, 1 << 20);
    spawn.ctx = &outcome.output;
    outcome.code = prefix_run((char *const *)prefix, &spawn, secret, &outcome.result, &outcome.err);
    return outcome;
}

static struct outcome run(const char *const *prefix, const char *const *argv,
                          const char *const *env, const char *secret, int64_t milliseconds)
{
    return run_with(prefix, argv, env, secret, milliseconds, collect);
}

#define PREFIX(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ARGV(...)   ((const char *const[]){ __VA_ARGS__, NULL })
#define SOON        (TEST_DEADLINE / NS_PER_MS)

/* A way that does something before and after what it is handed as its last word. */
#define WAY(before, after) PREFIX("sh", "-c", before " sh -c \"$1\"; s=$?; " after " exit $s", "sh")

TEST(arguments_arrive_exactly_whatever_the_login_shell)
{
    static const char *const shells[] = { "sh", "dash", "bash", "ksh", "zsh", "tcsh", "fish" };

    for (size_t i = 0; i < COUNT(shells); i++) {
        struct outcome o;

        if (!spawn_exists(shells[i]))
            continue;
        o = run(PREFIX(shells[i], "-c"),
                ARGV("printf", "<%s>", "", "two  words", "it's", "\"$HOME\" `id`", "a\\b\\",
                     "one!two!!", "first\nsecond\n", "*", "-n", "caf\303\251 \377\376", "%s\\n"),
                no_env, NULL, SOON);
        if (o.code < 0)
            fail_msg("%s: %s", shells[i], o.err.text);
        assert_str(buf_str(&o.output),
                   "<><two  words><it's><\"$HOME\" `id`><a\\b\\><one!two!!><first\nsecond\n><*>"
                   "<-n><caf\303\251 \377\376><%s\\n>");
        buf_free(&o.output);
    }
}

TEST(the_environment_is_the_one_that_was_asked_for)
{
    static const char *const env[] = { "SQUEUE_*", "SINFO_*", "SLURM_CONF=/etc/it's\nhere", NULL };
    struct outcome o;

    setenv("SQUEUE_FORMAT", "%i", 1);
    setenv("SQUEUE_LONG", "a SINFO_x;y=b\nSINFO_Z=1 *", 1);
    setenv("SINFO_SORT", "n", 1);
    setenv("SACCT_FORMAT", "stays", 1);
    o = run(PREFIX("sh", "-c"),
            ARGV("sh", "-c",
                 "printf '%s,' \"${SQUEUE_FORMAT-unset}\" \"${SQUEUE_LONG-unset}\" "
                 "\"${SINFO_SORT-unset}\" \"$SACCT_FORMAT\" \"$SLURM_CONF\""),
            env, NULL, SOON);
    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "unset,unset,unset,stays,/etc/it's\nhere,");
    buf_free(&o.output);
}

TEST(a_secret_arrives_and_is_in_no_processs_arguments)
{
    struct outcome o =
        run(PREFIX("sh", "-c"),
            ARGV("sh", "-c",
                 "printf '%s' \"$TOKEN\"; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"),
            no_env, "TOKEN=a \\b' $x=1;\t", SOON);
    struct str all = buf_str(&o.output);

    assert_int_equal(o.code, 0);
    assert_true(str_starts(all, STR("a \\b' $x=1;\t")));
    all = str_skip(all, strlen("a \\b' $x=1;\t"));
    assert_true(str_find_str(all, STR("tr ")) < all.n);
    assert_int_equal(str_find_str(all, STR("\\b' $x=1;")), all.n);
    buf_free(&o.output);
}

TEST(the_command_itself_has_nothing_on_its_standard_input)
{
    struct outcome o = run(PREFIX("sh", "-c"), ARGV("cat"), no_env, "TOKEN=x", SOON);

    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "");
    buf_free(&o.output);
}

TEST(a_way_without_standard_input_is_told_so)
{
    struct outcome o = run(PREFIX("sh", "-c", "sh -c \"$1\" </dev/null", "sh"), ARGV("true"),
                           no_env, "TOKEN=x", SOON);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "docker and kubectl need -i");
    buf_free(&o.output);
}

TEST(a_greeting_is_not_taken_for_the_answer)
{
    struct outcome o = run(WAY("echo Welcome to cedar; seq 1 2000; seq 1 9999 >&2;", ""),
                           ARGV("sh", "-c", "echo answer; echo careful >&2"), no_env, NULL, SOON);

    assert_int_equal(o.code, 0);
    assert_str(buf_str(&o.output), "answer\n");
    assert_string_equal(o.result.warning, "careful");
    buf_free(&o.output);
}

TEST(a_command_that_fails_there_is_named_with_the_way)
{
    struct outcome o =
        run(WAY("echo banner >&2;", ""), ARGV("sh", "-c", "echo 'squeue: error: no' >&2; exit 3"),
            no_env, NULL, SOON);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "sh through \"sh -c ");
    assert_contains(o.err.text, "exited with status 3: squeue: error: no");
    assert_int_equal(o.result.status, 3);
    buf_free(&o.output);
}

TEST(a_command_that_is_not_there_is_missing)
{
    struct outcome o = run(PREFIX("sh", "-c"), ARGV("sonde-no-such-command"), no_env, NULL, SOON);

    assert_int_equal(o.code, -ENOENT);
    assert_contains(o.err.text, "sonde-no-such-command is not to be found there");
    assert_contains(o.err.text, "--slurm.bin-path");
    buf_free(&o.output);
}

TEST(what_ssh_says_of_the_connection_is_not_the_commands)
{
    static const struct {
        const char *script, *words, *advice;
    } cases[] = {
        { "echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255",
          "Connection refused", "is sshd running there" },
        { "echo 'Host key verification failed.' >&2; exit 255", "Host key verification failed",
          "known_hosts" },
        { "seq 1 9999 >&2; echo 'u@x: Permission denied (publickey).' >&2; exit 255",
          "Permission denied (publickey).", "without a password" },
        { "echo 'sudo: a password is required' >&2; exit 1", "a password is required", "sudoers" },
        { "exit 255", "it said nothing", "by hand" },
        { "exit 0", "it said nothing", "by hand" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct outcome o =
            run(PREFIX("sh", "-c", cases[i].script, "sh"), ARGV("squeue"), no_env, NULL, SOON);

        assert_int_equal(o.code, -EHOSTUNREACH);
        assert_contains(o.err.text, "does not get as far as a shell");
        assert_contains(o.err.text, cases[i].words);
        assert_contains(o.err.text, cases[i].advice);
        buf_free(&o.output);
    }
}

/* What nobody heard is no answer: it would say that there are no jobs. */
TEST(a_way_that_loses_the_output_is_not_taken_for_an_empty_answer)
{
    struct outcome o = run(PREFIX("sh", "-c", "sh -c \"$1\" >/dev/null", "sh"), ARGV("echo", "7"),
                           no_env, NULL, SOON);

    assert_int_equal(o.code, -EHOSTUNREACH);
    buf_free(&o.output);
}

TEST(a_connection_that_breaks_is_not_the_commands_failure)
{
    struct outcome o =
        run(WAY("", "echo 'Connection to cedar closed by remote host.' >&2; exit 255;"),
            ARGV("echo", "half"), no_env, NULL, SOON);

    assert_int_equal(o.code, -EHOSTUNREACH);
    assert_contains(o.err.text, "lost its connection: Connection to cedar closed by remote host.");
    buf_free(&o.output);
}

TEST(a_command_that_fails_as_ssh_does_is_not_the_connections_failure)
{
    struct outcome o =
        run(PREFIX("sh", "-c"),
            ARGV("sh", "-c", "echo 'Unable to contact slurm controller' >&2; exit 255"), no_env,
            NULL, SOON);

    assert_int_equal(o.code, -EREMOTEIO);
    assert_contains(o.err.text, "exited with status 254: Unable to contact slurm controller");
    buf_free(&o.output);
}

TEST(a_way_that_hangs_is_killed_and_named)
{
    struct outcome o =
        run(PREFIX("sh", "-c", "sleep 1000; :", "sh"), ARGV("squeue"), no_env, NULL, 200);

    assert_int_equal(o.code, -ETIMEDOUT);
    assert_int_equal(o.err.code, ETIMEDOUT);
    assert_contains(o.err.text, "does not get as far as a shell");
    buf_free(&o.output);
}

TEST(a_command_that_hangs_there_is_named)
{
    struct outcome o = run_with(PREFIX("sh", "-c"), ARGV("sh", "-c", "echo $$; exec sleep 1000"),
                                no_env, NULL, SOON, collect_and_leap);
    uint64_t pid = 0;

    /* The other side would end it at the deadline, which it does not see leap. */
    assert_true(num_get_u64(str_trim(buf_str(&o.output)), &pid) && pid > 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    assert_int_equal(o.code, -ETIMEDOUT);
    assert_contains(o.err.text, "sh through \"sh -c\" did not finish in time and was killed");
    buf_free(&o.output);
}

TEST(who_we_are_there_is_told)
{
    const char *const *way = WAY("echo 4711;", "");
    int64_t deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE;
    pid_t stuck = 0;
    uint32_t id = 0;
    struct err err;

    assert_int_equal(prefix_user_id((char *const *)way, deadline_ns, NULL, &stuck, &id, &err), 0);
    assert_int_equal(id, geteuid());
    assert_int_equal(
        prefix_user_id((char *const *)PREFIX("false"), deadline_ns, NULL, &stuck, &id, &err),
        -EHOSTUNREACH);
}

TEST(who_we_are_there_is_not_asked_while_one_that_asked_cannot_be_killed)
{
    int64_t deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE;
    pid_t stuck = fork(), child = stuck;
    uint32_t id;
    struct err err;

    if (!stuck) {
        pause();
        _exit(0);
    }
    assert_int_equal(
        prefix_user_id((char *const *)PREFIX("sh", "-c"), deadline_ns, NULL, &stuck, &id, &err),
        -ETIMEDOUT);
    assert_contains(err.text, "can still not be killed");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

TEST(a_prefix_must_be_a_command_line)
{
    struct err err;
    char **words = NULL;

    assert_int_equal(prefix_parse(STR("ssh -oX='a b' cedar"), &words, &err), 0);
    assert_string_equal(words[1], "-oX=a b");
    free(words);
    assert_int_equal(prefix_parse(STR(""), &words, &err), 0);
    assert_null(words);
    assert_int_equal(prefix_parse(STR("ssh 'cedar"), &words, &err), -EINVAL);
}
