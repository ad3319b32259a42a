/* SPDX-License-Identifier: GPL-2.0-or-later */
/* With copies of this program that run as slurmstepd, or pretend to. */
#include "test.h"

#include "base/arena.h"
#include "files.h"
#include "source/stepd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };

static struct proc *proc;

static const char title[] = "slurmstepd: [123.batch]";

TEST(titles_are_read)
{
    static const struct {
        struct str title;
        const char *job, *step; /* NULL: none */
    } cases[] = {
        { STR_INIT("slurmstepd: [123.batch]"), "123", "batch" },
        { STR_INIT("slurmstepd: [123.batch]   "), "123", "batch" },
        { STR_INIT("slurmstepd: [4294967295.extern stepmgr]"), "4294967295", "extern" },
        { STR_INIT("slurmstepd: [7.interactive]"), "7", "interactive" },
        { STR_INIT("slurmstepd: [7.0]"), "7", "0" },
        { STR_INIT("slurmstepd: [7.0+1]"), "7", "0+1" },
        { STR_INIT("slurmstepd infinity"), NULL, NULL },
        { STR_INIT("slurmstepd: "), NULL, NULL },
        { STR_INIT("slurmstepd: ["), NULL, NULL },
        { STR_INIT("slurmstepd: []"), NULL, NULL },
        { STR_INIT("slurmstepd: [.]"), NULL, NULL },
        { STR_INIT("slurmstepd: [7]"), NULL, NULL },
        { STR_INIT("slurmstepd: [7.]"), NULL, NULL },
        { STR_INIT("slurmstepd: [.batch]"), NULL, NULL },
        { STR_INIT("slurmstepd: [7.batch"), NULL, NULL },
        { STR_INIT("slurmstepd: [7.batch] "), "7", "batch" },
        { STR_INIT("slurmstepd: [7.batch]x"), NULL, NULL },
        { STR_INIT("slurmstepd: [7x.batch]"), NULL, NULL },
        { STR_INIT("slurmstepd: [-7.batch]"), NULL, NULL },
        { STR_INIT("slurmstepd: [7.ba/tch]"), NULL, NULL },
        { STR_INIT("slurmstepd: [7.\"]"), NULL, NULL },
        { STR_INIT("slurmstepd: [7.b\0]"), NULL, NULL },
        { STR_INIT("slurmstepd: [12345678901234567890123456789012.batch]"), NULL, NULL },
        { STR_INIT("xslurmstepd: [7.batch]"), NULL, NULL },
        { STR_INIT(""), NULL, NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct stepd stepd = { .job = "before" };

        if (stepd_title_parse(cases[i].title, &stepd) != !!cases[i].job)
            fail_msg("%.*s", STR_ARG(cases[i].title));
        assert_string_equal(stepd.job, cases[i].job ? cases[i].job : "before");
        if (cases[i].step)
            assert_string_equal(stepd.step, cases[i].step);
    }
}

TEST(the_node_stands_in_the_name_of_the_socket)
{
    static const struct {
        struct str path;
        const char *node; /* NULL: none */
    } cases[] = {
        { STR_INIT("/var/spool/slurmd/c1_123.4294967291"), "c1" },
        { STR_INIT("/var/spool/slurmd/c1/gpu_node_7_123.0"), "gpu_node_7" },
        { STR_INIT("/var/spool/slurmd/c1_123.0.1"), "c1" },
        { STR_INIT("/var/spool/slurmd/c1_1234.0"), NULL },
        { STR_INIT("/var/spool/slurmd/c1_0123.0"), NULL },
        { STR_INIT("/var/spool_123.0/slurmd"), NULL },
        { STR_INIT("/_123.0"), NULL },
        { STR_INIT("c1_123.0"), NULL },
        { STR_INIT("@/c1"), NULL },
        { STR_INIT(""), NULL },
        { STR_INIT("/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_123.0"),
          NULL },
    };
    struct str node;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (stepd_socket_parse(cases[i].path, "123", &node) != !!cases[i].node)
            fail_msg("%.*s", STR_ARG(cases[i].path));
        if (cases[i].node)
            assert_str(node, cases[i].node);
    }
}

static void wait_for_end(void)
{
    char byte;

    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    _exit(0);
}

static void tell(pid_t pid)
{
    if (write(STDOUT_FILENO, &pid, sizeof(pid)) != sizeof(pid))
        _exit(1);
}

static int listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
        return -1;
    return fd;
}

/* What a copy does, by its first argument. */
static void act(const char *role, const char *argument)
{
    pid_t pid;

    if (strcmp(role, "listen") == 0 && listen_at(argument) < 0)
        _exit(1);
    if (strcmp(role, "lower") == 0 && seteuid(NOBODY) < 0)
        _exit(1);
    if (strcmp(role, "fork") == 0 || strcmp(role, "task") == 0) {
        pid = fork();
        if (pid == 0 && strcmp(role, "task") == 0)
            execl(argument, "task", "wait", NULL);
        if (pid == 0)
            wait_for_end();
        tell(pid);
    }
    tell(getpid());
    wait_for_end();
}

struct copy {
    const char *name; /* of the program; NULL: slurmstepd */
    const char *role, *argument;
    int n_told; /* process ids, when all is ready; 0: one */
    uint32_t uid;
    mode_t mode; /* 0: 0755 */
};

struct running {
    pid_t pid, child; /* of the copy, and its own */
    int end, told;
};

static void copy_program(const char *path, mode_t mode)
{
    write_bytes(path, read_file("/proc/self/exe"));
    assert_int_equal(chmod(path, mode ? mode : 0755), 0);
}

static struct running run(struct copy copy)
{
    struct running running = { 0 };
    int input[2], output[2];
    const char *path = test_path("%s", copy.name ? copy.name : "slurmstepd");
    pid_t told;

    copy_program(path, copy.mode);
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    running.pid = fork();
    if (running.pid == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        if (copy.uid && setresuid(copy.uid, copy.uid, copy.uid) < 0)
            _exit(1);
        execl(path, title, copy.role ? copy.role : "wait", copy.argument, NULL);
        _exit(1);
    }
    close(input[0]);
    close(output[1]);
    running.end = input[1];
    running.told = output[0];
    running.child = running.pid;
    for (int i = 0; i < (copy.n_told ? copy.n_told : 1); i++) {
        assert_int_equal(read(running.told, &told, sizeof(told)), sizeof(told));
        if (told != running.pid)
            running.child = told;
    }
    return running;
}

static void stop(struct running running)
{
    close(running.end);
    close(running.told);
    kill(running.pid, SIGKILL);
    if (running.child != running.pid)
        kill(running.child, SIGKILL);
    waitpid(running.pid, NULL, 0);
}

static bool is_stepd(pid_t pid, uint32_t uid)
{
    struct stepd stepd;

    return stepd_read(proc, pid, uid, &stepd);
}

TEST(a_slurmstepd_is_known_by_its_title)
{
    struct running running;
    struct proc_stat stat;
    struct stepd stepd;

    need("ptrace");
    running = run((struct copy){ 0 });
    assert_true(stepd_read(proc, running.pid, 0, &stepd));
    assert_int_equal(stepd.pid, running.pid);
    assert_string_equal(stepd.job, "123");
    assert_string_equal(stepd.step, "batch");
    assert_string_equal(stepd.node, "");
    assert_true(proc_stat(proc, running.pid, &stat));
    assert_int_equal(stepd.start_ticks, stat.start_ticks);
    assert_false(is_stepd(running.pid, NOBODY));
    stop(running);
    assert_false(is_stepd(running.pid, 0));
}

TEST(its_program_may_have_debians_name_or_be_replaced)
{
    struct running running;

    need("ptrace");
    running = run((struct copy){ .name = "slurmstepd-wlm" });
    assert_true(is_stepd(running.pid, 0));
    assert_int_equal(unlink(test_path("slurmstepd-wlm")), 0);
    assert_true(is_stepd(running.pid, 0));
    stop(running);
}

TEST(another_program_with_that_title_is_refused)
{
    static const char *const names[] = { "slurmstepdx", "notslurmstepd", "slurmstepd (deleted)x" };

    need("ptrace");
    for (size_t i = 0; i < COUNT(names); i++) {
        struct running running = run((struct copy){ .name = names[i] });

        assert_false(is_stepd(running.pid, 0));
        stop(running);
    }
}

TEST(a_users_process_with_that_name_and_title_is_refused)
{
    struct running running;

    need("ptrace");
    need("root");
    running = run((struct copy){ .uid = NOBODY });
    assert_false(is_stepd(running.pid, 0));
    /* Where slurmd itself runs as that user, it would be right. */
    assert_true(is_stepd(running.pid, NOBODY));
    stop(running);
}

TEST(a_set_uid_program_that_a_user_starts_is_refused)
{
    struct running running;
    struct proc_uids uids;

    need("ptrace");
    need("set-uid");
    running = run((struct copy){ .uid = NOBODY, .mode = 04755 });
    assert_true(proc_uids(proc, running.pid, &uids));
    assert_int_equal(uids.effective, 0);
    assert_false(is_stepd(running.pid, 0));
    assert_false(is_stepd(running.pid, NOBODY));
    stop(running);
}

TEST(it_may_act_for_the_user_for_a_while)
{
    struct running running;

    need("ptrace");
    need("root");
    running = run((struct copy){ .role = "lower" });
    assert_true(is_stepd(running.pid, 0));
    stop(running);
}

TEST(a_task_that_is_not_yet_one_is_refused)
{
    struct running running;

    need("ptrace");
    running = run((struct copy){ .role = "fork", .n_told = 2 });
    assert_true(is_stepd(running.pid, 0));
    assert_int_not_equal(running.child, running.pid);
    assert_false(is_stepd(running.child, 0));
    stop(running);
}

TEST(its_node_is_that_of_its_own_socket)
{
    const char *own = test_path("c7_123.4294967291");
    struct running running;
    struct stepd stepd;
    int fd;

    need("ptrace");
    fd = listen_at(test_path("forged_123.4294967291"));
    assert_true(fd >= 0);
    running = run((struct copy){ .role = "listen", .argument = own });
    assert_true(stepd_read(proc, running.pid, 0, &stepd));
    assert_string_equal(stepd.node, "c7");
    stop(running);
    close(fd);
}

TEST(the_one_above_a_task_is_found)
{
    const char *task = test_path("task");
    struct running running;
    struct stepd stepd;

    need("ptrace");
    copy_program(task, 0);
    running = run((struct copy){ .role = "task", .argument = task, .n_told = 3 });
    assert_true(stepd_above(proc, running.child, 0, &stepd));
    assert_int_equal(stepd.pid, running.pid);
    assert_false(stepd_above(proc, running.pid, 0, &stepd));
    assert_false(stepd_above(proc, 1, 0, &stepd));
    stop(running);
}

TEST(all_of_the_host_are_found)
{
    struct running first, other;
    struct stepds stepds = { 0 };
    struct err err;
    int found = 0;

    need("ptrace");
    need("root");
    first = run((struct copy){ 0 });
    other = run((struct copy){ .name = "slurmstepd-user", .uid = NOBODY });
    for (int i = 0; i < 2; i++)
        assert_int_equal(stepds_find(proc, 0, &stepds, &err), 0);
    for (size_t i = 0; i < stepds.n; i++) {
        found += stepds.item[i].pid == first.pid;
        assert_int_not_equal(stepds.item[i].pid, other.pid);
    }
    assert_int_equal(found, 1);
    stop(other);
    stop(first);
    free(stepds.item);
}

static void set_up(void)
{
    struct err err;

    put_dir_on_disk();
    assert_int_equal(proc_open("/proc", &proc, &err), 0);
}

static void tear_down(void)
{
    proc = proc_close(proc);
}

FIXTURE(set_up, tear_down)

/* Copies of this program are started as a slurmstepd or a task. */
void test_child_main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[0], title) == 0 || strcmp(argv[0], "task") == 0))
        act(argv[1], argv[2]);
}
