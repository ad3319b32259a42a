/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers that misbehave: shell scripts that play answers which were written before. The real one
 * is tried on real clusters, in tests/e2e. */
#include "test.h"

#include "base/arena.h"
#include "files.h"
#include "kernel_time.h"
#include "source/sim.h"
#include "source/source.h"
#include "source/wire.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NOON = 1794225600,
    ANSWER_MAX = 64 << 20,
    WAIT = TEST_DEADLINE / NS_PER_SEC, /* seconds for what comes */
};

static int open_file(const char *name)
{
    int fd = open(test_path("%s", name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    return fd;
}

/* A helper of that release. In the script, `hello` says hello, `ask` waits for a question, and
 * `play FILE` answers with it. */
static void put_helper(const char *release, const char *script)
{
    char text[1000];

    snprintf(text, sizeof(text),
             "cd \"$(dirname \"$0\")\"\nplay() { cat \"$1\" >&0; }\n"
             "hello() { play hello; }\n"
             "ask() { [ \"$(head -c 24 | wc -c)\" = 24 ] || exit 0; }\n%s",
             script);
    write_script(test_path("sonde-libslurm-%s", release), text);
}

static void put_answer(const char *name, enum kind kind, const char *settings)
{
    int fd = open_file(name);
    struct section *section;
    struct sim sim;
    struct err err;

    assert_int_equal(sim_parse(str_of(settings), &sim, &err), 0);
    section = sim_section(&sim, kind, NOON);
    assert_int_equal(wire_write_section(fd, section, 1000, STR(""), &err), 0);
    section_unref(section);
    close(fd);
}

static void make_answers(void)
{
    struct err err;
    int fd;

    fd = open_file("hello");
    assert_int_equal(wire_write_hello(fd, STR("22.05"), &err), 0);
    close(fd);
    fd = open_file("hello26");
    assert_int_equal(wire_write_hello(fd, STR("26.05"), &err), 0);
    close(fd);
    fd = open_file("refused");
    assert_int_equal(wire_write_error(fd, EPROTO, STR("Zero Bytes were received"), &err), 0);
    close(fd);
    fd = open_file("unchanged");
    assert_int_equal(wire_write_unchanged(fd, &err), 0);
    close(fd);
    fd = open_file("error");
    assert_int_equal(wire_write_error(fd, EACCES, STR("Access denied"), &err), 0);
    close(fd);
    fd = open_file("down");
    assert_int_equal(wire_write_error(fd, EREMOTEIO, STR("slurmctld is down"), &err), 0);
    close(fd);
    put_answer("jobs", KIND_JOBS, "nodes=16,jobs=100");
    put_answer("nodes", KIND_NODES, "nodes=16,jobs=100");
}

FIXTURE(make_answers, NULL)

static struct source *open_source(size_t max_output)
{
    struct source_settings settings = {
        .spec = STR_INIT("libslurm"),
        .helper_dir = str_of(test_dir()),
        .conf = STR_INIT("/etc/here/slurm.conf"),
        .max_answer = max_output,
    };
    struct source *source = NULL;
    struct err err;

    assert_int_equal(source_open(&settings, &clock_real, &source, &err), 0);
    return source;
}

static int ask(struct source *source, enum kind kind, int64_t seconds, struct section **ret,
               struct err *err)
{
    char warning[SOURCE_WARNING];

    *err = (struct err){ 0 };
    return source->class->read(source, kind, clock_mono(&clock_real) + seconds * NS_PER_SEC, ret,
                               warning, err);
}

static void assert_jobs(struct source *source)
{
    struct section *section = NULL;
    struct err err;

    if (ask(source, KIND_JOBS, WAIT, &section, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(section->jobs.n > 50);
    assert_true(section->bytes_read > 1000);
    section_unref(section);
}

/* Closes it; nobody that it has started is left. */
static void close_source(struct source *source)
{
    int status;

    source_close(source);
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

TEST(what_a_helper_tells_becomes_sections)
{
    struct source *source = open_source(ANSWER_MAX);
    struct source_about about;
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; play jobs; ask; play nodes; ask");
    assert_jobs(source);
    assert_int_equal(ask(source, KIND_NODES, WAIT, &section, &err), 0);
    assert_int_equal(section->nodes.n, 16);
    section_unref(section);
    source_tell(source, &about);
    assert_string_equal(about.door, "libslurm");
    assert_string_equal(about.interface, "22.05");
    close_source(source);
}

TEST(one_that_lacks_its_library_gives_way_to_an_older_release)
{
    struct source *source = open_source(ANSWER_MAX);

    put_helper("26.05", "echo 'cannot open shared object file: libslurm.so.45' >&2; exit 127");
    put_helper("22.05", "hello; ask; play jobs; ask");
    assert_jobs(source);
    close_source(source);
}

TEST(without_a_library_for_any_the_loaders_words_are_told)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05",
               "echo 'error while loading shared libraries: libslurm.so.38' >&2; exit 127");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EREMOTEIO);
    assert_contains(err.text, "sonde-libslurm-22.05 does not start");
    assert_contains(err.text, "install the helper");
    assert_contains(err.text, "libslurm.so.38");
    put_helper("22.05", "hello; ask; play jobs; ask");
    assert_jobs(source);
    close_source(source);
}

TEST(without_any_helper_it_says_where_it_has_looked)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err = { 0 };

    assert_int_equal(source->class->probe(source, &err), -ENOENT);
    assert_contains(err.text, test_dir());
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -ENOENT);
    close_source(source);
}

TEST(one_that_exits_while_asked_gives_way_to_another_at_once)
{
    struct source *source = open_source(ANSWER_MAX);

    put_helper("26.05", "hello; ask; echo 'fatal: plugin is of another release' >&2; exit 1");
    put_helper("24.11", "hello; ask; play refused; ask");
    put_helper("22.05", "hello; ask; play jobs; ask");
    assert_jobs(source);
    close_source(source);
}

#define OTHER_PLUGIN                                                                               \
    "echo 'sonde-libslurm-26.05: plugin_load_from_file: Incompatible Slurm plugin "                \
    "/usr/lib/slurm/auth_munge.so version (24.11.5)' >&2; "                                        \
    "echo 'sonde-libslurm-26.05: error: cannot create auth context for auth/munge' >&2; "

/* With the words that libslurm 26.05 and 22.05 print beside plugins of 24.11; the first exits. */
TEST(one_of_another_release_than_the_plugins_names_both_and_what_to_install)
{
    static const char *const scripts[] = {
        "play hello26; ask; " OTHER_PLUGIN "exit 1",
        "play hello26; ask; " OTHER_PLUGIN "play down; ask",
    };

    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct source *source = open_source(ANSWER_MAX);
        struct section *section;
        struct err err;

        put_helper("26.05", scripts[i]);
        assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EPROTO);
        assert_string_equal(err.text, "sonde-libslurm-26.05: it is built for Slurm 26.05, but "
                                      "/usr/lib/slurm/auth_munge.so is of Slurm 24.11.5; install "
                                      "sonde-libslurm-24.11");
        close_source(source);
    }
}

TEST(one_that_is_older_than_slurm_conf_names_the_option)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; echo 'error: _parse_next_key: Parsing error at unrecognized "
                        "key: MetricsType' >&2\n"
                        "echo 'fatal: Unable to process configuration file' >&2; exit 1");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EPROTO);
    assert_contains(err.text, "it is built for Slurm 22.05, which has no option MetricsType, but");
    assert_null(strstr(err.text, "--slurm.conf"));
    close_source(source);
}

TEST(of_several_that_fail_the_one_that_came_furthest_is_named)
{
    struct source *source = open_source(ANSWER_MAX);
    struct source_about about;
    struct section *section;
    struct err err;

    put_helper("26.05", "play hello26; ask; play refused; ask");
    put_helper("24.11", "hello; ask; echo 'fatal: munge: Failed to access the socket' >&2; exit 1");
    put_helper("22.05",
               "echo 'error while loading shared libraries: libslurm.so.38' >&2; exit 127");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EREMOTEIO);
    assert_contains(err.text, "sonde-libslurm-24.11: is munge running here?");
    source_tell(source, &about);
    assert_string_equal(about.interface, "22.05"); /* what hello says */
    close_source(source);
}

TEST(one_that_dies_in_the_middle_of_a_record_is_started_again)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; if [ -e again ]; then play jobs; ask; fi\n"
                        ": >again; head -c 5000 jobs >&0; kill -9 $$");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EREMOTEIO);
    assert_contains(err.text, "signal 9");
    assert_jobs(source);
    close_source(source);
}

TEST(one_that_talks_nonsense_is_an_error_at_once)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05", "echo 'Usage: nothing that you would know' >&0; cat");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EBADMSG);
    put_helper("22.05", "hello; ask; cat /dev/zero >&0");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EBADMSG);
    put_helper("22.05", "hello; ask; play hello; cat");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EBADMSG);
    put_helper("22.05", "hello; ask; play unchanged; cat"); /* since nothing */
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EBADMSG);
    close_source(source);
}

static const char *hangs;

static bool is_hanging(void)
{
    return access(hangs, F_OK) == 0;
}

/* Asks with that helper, which makes the file "hangs" when it does: then the time is over. */
static void ask_one_that_hangs(struct source *source, const char *script, struct err *err)
{
    struct section *section;

    put_helper("22.05", script);
    hangs = test_path("hangs");
    remove_all(hangs);
    time_leap_when(is_hanging, NS_PER_SEC);
    assert_int_equal(ask(source, KIND_JOBS, 1, &section, err), -ETIMEDOUT);
    assert_true(is_hanging());
}

TEST(one_that_hangs_is_killed_with_its_children)
{
    struct source *source = open_source(ANSWER_MAX);
    struct err err;

    ask_one_that_hangs(source, "hello; ask; trap '' TERM; sleep 1000 & >hangs; sleep 1000", &err);
    assert_contains(err.text, "--slurm.timeout (1 s)");
    ask_one_that_hangs(source, ">hangs; sleep 1000", &err); /* before it has said hello */
    close_source(source);
}

TEST(one_that_waits_for_slurm_conf_is_explained)
{
    struct source *source = open_source(ANSWER_MAX);
    struct err err;

    ask_one_that_hangs(source,
                       "hello; ask; echo 'error: unable to status file /etc/slurm/slurm.conf: No "
                       "such file or directory, retrying' >&2; >hangs; sleep 1000",
                       &err);
    assert_contains(err.text, "--slurm.conf");
    assert_contains(err.text, "No such file");
    close_source(source);
}

TEST(floods_have_a_ceiling)
{
    struct source *source = open_source(20000);
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; play jobs; cat");
    put_answer("jobs", KIND_JOBS, "nodes=16,jobs=1000");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EFBIG);
    assert_contains(err.text, "--slurm.max-answer");
    ask_one_that_hangs(source,
                       "hello; ask; yes 'error: no end' | head -c 200000 >&2; >hangs\n"
                       "yes 'error: no end' >&2",
                       &err);
    assert_contains(err.text, "no end");
    close_source(source);
}

TEST(one_that_dies_unasked_is_replaced_before_it_is_missed)
{
    struct source *source = open_source(ANSWER_MAX);
    siginfo_t info;

    put_helper("22.05", "hello; ask; play jobs");
    assert_jobs(source);
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    assert_jobs(source);
    close_source(source);
}

TEST(when_slurm_fails_the_next_helper_reads_its_configuration_anew)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; play down; ask; play nodes");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EREMOTEIO);
    put_helper("26.05", "hello; ask; play jobs; ask");
    assert_jobs(source);
    close_source(source);
}

TEST(one_to_which_slurm_does_not_speak_gives_way_to_another_the_next_time)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("26.05", "hello; ask; play down; ask");
    put_helper("22.05", "hello; ask; play jobs; ask");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EREMOTEIO);
    assert_jobs(source);
    close_source(source);
}

TEST(a_refusal_by_slurm_is_told_and_the_helper_stays)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; play error; ask; play jobs; ask");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &section, &err), -EACCES);
    assert_string_equal(err.text, "Access denied");
    assert_jobs(source);
    close_source(source);
}

TEST(no_change_gives_the_same_facts_again)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *first, *second;
    struct err err;

    put_helper("22.05", "hello; ask; play jobs; ask; play unchanged; ask");
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &first, &err), 0);
    assert_int_equal(ask(source, KIND_JOBS, WAIT, &second, &err), 0);
    assert_ptr_equal(second->same_as, first);
    assert_ptr_equal(second->jobs.job, first->jobs.job);
    assert_true(second->bytes_read < 100);
    section_unref(first);
    assert_true(second->jobs.n > 50);
    section_unref(second);
    close_source(source);
}

TEST(a_read_ends_when_it_is_cancelled)
{
    struct source *source = open_source(ANSWER_MAX);
    struct section *section;
    struct err err;

    put_helper("22.05", "hello; ask; sleep 1000");
    atomic_store(&source->cancelled, true);
    assert_int_equal(ask(source, KIND_JOBS, 1000, &section, &err), -ECANCELED);
    close_source(source);
}

TEST(a_helper_gets_its_socket_and_slurm_conf_and_nothing_else)
{
    struct source *source = open_source(ANSWER_MAX);
    int leak = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    const char *said;

    put_helper("22.05", "(cd /proc/$$/fd && echo $SLURM_CONF *) >said; hello; ask; play jobs; ask");
    assert_jobs(source);
    said = read_file("said").p;
    /* and the script itself, which the shell reads from 10 or 255 */
    assert_contains(said, "/etc/here/slurm.conf 0 1");
    assert_null(strstr(said, " 3"));
    close(leak);
    close_source(source);
}
