/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On plain directories that look like a hierarchy, and on the real ones of this machine where we
 * may use them. */
#include "test.h"

#include "files.h"
#include "source/cgroup.h"
#include "source/cgroup_tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCOPE "system.slice/slurmstepd.scope"

static char mount[300];
static struct cgroup_rows *rows;
static struct cgroup_tree *tree;
static struct buf told; /* what the tree has called us for: "+ path", "- path", "! path" */

/* How many watches the kernel gives; -1: as many as it has. */
static int watches_left;
static bool has_inotify;

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (watches_left == 0) {
        errno = ENOSPC;
        return -1;
    }
    watches_left -= watches_left > 0;
    return __real_inotify_add_watch(fd, path, mask);
}

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);
int __wrap_inotify_init1(int flags)
{
    if (has_inotify)
        return __real_inotify_init1(flags);
    errno = EMFILE;
    return -1;
}

static void tell(char sign, const struct cgroup_dir *dir)
{
    buf_byte(&told, sign);
    buf_byte(&told, ' ');
    cgroup_dir_path(dir, &told);
    buf_byte(&told, '\n');
}

static void entered(void *ctx, struct cgroup_dir *dir, const struct cgroup_match *match)
{
    (void)ctx;
    (void)match;
    tell('+', dir);
}

static void left(void *ctx, struct cgroup_dir *dir)
{
    (void)ctx;
    assert_null(dir->first_child);
    tell('-', dir);
}

static void changed(void *ctx, struct cgroup_dir *dir)
{
    (void)ctx;
    tell('!', dir);
}

static const struct cgroup_tree_events events = { entered, left, changed, NULL };

/* What was told since the last time. */
#define assert_told(expected)                                                                      \
    do {                                                                                           \
        assert_string_equal(told.p ? told.p : "", expected);                                       \
        buf_reset(&told);                                                                          \
    } while (0)

static char *in_mount(const char *path)
{
    static char full[8000];

    snprintf(full, sizeof(full), "%s/%s", mount, path);
    return full;
}

/* Also in a real hierarchy, where files.h does not write. */
static void make(const char *path)
{
    char *full = in_mount(path);

    for (char *slash = full + strlen(mount) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    if (mkdir(full, 0755) < 0 && errno != EEXIST)
        fail_msg("cannot make %s: %d", full, errno);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(in_mount(path), "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void take_away(const char *path)
{
    if (rmdir(in_mount(path)) < 0)
        fail_msg("cannot remove %s: %d", path, errno);
}

static void open_tree(bool is_v2)
{
    struct err err = { 0 };

    if (cgroup_tree_new(mount, is_v2, rows, &events, &tree, &err) < 0)
        fail_msg("%s", err.text);
}

static struct cgroup_tree_stats stats(void)
{
    struct cgroup_tree_stats now;

    cgroup_tree_stats(tree, &now);
    return now;
}

/* The directory that was entered last under that path. */
static struct cgroup_dir *found;
static const char *sought;

static void note(void *ctx, struct cgroup_dir *dir, const struct cgroup_match *match)
{
    struct buf path;

    (void)ctx;
    (void)match;
    buf_init(&path, 1000);
    cgroup_dir_path(dir, &path);
    if (str_eq(buf_str(&path), str_of(sought)))
        found = dir;
    buf_free(&path);
}

static struct cgroup_dir *open_tree_for(bool is_v2, const char *path)
{
    const struct cgroup_tree_events look = { .entered = note };
    struct err err = { 0 };

    found = NULL;
    sought = path;
    if (cgroup_tree_new(mount, is_v2, rows, &look, &tree, &err) < 0)
        fail_msg("%s", err.text);
    assert_non_null(found);
    return found;
}

TEST(what_is_there_at_the_start_is_entered_parents_first)
{
    make("slurm/uid_1000/job_17/step_batch/task_0");
    make("slurm/system");
    make("user.slice/slurm/uid_1/job_1");
    open_tree(false);
    assert_told("+ slurm/uid_1000/job_17\n"
                "+ slurm/uid_1000/job_17/step_batch\n"
                "+ slurm/uid_1000/job_17/step_batch/task_0\n");
    assert_int_equal(stats().dirs, 6);
    assert_int_equal(stats().walks, 1);
    assert_int_equal(stats().unwatched, 0);
}

TEST(a_new_job_is_noticed_at_once_with_all_that_is_in_it)
{
    struct pollfd poll_fd;

    make(SCOPE);
    open_tree(true);
    poll_fd = (struct pollfd){ .fd = cgroup_tree_fd(tree), .events = POLLIN };
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    make(SCOPE "/job_7/step_0/user/task_0");
    assert_int_equal(poll(&poll_fd, 1, 0), 1);
    cgroup_tree_read(tree);
    assert_told("+ " SCOPE "/job_7\n"
                "+ " SCOPE "/job_7/step_0\n"
                "+ " SCOPE "/job_7/step_0/user\n"
                "+ " SCOPE "/job_7/step_0/user/task_0\n");
    make(SCOPE "/job_7/step_0/user/task_1/mine");
    make(SCOPE "/system/job_1");
    cgroup_tree_read(tree);
    assert_told("+ " SCOPE "/job_7/step_0/user/task_1\n"
                "+ " SCOPE "/job_7/step_0/user/task_1/mine\n");
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    assert_int_equal(stats().walks, 1);
}

TEST(a_scope_that_comes_later_is_found_wherever_it_is)
{
    make("kubepods.slice/pod1.slice");
    open_tree(true);
    make("kubepods.slice/pod1.slice/container.scope/system.slice/n1_slurmstepd.scope/job_1");
    make("pbs.slice/jobs/2.scope");
    cgroup_tree_read(tree);
    assert_told("+ kubepods.slice/pod1.slice/container.scope/system.slice/n1_slurmstepd.scope/"
                "job_1\n");
}

TEST(a_row_of_the_configuration_brings_its_jobs)
{
    struct err err = { 0 };

    assert_int_equal(cgroup_rows_add(rows, STR("pbs=v2:pbs.slice/jobs/{job}.scope"), &err), 0);
    open_tree(true);
    make("pbs.slice/jobs/2.server.scope/inner");
    make("pbs.slice/jobs/other");
    cgroup_tree_read(tree);
    assert_told("+ pbs.slice/jobs/2.server.scope\n+ pbs.slice/jobs/2.server.scope/inner\n");
}

TEST(a_job_that_goes_leaves_innermost_first)
{
    make("slurm/uid_1/job_1/step_0/task_0");
    open_tree(false);
    buf_reset(&told);
    take_away("slurm/uid_1/job_1/step_0/task_0");
    take_away("slurm/uid_1/job_1/step_0");
    take_away("slurm/uid_1/job_1");
    cgroup_tree_read(tree);
    assert_told("- slurm/uid_1/job_1/step_0/task_0\n"
                "- slurm/uid_1/job_1/step_0\n"
                "- slurm/uid_1/job_1\n");
    assert_int_equal(stats().dirs, 3);
}

TEST(a_job_that_comes_and_goes_before_we_look_is_never_told)
{
    make("slurm/uid_1");
    open_tree(false);
    make("slurm/uid_1/job_1");
    take_away("slurm/uid_1/job_1");
    make("slurm/uid_1/job_2");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_2\n");
}

TEST(what_a_walk_has_seen_is_not_told_again_by_its_events)
{
    make("slurm/uid_1/job_1");
    open_tree(false);
    make("slurm/uid_1/job_2/step_0");
    take_away("slurm/uid_1/job_1");
    cgroup_tree_walk(tree);
    assert_told("+ slurm/uid_1/job_1\n"
                "+ slurm/uid_1/job_2\n"
                "- slurm/uid_1/job_1\n"
                "+ slurm/uid_1/job_2/step_0\n");
    cgroup_tree_read(tree);
    cgroup_tree_walk(tree);
    assert_told("");
}

TEST(another_directory_of_the_same_name_is_another)
{
    int held; /* a disk gives the inode of a directory that is gone to the next, cgroups do not */

    make("slurm/uid_1/job_1");
    open_tree(false);
    assert_told("+ slurm/uid_1/job_1\n");
    held = open(in_mount("slurm/uid_1/job_1"), O_PATH | O_CLOEXEC);
    take_away("slurm/uid_1/job_1");
    make("slurm/uid_1/job_1");
    close(held);
    cgroup_tree_walk(tree);
    assert_told("- slurm/uid_1/job_1\n+ slurm/uid_1/job_1\n");
    cgroup_tree_read(tree);
    assert_told("");
    make("slurm/uid_1/job_1/step_0");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_1/step_0\n");
}

TEST(a_renamed_directory_leaves_and_enters)
{
    make("slurm/uid_1/job_1/step_0/task_0/in");
    open_tree(false);
    buf_reset(&told);
    assert_int_equal(rename(test_path("slurm/uid_1/job_1/step_0/task_0"),
                            test_path("slurm/uid_1/job_1/step_0/mine")),
                     0);
    cgroup_tree_read(tree);
    assert_told("- slurm/uid_1/job_1/step_0/task_0/in\n"
                "- slurm/uid_1/job_1/step_0/task_0\n"
                "+ slurm/uid_1/job_1/step_0/mine\n"
                "+ slurm/uid_1/job_1/step_0/mine/in\n");
    make("slurm/uid_1/job_1/step_0/mine/in/deeper");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_1/step_0/mine/in/deeper\n");
}

static size_t count(char sign)
{
    size_t n = 0;

    for (size_t i = 0; i < told.n; i++)
        n += told.p[i] == sign && (i == 0 || told.p[i - 1] == '\n');
    return n;
}

TEST(nothing_is_lost_while_directories_are_made_under_our_hands)
{
    enum { JOBS = 200 };
    struct cgroup_tree_stats now;
    pid_t child;
    int status = 0;

    make(SCOPE);
    open_tree(true);
    child = fork();
    if (child == 0) {
        for (int i = 1; i <= JOBS; i++) {
            char path[200];

            snprintf(path, sizeof(path), SCOPE "/job_%d/step_0/user/task_0/a/b", i);
            make(path);
        }
        _exit(0);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
        cgroup_tree_read(tree);
    cgroup_tree_read(tree);
    assert_int_equal(count('+'), 6 * JOBS);
    assert_int_equal(count('-'), 0);
    now = stats();
    assert_int_equal(now.dirs, 3 + 6 * JOBS);
    assert_int_equal(now.overflows, 0);
    assert_int_equal(now.walks, 1);
}

TEST(directories_that_vanish_under_our_hands_are_forgotten)
{
    enum { ROUNDS = 2000 };
    int status = 0;
    pid_t child;

    make("slurm/uid_1");
    open_tree(false);
    child = fork();
    if (child == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            make("slurm/uid_1/job_1/step_0/task_0");
            take_away("slurm/uid_1/job_1/step_0/task_0");
            take_away("slurm/uid_1/job_1/step_0");
            take_away("slurm/uid_1/job_1");
        }
        _exit(0);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        cgroup_tree_read(tree);
        cgroup_tree_walk(tree);
    }
    for (int i = 0; i < 100; i++)
        cgroup_tree_read(tree);
    assert_int_equal(count('+'), count('-'));
    assert_int_equal(stats().dirs, 3);
}

TEST(after_an_overflow_everything_is_looked_at_again)
{
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    char text[30];
    long room;

    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    room = strtol(text, NULL, 10);
    make("slurm/uid_1/job_1");
    open_tree(false);
    for (long events = 0; events <= room; events += 2) {
        make("slurm/uid_1/job_2");
        take_away("slurm/uid_1/job_2");
    }
    make("slurm/uid_1/job_3/step_0");
    take_away("slurm/uid_1/job_1");
    for (int i = 0; i < 100; i++)
        cgroup_tree_read(tree);
    assert_int_equal(stats().overflows, 1);
    assert_int_equal(stats().walks, 2);
    assert_told("+ slurm/uid_1/job_1\n"
                "+ slurm/uid_1/job_3\n"
                "- slurm/uid_1/job_1\n"
                "+ slurm/uid_1/job_3/step_0\n");
}

TEST(without_watches_walks_find_what_is_new)
{
    make("slurm/uid_1/job_1/step_0");
    watches_left = 3; /* the mount, slurm and uid_1 */
    open_tree(false);
    assert_told("+ slurm/uid_1/job_1\n+ slurm/uid_1/job_1/step_0\n");
    assert_int_equal(stats().unwatched, 2);
    make("slurm/uid_1/job_1/step_0/task_0");
    make("slurm/uid_1/job_2/step_0");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_2\n+ slurm/uid_1/job_2/step_0\n");
    cgroup_tree_walk(tree);
    assert_told("+ slurm/uid_1/job_1/step_0/task_0\n");
    watches_left = -1;
    cgroup_tree_walk(tree);
    assert_int_equal(stats().unwatched, 0);
    make("slurm/uid_1/job_1/step_0/task_1");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_1/step_0/task_1\n");
}

TEST(without_inotify_walks_do)
{
    has_inotify = false;
    open_tree(false);
    assert_int_equal(cgroup_tree_fd(tree), -1);
    cgroup_tree_read(tree);
    make("slurm/uid_1/job_1");
    cgroup_tree_walk(tree);
    assert_told("+ slurm/uid_1/job_1\n");
    take_away("slurm/uid_1/job_1");
    cgroup_tree_walk(tree);
    assert_told("- slurm/uid_1/job_1\n");
}

TEST(a_place_where_another_user_can_make_directories_is_not_looked_into)
{
    need("root");
    make("user.slice/user@1000.service/slurmstepd.scope/job_99");
    make(SCOPE "/job_1/step_0/user/task_0");
    assert_int_equal(chown(in_mount("user.slice/user@1000.service"), 1000, 1000), 0);
    assert_int_equal(chown(in_mount(SCOPE "/job_1/step_0/user/task_0"), 1000, 1000), 0);
    open_tree(true);
    make("user.slice/user@1000.service/slurmstepd.scope/job_98");
    make(SCOPE "/job_1/step_0/user/task_0/job_97");
    cgroup_tree_read(tree);
    cgroup_tree_walk(tree);
    assert_told("+ " SCOPE "/job_1\n"
                "+ " SCOPE "/job_1/step_0\n"
                "+ " SCOPE "/job_1/step_0/user\n"
                "+ " SCOPE "/job_1/step_0/user/task_0\n"
                "+ " SCOPE "/job_1/step_0/user/task_0/job_97\n");
}

TEST(directories_without_end_are_refused_and_counted)
{
    char path[200];

    make("slurm/uid_1/job_2");
    open_tree(false);
    for (int i = 0; i < CGROUP_JOB_DIRS + 10; i++) {
        snprintf(path, sizeof(path), "slurm/uid_1/job_1/step_0/x%d", i);
        make(path);
        if (i % 1000 == 0)
            cgroup_tree_read(tree);
    }
    cgroup_tree_read(tree);
    assert_int_equal(stats().refused, 11); /* the step counts too */
    assert_int_equal(count('+'), 2 + CGROUP_JOB_DIRS);
    buf_reset(&told);
    cgroup_tree_walk(tree);
    assert_int_equal(stats().refused, 11);
    assert_told("");
    make("slurm/uid_1/job_2/step_0");
    make("slurm/uid_1/job_3");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_2/step_0\n+ slurm/uid_1/job_3\n");
}

TEST(a_job_that_makes_and_removes_directories_in_a_loop_is_left_alone)
{
    make("slurm/uid_1/job_1/step_0/task_0");
    open_tree(false);
    for (int i = 0; i < CGROUP_JOB_DIRS; i++) {
        make("slurm/uid_1/job_1/step_0/task_0/x");
        cgroup_tree_read(tree);
        take_away("slurm/uid_1/job_1/step_0/task_0/x");
        cgroup_tree_read(tree);
    }
    assert_int_equal(stats().refused, 2); /* the step and the task count too */
    buf_reset(&told);
    cgroup_tree_walk(tree);
    assert_int_equal(stats().refused, 0);
    make("slurm/uid_1/job_1/step_0/task_0/y");
    cgroup_tree_read(tree);
    assert_told("+ slurm/uid_1/job_1/step_0/task_0/y\n");
}

TEST(steps_that_come_and_go_do_not_use_up_their_job)
{
    make("slurm/uid_1/job_1/step_0");
    open_tree(false);
    for (int i = 0; i < CGROUP_JOB_DIRS + 10; i++) {
        make("slurm/uid_1/job_1/step_1");
        cgroup_tree_read(tree);
        take_away("slurm/uid_1/job_1/step_1");
        cgroup_tree_read(tree);
    }
    assert_int_equal(stats().refused, 0);
}

TEST(directories_nested_without_end_are_refused_and_counted)
{
    char path[1000] = "slurm/uid_1/job_1";

    for (int i = 0; i < CGROUP_JOB_DEPTH + 3; i++)
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d%d", i);
    make(path);
    open_tree(false);
    assert_int_equal(count('+'), 1 + CGROUP_JOB_DEPTH);
    assert_int_equal(stats().refused, 1); /* what is in it is not looked at */
}

TEST(paths_too_long_for_the_kernel_are_refused_and_counted)
{
    enum { DEPTH = 20 };
    char name[256];
    int fd[DEPTH + 1];

    make("slurm/uid_1/job_1");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    fd[0] = open(in_mount("slurm/uid_1/job_1"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fd[i], name, 0755), 0);
        fd[i + 1] = openat(fd[i], name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    open_tree(false);
    assert_int_equal(stats().refused, 1);
    assert_in_range(count('+'), 15, 17);
    for (int i = DEPTH; i >= 0; i--) {
        close(fd[i]);
        if (i > 0)
            assert_int_equal(unlinkat(fd[i - 1], name, AT_REMOVEDIR), 0);
    }
}

TEST(the_end_of_a_steps_processes_is_told)
{
    make(SCOPE "/job_1/step_0/user");
    put(SCOPE "/job_1/step_0/user/cgroup.events", "populated 1\n");
    open_tree(true);
    buf_reset(&told);
    assert_int_equal(stats().unwatched, 0);
    put(SCOPE "/job_1/step_0/user/cgroup.events", "populated 0\n");
    cgroup_tree_read(tree);
    assert_contains(told.p, "! " SCOPE "/job_1/step_0/user\n");
}

TEST(processes_are_listed_where_a_layout_has_them)
{
    const struct {
        const char *path;
        bool is_v2, has_them;
    } places[] = {
        { "slurm/uid_1/job_1", false, true },
        { "slurm/uid_1/job_1/step_0", false, true },
        { "slurm/uid_1/job_1/step_0/task_0", false, true },
        { "slurm/uid_1/job_1/step_0/task_0/x", false, true },
        { "b/slurmstepd.scope/job_1", true, false },
        { "b/slurmstepd.scope/job_1/step_0", true, false },
        { "b/slurmstepd.scope/job_1/step_0/slurm", true, true },
        { "b/slurmstepd.scope/job_1/step_0/user", true, false },
        { "b/slurmstepd.scope/job_1/step_0/user/task_0", true, true },
        { "b/slurmstepd.scope/job_1/step_0/user/task_0/x", true, true },
        { "pbs/1", true, true },
        { "pbs/1/p2", true, true },
    };
    struct err err = { 0 };

    assert_int_equal(cgroup_rows_add(rows, STR("pbs=v2:pbs/{job}/p{step}"), &err), 0);
    for (size_t i = 0; i < COUNT(places); i++) {
        struct pid_list pids = { 0 };
        char path[200];
        struct cgroup_dir *dir;

        make(places[i].path);
        snprintf(path, sizeof(path), "%s/cgroup.procs", places[i].path);
        put(path, "12\n345\n");
        dir = open_tree_for(places[i].is_v2, places[i].path);
        assert_int_equal(cgroup_dir_pids(dir, &pids), 0);
        assert_int_equal(pids.n, places[i].has_them ? 2 : 0);
        if (places[i].has_them)
            assert_int_equal(pids.pid[1], 345);
        free(pids.pid);
        tree = cgroup_tree_free(tree);
    }
}

static struct cgroup_dir *open_tree_with(const char *procs)
{
    make("slurm/uid_1/job_1");
    put("slurm/uid_1/job_1/cgroup.procs", procs);
    return open_tree_for(false, "slurm/uid_1/job_1");
}

TEST(garbage_among_process_ids_is_passed_over)
{
    struct cgroup_dir *dir = open_tree_with("\n0\n1\n-2\nx3\n4x\n99999999999999999999\n"
                                            "2147483648\n2147483647\n8\r\n9");
    struct pid_list pids = { 0 };

    assert_int_equal(cgroup_dir_pids(dir, &pids), 0);
    assert_int_equal(pids.n, 3);
    assert_int_equal(pids.pid[0], 1);
    assert_int_equal(pids.pid[1], 2147483647);
    assert_int_equal(pids.pid[2], 9);
    free(pids.pid);
}

static char *many_pids(size_t n)
{
    char *text = heap_array(n, 9), *to = text;

    for (size_t i = 1; i <= n; i++)
        to += snprintf(to, 9, "%zu\n", i);
    return text;
}

TEST(large_lists_are_appended_whole_up_to_their_ceiling)
{
    char *text = many_pids(10000);
    struct cgroup_dir *dir = open_tree_with(text);
    struct pid_list pids = { 0 };

    assert_int_equal(cgroup_dir_pids(dir, &pids), 0);
    assert_int_equal(cgroup_dir_pids(dir, &pids), 0);
    assert_int_equal(pids.n, 20000);
    for (size_t i = 0; i < pids.n; i++)
        assert_int_equal(pids.pid[i], i % 10000 + 1);
    free(text);

    text = many_pids(CGROUP_DIR_PIDS + 5);
    put("slurm/uid_1/job_1/cgroup.procs", text);
    pids.n = 1;
    assert_int_equal(cgroup_dir_pids(dir, &pids), -EFBIG);
    assert_int_equal(pids.n, 1 + CGROUP_DIR_PIDS);
    free(text);
    free(pids.pid);
}

TEST(a_directory_without_its_file_has_gone)
{
    struct pid_list pids = { 0 };
    struct cgroup_dir *dir;

    make("slurm/uid_1/job_1");
    dir = open_tree_for(false, "slurm/uid_1/job_1");
    assert_int_equal(cgroup_dir_pids(dir, &pids), -ENODEV);
    assert_int_equal(pids.n, 0);
    free(pids.pid);
}

static int next_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

TEST(directories_of_jobs_take_no_descriptors)
{
    struct pid_list pids = { 0 };
    char path[100];
    int next;

    for (int i = 0; i < 60; i++) {
        snprintf(path, sizeof(path), "slurm/uid_1/job_1/step_0/task_%d", i);
        make(path);
        snprintf(path, sizeof(path), "slurm/uid_1/job_1/step_0/task_%d/cgroup.procs", i);
        put(path, "17\n");
    }
    next = next_descriptor();
    open_tree_for(false, "slurm/uid_1/job_1/step_0/task_59");
    for (struct cgroup_dir *dir = found->parent->first_child; dir; dir = dir->next_sibling)
        assert_int_equal(cgroup_dir_pids(dir, &pids), 0);
    assert_int_equal(pids.n, 60);
    assert_int_equal(next_descriptor(), next + 1); /* for inotify */
    free(pids.pid);
}

TEST(a_mount_that_is_not_there_is_an_error_with_its_path)
{
    struct err err = { 0 };

    assert_int_equal(cgroup_tree_new("/no/such", false, rows, &events, &tree, &err), -ENOENT);
    assert_contains(err.text, "/no/such");
    assert_int_equal(cgroup_tree_new("/dev/null", false, rows, &events, &tree, &err), -ENOTDIR);
    assert_contains(err.text, "/dev/null");
    assert_null(tree);
}

/* The real hierarchies. */

static pid_t child;
static bool is_real;

static void use_real_mount(bool is_v2)
{
    struct cgroup_mounts mounts;
    struct err err;

    need("root");
    need(is_v2 ? "cgroup-v2" : "cgroup-v1");
    assert_int_equal(cgroup_mounts_read("/proc", "/sys", &mounts, &err), 0);
    snprintf(mount, sizeof(mount), "%s/sonde-test-%d",
             is_v2 ? mounts.unified : mounts.controller[CGROUP_FREEZER], (int)getpid());
    assert_int_equal(mkdir(mount, 0755), 0);
    is_real = true;
}

static void start_child(void)
{
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_true(child > 0);
}

static void end_child(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    child = 0;
}

static void move_child(const char *path)
{
    char full[400], pid[20];

    snprintf(full, sizeof(full), "%s/cgroup.procs", path);
    snprintf(pid, sizeof(pid), "%d\n", (int)child);
    put(full, pid);
}

static size_t pids_in(struct cgroup_dir *dir)
{
    struct pid_list pids = { 0 };
    size_t n;

    assert_int_equal(cgroup_dir_pids(dir, &pids), 0);
    n = pids.n;
    if (n)
        assert_int_equal(pids.pid[0], child);
    free(pids.pid);
    return n;
}

/* However soon it is read again. */
static void check_real_processes(bool is_v2, const char *path)
{
    struct pid_list pids = { 0 };
    struct cgroup_dir *dir;

    make(path);
    dir = open_tree_for(is_v2, path);
    assert_int_equal(stats().unwatched, 0);
    assert_int_equal(pids_in(dir), 0);
    start_child();
    move_child(path);
    assert_int_equal(pids_in(dir), 1);
    assert_int_equal(pids_in(dir), 1);
    end_child();
    assert_int_equal(pids_in(dir), 0);
    take_away(path);
    assert_int_equal(cgroup_dir_pids(dir, &pids), -ENODEV);
    cgroup_tree_read(tree);
    free(pids.pid);
}

TEST(processes_of_a_real_cgroup_of_v1_are_told_as_they_are)
{
    use_real_mount(false);
    check_real_processes(false, "slurm/uid_1/job_7/step_0/task_0");
}

TEST(processes_of_a_real_cgroup_of_v2_are_told_as_they_are)
{
    use_real_mount(true);
    check_real_processes(true, SCOPE "/job_7/step_0/user/task_0");
}

static void wait_for(const char *what)
{
    struct pollfd poll_fd = { .fd = cgroup_tree_fd(tree), .events = POLLIN };

    while (!told.n || str_find_str(buf_str(&told), str_of(what)) == told.n) {
        if (poll(&poll_fd, 1, 10000) != 1)
            fail_msg("waited for \"%s\", got \"%s\"", what, told.n ? told.p : "");
        cgroup_tree_read(tree);
    }
}

TEST(directories_of_real_cgroups_come_and_go)
{
    use_real_mount(false);
    open_tree(false);
    make("slurm_c1/uid_1/job_7/step_0");
    wait_for("+ slurm_c1/uid_1/job_7/step_0\n");
    make("slurm_c1/uid_1/job_7/step_1/task_0");
    wait_for("+ slurm_c1/uid_1/job_7/step_1/task_0\n");
    take_away("slurm_c1/uid_1/job_7/step_1/task_0");
    take_away("slurm_c1/uid_1/job_7/step_1");
    wait_for("- slurm_c1/uid_1/job_7/step_1\n");
    buf_reset(&told);
    cgroup_tree_walk(tree);
    assert_told("");
    assert_int_equal(stats().dirs, 5);
}

TEST(the_end_of_a_real_steps_processes_is_told_by_v2)
{
    use_real_mount(true);
    make(SCOPE "/job_7/step_0/user/task_0");
    start_child();
    open_tree(true);
    buf_reset(&told);
    move_child(SCOPE "/job_7/step_0/user/task_0");
    wait_for("! " SCOPE "/job_7/step_0/user\n");
    buf_reset(&told);
    end_child();
    wait_for("! " SCOPE "/job_7/step_0/user\n");
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)status;
    (void)ftw;
    return flag == FTW_DP ? rmdir(path) : 0;
}

static void begin(void)
{
    snprintf(mount, sizeof(mount), "%s", test_dir());
    is_real = false;
    watches_left = -1;
    has_inotify = true;
    rows = cgroup_rows_new();
    buf_init(&told, 16 << 20);
}

static void end(void)
{
    end_child();
    tree = cgroup_tree_free(tree);
    rows = cgroup_rows_free(rows);
    buf_free(&told);
    if (is_real)
        assert_int_equal(nftw(mount, remove_one, 64, FTW_DEPTH | FTW_PHYS), 0);
}

FIXTURE(begin, end)
