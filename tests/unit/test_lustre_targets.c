/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Servers are made of files that look like Lustre's below /proc and /sys; lctl is a script. */
#include "test.h"

#include "base/arena.h"
#include "files.h"
#include "kernel_time.h"
#include "manual_clock.h"
#include "source/lustre_targets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define OST(name) "proc/fs/lustre/obdfilter/" name "/job_stats"
#define MDT(name) "proc/fs/lustre/mdt/" name "/job_stats"

static const int64_t tick_ns = 15 * NS_PER_SEC;

struct fixture {
    struct manual_clock clock;
    struct lustre_targets_config config;
    struct lustre_targets *targets;
    struct lustre_use *use;
};

static struct fixture *fixture;

static void put_lctl(const char *script)
{
    char text[4096];

    snprintf(text, sizeof(text), "echo \"$*\" >>%s/asked\n%s", test_dir(), script);
    write_script("lctl", text);
}

static void set_up(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    write_file("asked", "");
    manual_clock_init(&fixture->clock, 1800000000 * NS_PER_SEC, 5000 * NS_PER_SEC);
    fixture->config = (struct lustre_targets_config){
        test_path("proc"), test_path("sys"), test_path("lctl"), 10, 1 << 20, &fixture->clock.clock,
    };
}

static void tear_down(void)
{
    lustre_use_unref(fixture->use);
    lustre_targets_stop(fixture->targets);
    manual_clock_destroy(&fixture->clock);
    free(fixture);
}

FIXTURE(set_up, tear_down)

/* Whether a look of this very moment has come. */
static bool has_looked(void)
{
    fixture->use = lustre_use_unref(fixture->use);
    fixture->use = lustre_targets_latest(fixture->targets, 0);
    if (fixture->use && fixture->use->mono_ns != clock_mono(&fixture->clock.clock))
        fixture->use = lustre_use_unref(fixture->use);
    return fixture->use != NULL;
}

static void start(void)
{
    struct err err = { 0 };

    if (lustre_targets_start(&fixture->config, &fixture->targets, &err) < 0)
        fail_msg("%s", err.text);
}

static const struct lustre_use *look(void)
{
    if (!fixture->targets)
        start();
    manual_clock_advance(&fixture->clock, tick_ns);
    lustre_targets_ask(fixture->targets);
    wait_until_true(has_looked());
    return fixture->use;
}

/* What a target has of an id: bytes read, or opens; -1: nothing is known. */
static int64_t value_of(const struct lustre_use *use, const char *target, const char *id)
{
    for (size_t i = 0; i < use->n; i++) {
        const struct lustre_id_use *of = &use->id[i];

        if (!str_eq(symbols_get(&use->symbols, of->target), str_of(target)) ||
            !str_eq(symbols_get(&use->symbols, of->id), str_of(id)))
            continue;
        return of->is_mdt ? (int64_t)use->operation[of->first_operation].samples
                          : (int64_t)of->read.bytes;
    }
    return -1;
}

#define READ(id, bytes)                                                                            \
    "- job_id:          " id "\n"                                                                  \
    "  snapshot_time:   1322494602\n"                                                              \
    "  read_bytes:      { samples:           1, unit: bytes, min:    4096, max:    4096, sum: "    \
    "           " bytes " }\n"
#define OPEN(id, opens)                                                                            \
    "- job_id:          " id "\n"                                                                  \
    "  snapshot_time:   1322494602.000000001\n"                                                    \
    "  open:            { samples: " opens ", unit: usecs, min: 1, max: 2, sum: 3, sumsq: 4 }\n"

TEST(each_target_is_read_wherever_its_file_is)
{
    const struct lustre_use *use;

    write_file(OST("scratch-OST0000"), "job_stats:\n" READ("4711", "100"));
    write_file(MDT("scratch-MDT0000"), "job_stats:\n" OPEN("rm.0", "7"));
    write_file("sys/kernel/debug/lustre/obdfilter/scratch-OST0001/job_stats",
               "job_stats:\n" READ("4711", "200"));
    write_file("sys/kernel/debug/lustre/mdt/home-MDT0001/job_stats", "");
    make_dir("sys/fs/lustre/obdfilter/scratch-OST0000");
    write_file("proc/fs/lustre/obdfilter/num_refs", "8\n");
    use = look();
    assert_int_equal(use->n_targets, 4);
    assert_int_equal(use->n_unread, 0);
    assert_int_equal(use->n, 3);
    assert_int_equal(value_of(use, "scratch-OST0000", "4711"), 100);
    assert_int_equal(value_of(use, "scratch-OST0001", "4711"), 200);
    assert_int_equal(value_of(use, "scratch-MDT0000", "rm.0"), 7);
    assert_string_equal(use->first_error, "");
    assert_true(use->bytes_read > 300);
    assert_int_equal(use->lines_left_out, 0);
    assert_int_equal(read_file("asked").n, 0);
}

TEST(a_target_with_two_files_is_read_once)
{
    const struct lustre_use *use;

    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100"));
    write_file("sys/kernel/debug/lustre/obdfilter/a-OST0000/job_stats",
               "job_stats:\n" READ("1", "200"));
    use = look();
    assert_int_equal(use->n_targets, 1);
    assert_int_equal(use->n, 1);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
}

TEST(a_node_that_is_no_server_has_no_targets)
{
    const struct lustre_use *use = look();

    assert_int_equal(use->n_targets, 0);
    assert_string_equal(use->first_error, "");
    write_file("proc/fs/lustre/llite/scratch-ffff/stats", "a client\n");
    write_file("sys/fs/lustre/mdt", "not a directory\n");
    use = look();
    assert_int_equal(use->n_targets, 0);
    assert_int_equal(use->n_unread, 0);
    assert_int_equal(read_file("asked").n, 0);
}

TEST(targets_come_and_go_and_count_anew)
{
    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100") READ("2", "50"));
    look();
    write_file(OST("a-OST0001"), "job_stats:\n" READ("1", "7"));
    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "30"));
    assert_int_equal(value_of(look(), "a-OST0001", "1"), 7);
    assert_int_equal(value_of(look(), "a-OST0000", "1"), 30);
    assert_int_equal(value_of(look(), "a-OST0000", "2"), -1);
    remove_all("proc/fs/lustre/obdfilter");
    assert_int_equal(look()->n_targets, 0);
}

TEST(what_cannot_be_read_is_counted_and_the_rest_is_there)
{
    const struct lustre_use *use;

    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100"));
    make_dir(OST("a-OST0001"));
    make_dir("sys/fs/lustre/obdfilter/a-OST0002");
    fixture->config.lctl = NULL;
    use = look();
    assert_int_equal(use->n_targets, 3);
    assert_int_equal(use->n_unread, 2);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
    assert_contains(use->first_error, "a-OST0001/job_stats: Is a directory");
    remove_all(OST("a-OST0001"));
    assert_contains(look()->first_error, "a-OST0001 has no job_stats");
}

TEST(lines_that_cannot_be_read_are_counted_in_each_look_anew)
{
    write_file(OST("a-OST0000"),
               "job_stats:\n" READ("1", "100") "  read_bytes:      { samples: -1 }\n");
    assert_int_equal(look()->lines_left_out, 1);
    assert_int_equal(look()->lines_left_out, 1);
}

TEST(ids_past_the_ceiling_are_counted)
{
    const struct lustre_use *use;

    fixture->config.max_ids = 2;
    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100000") READ("2", "300000")
                                     READ("3", "200000") READ("2", "5"));
    write_file(OST("a-OST0001"), "job_stats:\n" READ("1", "1"));
    use = look();
    assert_int_equal(use->n, 3);
    assert_int_equal(use->ids_left_out, 1);
    assert_int_equal(use->ids_merged, 1);
    assert_int_equal(value_of(use, "a-OST0000", "1"), -1);
    assert_int_equal(value_of(use, "a-OST0000", "2"), 300005);
}

/* By their name; one that ends may be listed for a moment after it was joined. */
static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    int n = 0;

    assert_non_null(tasks);
    while ((task = readdir(tasks))) {
        char path[300], name[16] = "";
        int fd;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        n += read(fd, name, sizeof(name)) > 0 && strncmp(name, "lustre\n", 7) == 0;
        close(fd);
    }
    closedir(tasks);
    return n;
}

static void make_pipe(const char *path)
{
    const char *full = write_file(path, "");

    assert_int_equal(unlink(full), 0);
    assert_int_equal(mkfifo(full, 0644), 0);
}

/* Once somebody waits for a writer of the pipe; who then waits for what it writes, or its end. */
static int open_pipe(const char *path)
{
    const char *full = test_path("%s", path);
    int fd = -1;

    wait_until_true(fd >= 0 || (fd = open(full, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
    return fd;
}

TEST(a_file_that_hangs_delays_nobody)
{
    struct lustre_use *use;
    int pipe;

    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100"));
    look();
    make_pipe(OST("a-OST0001"));
    manual_clock_advance(&fixture->clock, tick_ns);
    lustre_targets_ask(fixture->targets);
    pipe = open_pipe(OST("a-OST0001"));
    use = lustre_targets_latest(fixture->targets, 2 * tick_ns);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
    lustre_use_unref(use);
    manual_clock_advance(&fixture->clock, 10 * tick_ns);
    assert_null(lustre_targets_latest(fixture->targets, 2 * tick_ns));
    assert_int_equal(count_threads(), 1);

    /* Returns although it hangs. The time for which it waits is over when it begins. */
    time_leap(-NS_PER_SEC);
    fixture->targets = lustre_targets_stop(fixture->targets);
    time_leap(NS_PER_SEC);
    close(pipe);
    wait_until_true(count_threads() == 0);
}

TEST(a_file_that_hung_is_read_again)
{
    make_pipe(OST("a-OST0001"));
    start();
    lustre_targets_ask(fixture->targets);
    close(open_pipe(OST("a-OST0001")));
    remove_all("proc/fs/lustre/obdfilter/a-OST0001");
    write_file(OST("a-OST0001"), "job_stats:\n" READ("1", "100"));
    manual_clock_advance(&fixture->clock, tick_ns);
    wait_until_true((lustre_targets_ask(fixture->targets), has_looked()));
    assert_int_equal(value_of(fixture->use, "a-OST0001", "1"), 100);
}

TEST(a_look_outlives_the_next_one_and_the_thread)
{
    struct lustre_use *first;

    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100"));
    look();
    first = lustre_targets_latest(fixture->targets, tick_ns);
    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "200"));
    assert_int_equal(value_of(look(), "a-OST0000", "1"), 200);
    fixture->targets = lustre_targets_stop(fixture->targets);
    assert_int_equal(value_of(first, "a-OST0000", "1"), 100);
    assert_null(lustre_use_unref(first));
}

TEST(without_an_asker_nobody_looks)
{
    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100"));
    start();
    fixture->targets = lustre_targets_stop(fixture->targets);
    assert_null(lustre_targets_latest(NULL, INT64_MAX));
    lustre_targets_ask(NULL);
    assert_null(lustre_targets_stop(NULL));
}

TEST(without_files_lctl_is_asked_for_what_there_is)
{
    const struct lustre_use *use;

    make_dir("sys/fs/lustre/obdfilter/a-OST0000");
    make_dir("sys/fs/lustre/obdfilter/a-OST0001");
    put_lctl("cat <<'.'\nobdfilter.a-OST0000.job_stats=\njob_stats:\n" READ(
        "1", "100") "obdfilter.a-OST0001.job_stats=\n.");
    use = look();
    assert_str(read_file("asked"), "get_param obdfilter.*.job_stats\n");
    assert_int_equal(use->n_targets, 2);
    assert_int_equal(use->n_unread, 0); /* the second one is idle */
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
    assert_true(use->bytes_read > 100);
    assert_string_equal(use->first_error, "");
    make_dir("proc/fs/lustre/mdt/a-MDT0000");
    put_lctl("cat <<'.'\nobdfilter.a-OST0001.job_stats=\njob_stats:\n" READ("1", "5")
                 READ("2", "6") "mdt.a-MDT0000.job_stats=\njob_stats:\n" OPEN("1", "9") ".");
    use = look();
    assert_str(read_file("asked"), "get_param obdfilter.*.job_stats\n"
                                   "get_param obdfilter.*.job_stats mdt.*.job_stats\n");
    assert_int_equal(use->n, 3);
    assert_int_equal(value_of(use, "a-OST0001", "2"), 6);
    assert_int_equal(value_of(use, "a-MDT0000", "1"), 9);
}

#define PRINTED(name, entries) "obdfilter." name ".job_stats=\njob_stats:\n" entries

/* An lctl that prints these, one after another. */
static void put_printing_lctl(const char *const *texts, size_t n)
{
    char script[2048];
    size_t used = (size_t)snprintf(script, sizeof(script), "cat <<'.'\n");

    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(script + used, sizeof(script) - used, "%s", texts[i]);
    snprintf(script + used, sizeof(script) - used, ".");
    put_lctl(script);
}

TEST(what_lctl_says_of_unknown_targets_or_a_second_time_is_left_out)
{
    static const char *const printed[] = {
        READ("0", "1"),
        PRINTED("a-OST0000", READ("1", "100")),
        PRINTED("a-OST0000", READ("1", "100")),
        PRINTED("a-OST0009", READ("9", "9")),
        PRINTED("a-OST0001", READ("2", "2")),
        PRINTED("a-OST0000", READ("3", "3")),
    };
    const struct lustre_use *use;

    make_dir("sys/fs/lustre/obdfilter/a-OST0000");
    make_dir("sys/fs/lustre/obdfilter/a-OST0001");
    put_printing_lctl(printed, COUNT(printed));
    use = look();
    assert_int_equal(use->n, 2);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
    assert_int_equal(value_of(use, "a-OST0001", "2"), 2);
    assert_int_equal(use->ids_merged, 0);
}

TEST(an_lctl_that_names_no_target_has_not_told_of_any)
{
    const struct lustre_use *use;

    make_dir("sys/fs/lustre/obdfilter/a-OST0000");
    put_lctl("echo hello; echo world");
    use = look();
    assert_int_equal(use->n_unread, 1);
    assert_contains(use->first_error, "names no Lustre target");
    put_lctl(":"); /* what it does when all files are empty */
    use = look();
    assert_int_equal(use->n_unread, 0);
    assert_string_equal(use->first_error, "");
}

TEST(lctl_is_asked_for_those_without_a_file_beside_those_with_one)
{
    static const char *const osts[] = {
        PRINTED("a-OST0000", READ("1", "7")),
        PRINTED("a-OST0001", READ("1", "8")),
    };
    const struct lustre_use *use;

    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "100"));
    make_dir("sys/fs/lustre/mdt/a-MDT0000");
    put_lctl("cat <<'.'\nmdt.a-MDT0000.job_stats=\njob_stats:\n" OPEN("1", "9") ".");
    use = look();
    assert_str(read_file("asked"), "get_param mdt.*.job_stats\n");
    assert_int_equal(use->n_unread, 0);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
    assert_int_equal(value_of(use, "a-MDT0000", "1"), 9);
    make_dir("sys/fs/lustre/obdfilter/a-OST0001");
    put_printing_lctl(osts, COUNT(osts));
    use = look();
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100); /* its file has told */
    assert_int_equal(value_of(use, "a-OST0001", "1"), 8);
    assert_int_equal(use->n_unread, 0);
}

/* The thread that looks has the capabilities of the one that starts it. */
static const struct lustre_use *look_from_new_thread(void)
{
    fixture->targets = lustre_targets_stop(fixture->targets);
    start();
    return look();
}

static void set_mode(const char *path, mode_t mode)
{
    assert_int_equal(chmod(test_path("%s", path), mode), 0);
}

TEST(what_may_not_be_read_is_not_taken_for_absent)
{
    const struct lustre_use *use;

    lower_capabilities();
    fixture->config.lctl = NULL;
    set_mode("", 0755);
    write_file("sys/kernel/debug/lustre/obdfilter/a-OST0000/job_stats",
               "job_stats:\n" READ("1", "1"));
    set_mode("sys/kernel/debug", 0);
    use = look_from_new_thread();
    assert_int_equal(use->n_targets, 0); /* nobody can tell */
    assert_contains(use->first_error, "sys/kernel/debug/lustre: Permission denied");

    make_dir("sys/fs/lustre/obdfilter/a-OST0000");
    use = look_from_new_thread();
    assert_int_equal(use->n_unread, 1);
    assert_contains(use->first_error, "a-OST0000 cannot be looked for: ");
    assert_contains(use->first_error, "sys/kernel/debug/lustre: Permission denied");

    /* What is not needed may be closed. */
    write_file(OST("a-OST0000"), "job_stats:\n" READ("1", "1"));
    use = look_from_new_thread();
    assert_int_equal(use->n_unread, 0);
    assert_string_equal(use->first_error, "");

    set_mode("sys/fs/lustre/obdfilter", 0);
    remove_all("proc");
    use = look_from_new_thread();
    assert_int_equal(use->n_targets, 1); /* at least */
    assert_int_equal(use->n_unread, 1);
    assert_contains(use->first_error, "Permission denied");
    set_mode("sys/kernel/debug", 0755);
    set_mode("sys/fs/lustre/obdfilter", 0755);
}

TEST(a_look_waits_from_when_it_was_asked_for_until_its_end)
{
    int pipe;

    make_pipe(OST("a-OST0000"));
    start();
    manual_clock_advance(&fixture->clock, tick_ns);
    assert_int_equal(lustre_targets_waits_ns(fixture->targets), 0);
    lustre_targets_ask(fixture->targets);
    pipe = open_pipe(OST("a-OST0000"));
    manual_clock_advance(&fixture->clock, tick_ns);
    lustre_targets_ask(fixture->targets);
    manual_clock_advance(&fixture->clock, tick_ns);
    assert_int_equal(lustre_targets_waits_ns(fixture->targets), 2 * tick_ns);
    close(pipe);
    wait_until_true(lustre_targets_waits_ns(fixture->targets) == 0);
    assert_int_equal(lustre_targets_waits_ns(NULL), 0);
}

TEST(of_an_lctl_that_failed_what_it_printed_counts)
{
    const struct lustre_use *use;

    make_dir("sys/fs/lustre/obdfilter/a-OST0000");
    make_dir("sys/fs/lustre/obdfilter/a-OST0001");
    put_lctl("cat <<'.'\nobdfilter.a-OST0000.job_stats=\njob_stats:\n" READ(
        "1", "100") ".\necho 'error: get_param: no luck' >&2; exit 2");
    use = look();
    assert_int_equal(use->n_unread, 1);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
    assert_contains(use->first_error, "no luck");
}

TEST(of_an_lctl_that_was_killed_whole_targets_count)
{
    const struct lustre_use *use;

    make_dir("sys/fs/lustre/obdfilter/a-OST0000");
    make_dir("sys/fs/lustre/obdfilter/a-OST0001");
    put_lctl("cat <<'.'\nobdfilter.a-OST0000.job_stats=\njob_stats:\n" READ(
        "1", "100") "obdfilter.a-OST0001.job_stats=\njob_stats:\n" READ("1", "5")
                 READ("2", "5") ".\nkill -9 $$");
    use = look();
    assert_int_equal(use->n_unread, 1);
    assert_int_equal(use->n, 1);
    assert_int_equal(value_of(use, "a-OST0000", "1"), 100);
}

TEST(an_lctl_that_hangs_does_not_outlive_the_thread)
{
    make_dir("sys/fs/lustre/mdt/a-MDT0000");
    put_lctl("exec sleep 1000");
    start();
    lustre_targets_ask(fixture->targets);
    wait_until_true(read_file("asked").n > 0);
    fixture->targets = lustre_targets_stop(fixture->targets);
    wait_until_true(count_threads() == 0);
}

TEST(without_lctl_targets_without_files_are_unread)
{
    const struct lustre_use *use;

    make_dir("sys/fs/lustre/mdt/a-MDT0000");
    use = look();
    assert_int_equal(use->n_targets, 1);
    assert_int_equal(use->n_unread, 1);
    assert_contains(use->first_error, "lctl");
    fixture->targets = lustre_targets_stop(fixture->targets);
    fixture->config.lctl = NULL;
    use = look();
    assert_int_equal(use->n_unread, 1);
    assert_contains(use->first_error, "a-MDT0000 has no job_stats");
}
