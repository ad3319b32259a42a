/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel tells of a cgroup of v1 that runs out of memory, or goes. On the real one. */
#include "test.h"

#include "source/oom_notices.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20, MEBIBYTE = 1 << 20 };

struct fixture {
    struct cgroup_mounts mounts;
    char name[32], path[512];
};

static struct fixture *fixture;

static void set_up(void)
{
    struct err err;

    need("root");
    need("cgroup-v1");
    fixture = heap_alloc(sizeof(*fixture));
    assert_int_equal(cgroup_mounts_read("/proc", "/sys", &fixture->mounts, &err), 0);
    snprintf(fixture->name, sizeof(fixture->name), "sonde_notices_%d", (int)getpid());
    snprintf(fixture->path, sizeof(fixture->path), "%s/%s",
             fixture->mounts.controller[CGROUP_MEMORY], fixture->name);
}

static void tear_down(void)
{
    rmdir(fixture->path);
    free(fixture);
}

FIXTURE(set_up, tear_down)

static void make_directory(void)
{
    if (mkdir(fixture->path, 0755) < 0)
        fail_msg("cannot make %s: %s", fixture->path, err_words(errno));
}

static void write_to(const char *file, const char *text)
{
    char path[600];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", fixture->path, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        fail_msg("cannot write to %s: %s", path, err_words(errno));
    close(fd);
}

/* A child in there that holds more than it may, and is killed. */
static void run_out(void)
{
    int status;
    pid_t pid;

    write_to("memory.limit_in_bytes", "8M");
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *memory =
            mmap(NULL, 64 * MEBIBYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        write_to("cgroup.procs", "0");
        for (size_t i = 0; i < 64 * MEBIBYTE; i += 4096)
            memory[i] = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A process leaves its cgroup a little after its end. */
static void remove_directory(void)
{
    while (rmdir(fixture->path) < 0 && errno == EBUSY)
        poll(NULL, 0, 1);
}

TEST(a_directory_that_goes_has_not_run_out)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct oom_notices notices;

        make_directory();
        oom_notices_open(&fixture->mounts, str_of(fixture->name), NULL, &notices);
        assert_true(oom_notices_watch_end(&notices));
        assert_false(oom_notices_watch_end(&notices));
        assert_true(notices.out_of_memory >= 0);
        assert_false(oom_notices_any(&notices));
        remove_directory();
        while (!notices.n_ended) {
            assert_false(oom_notices_any(&notices));
            poll(&(struct pollfd){ notices.end, POLLIN, 0 }, 1, 0);
        }
        oom_notices_close(&notices);
    }
}

TEST(one_that_ran_out_is_noticed)
{
    struct oom_notices notices;

    make_directory();
    oom_notices_open(&fixture->mounts, str_of(fixture->name), NULL, &notices);
    run_out();
    assert_true(oom_notices_any(&notices));
    remove_directory();
    assert_true(oom_notices_any(&notices));
    oom_notices_close(&notices);
}

TEST(without_a_watch_a_directory_that_goes_has_not_run_out_either)
{
    struct oom_notices notices;

    make_directory();
    oom_notices_open(&fixture->mounts, str_of(fixture->name), NULL, &notices);
    remove_directory();
    wait_until_true(oom_notices_any(&notices) || notices.n_told);
    assert_false(oom_notices_any(&notices));
    oom_notices_close(&notices);
}

TEST(without_a_watch_one_that_ran_out_is_noticed_when_the_kernel_has_told_of_both)
{
    struct oom_notices notices;

    make_directory();
    oom_notices_open(&fixture->mounts, str_of(fixture->name), NULL, &notices);
    run_out();
    remove_directory();
    wait_until_true(oom_notices_any(&notices));
    oom_notices_close(&notices);
}

TEST(one_that_ran_out_is_noticed_after_its_directory_has_gone)
{
    struct oom_notices notices;

    make_directory();
    oom_notices_open(&fixture->mounts, str_of(fixture->name), NULL, &notices);
    oom_notices_watch_end(&notices);
    run_out();
    remove_directory();
    for (int i = 0; i < ROUNDS && !notices.has_run_out; i++) /* the kernel takes its time */
        oom_notices_any(&notices);
    assert_true(oom_notices_any(&notices));
    oom_notices_close(&notices);
}
