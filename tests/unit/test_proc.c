/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On directories that look like /proc, and on the real one. */
#include "test.h"

#include "base/pattern.h"
#include "count_allocations.h"
#include "files.h"
#include "source/pid_list.h"
#include "source/proc_text.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NOBODY = 65534, GONE = 999999999 };

static const struct proc_units units = { .tick_ns = 10000000, .page_bytes = 4096 };

static struct proc *open_proc(const char *path)
{
    struct proc *proc;
    struct err err;

    if (proc_open(path, &proc, &err) < 0)
        fail_msg("%s", err.text);
    return proc;
}

static void put_file(int pid, const char *name, struct str text)
{
    write_bytes(test_path("%d/%s", pid, name), text);
}

/* A child that says when it is ready, and then waits for its end. */
struct child {
    pid_t pid;
    int end;
};

static struct child start(void (*prepare)(void *ctx), void *ctx)
{
    int ready[2], end[2];
    struct child child;
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    child.pid = fork();
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        close(end[1]);
        if (prepare)
            prepare(ctx);
        close(ready[1]);
        while (read(end[0], &byte, 1) > 0)
            continue;
        _exit(0);
    }
    close(ready[1]);
    close(end[0]);
    while (read(ready[0], &byte, 1) > 0)
        continue;
    close(ready[0]);
    child.end = end[1];
    return child;
}

static void stop(struct child child)
{
    kill(child.pid, SIGKILL);
    close(child.end);
    waitpid(child.pid, NULL, 0);
}

/* Runs a check as a user without rights: it returns 0, or the line that failed. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

static int as_nobody(int (*check)(pid_t root), pid_t root)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(255);
        _exit(check(root) & 255);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ticks_and_pages_become_nanoseconds_and_bytes)
{
    struct proc_stat stat;

    assert_true(proc_stat_parse(
        STR("15522 (python3) R 100 15520 7042 0 -1 4194304 1387 63 2 0 36 9 7 2 20 0 9 0 1223828 "
            "620118016 2630 18446744073709551615 4321280 7148169 140723782267360 0 0 0 0 16781312 "
            "2 0 0 0 17 1 0 0 0 0 0 9723336 11027064 76500992 140723782269564 140723782269583 "
            "140723782269583 140723782270951 0\n"),
        &units, &stat));
    assert_string_equal(stat.comm, "python3");
    assert_int_equal(stat.state, 'R');
    assert_false(stat.is_exiting);
    assert_int_equal(stat.parent, 100);
    assert_int_equal(stat.threads, 9);
    assert_int_equal(stat.cpu_ns, 45 * units.tick_ns);
    assert_int_equal(stat.user_ns, 36 * units.tick_ns);
    assert_int_equal(stat.reaped_cpu_ns, 9 * units.tick_ns);
    assert_int_equal(stat.reaped_user_ns, 7 * units.tick_ns);
    assert_int_equal(stat.start_ticks, 1223828);
    assert_int_equal(stat.resident_bytes, 2630 * 4096);
}

TEST(a_process_may_be_called_anything)
{
    static const char *const names[] = { "a b",           "x) R 1 (y",
                                         ") S 1 1 1 1 1", "",
                                         "((((",          "a\nb",
                                         "\xff\x1b[2J)",  "kworker/u64:0-ext4-rsv-conversion" };
    char text[300];
    struct proc_stat stat;

    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(text, sizeof(text), "5 (%s) S 3 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1000 9 1 1",
                 names[i]);
        assert_true(proc_stat_parse(str_of(text), &units, &stat));
        assert_str(str_head(str_of(names[i]), USAGE_COMM - 1), stat.comm);
        assert_int_equal(stat.parent, 3);
        assert_int_equal(stat.threads, 2);
        assert_int_equal(stat.start_ticks, 77);
    }
}

TEST(a_main_thread_that_has_ended_is_no_living_thread)
{
    static const struct {
        char state;
        unsigned threads, living;
    } cases[] = { { 'Z', 1, 0 }, { 'Z', 4, 3 }, { 'X', 0, 0 }, { 'S', 1, 1 }, { 'D', 4, 4 } };
    char text[200];
    struct proc_stat stat;

    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof(text), "5 (a) %c 3 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 %u 0 77 0 0 1 1",
                 cases[i].state, cases[i].threads);
        assert_true(proc_stat_parse(str_of(text), &units, &stat));
        assert_int_equal(stat.threads, cases[i].living);
    }
}

TEST(a_garbled_stat_is_refused)
{
    static const char *const texts[] = {
        "",
        "\n",
        "205",
        "205 (x",
        "205 x)",
        ")(",
        "205 (x)",
        "205 (x) ",
        "205 (x) S",
        "205 (x) S 100",
        "205 (x) S 100 1 x 1 1",
        "205 (x) SS 100 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "205 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1000",
        "205 (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1000 ",
        "205 (x) S 1 1 1 0 - 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1000 9",
        "205 (x) S 1 1 1 0 -1 0 1 2 3 4 99999999999999999999 6 7 8 20 0 2 0 77 1000 9",
    };
    struct proc_stat stat = { .threads = 7 };

    for (size_t i = 0; i < COUNT(texts); i++)
        if (proc_stat_parse(str_of(texts[i]), &units, &stat))
            fail_msg("\"%s\" was taken", texts[i]);
    assert_int_equal(stat.threads, 7);
}

static void name_oddly(void *ctx)
{
    (void)ctx;
    prctl(PR_SET_NAME, "odd)\n (name");
}

TEST(a_real_process_is_read)
{
    struct proc *proc = open_proc("/proc");
    struct child child = start(name_oddly, NULL);
    struct proc_stat stat, again;
    struct proc_uids uids;

    assert_true(proc_stat(proc, child.pid, &stat));
    assert_string_equal(stat.comm, "odd)\n (name");
    assert_int_equal(stat.pid, child.pid);
    assert_int_equal(stat.parent, getpid());
    assert_int_equal(stat.threads, 1);
    assert_true(stat.resident_bytes > 0);
    assert_true(stat.start_ticks > 0);
    assert_true(proc_stat(proc, child.pid, &again));
    assert_int_equal(stat.start_ticks, again.start_ticks);
    assert_true(proc_uids(proc, child.pid, &uids));
    assert_int_equal(uids.real, getuid());
    assert_int_equal(uids.saved, getuid());
    stop(child);
    assert_false(proc_stat(proc, child.pid, &stat));
    assert_false(proc_uids(proc, child.pid, &uids));
    proc_close(proc);
}

TEST(io_is_read_as_the_kernel_writes_it)
{
    static const char *const garbled[] = { "", "rchar: 1\n", "rchar: 1\nwchar: x\n",
                                           "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\n"
                                           "write_bytes: many\n",
                                           "rchar: 99999999999999999999\nwchar: 2\n" };
    struct io_use io;

    assert_true(proc_io_parse(STR("rchar: 741806\nwchar: 309\nsyscr: 396\nsyscw: 1\n"
                                  "read_bytes: 28672\nwrite_bytes: 4096\n"
                                  "cancelled_write_bytes: 0\n"),
                              &io));
    assert_int_equal(io.read_chars, 741806);
    assert_int_equal(io.write_chars, 309);
    assert_int_equal(io.reads, 396);
    assert_int_equal(io.writes, 1);
    assert_int_equal(io.read_bytes, 28672);
    assert_int_equal(io.write_bytes, 4096);
    for (size_t i = 0; i < COUNT(garbled); i++)
        if (proc_io_parse(str_of(garbled[i]), &io))
            fail_msg("\"%s\" was taken", garbled[i]);
}

static int nothing_of_roots_can_be_read(pid_t root)
{
    struct proc *proc;
    struct proc_files *files = proc_files_new(NULL);
    char value[10];
    struct proc_variable variable = { "PATH", value, sizeof(value) };
    struct proc_stat stat;
    struct io_use io;

    CHECK(proc_open("/proc", &proc, NULL) == 0);
    CHECK(proc_sight(proc) == PROC_SEES_ALL);
    CHECK(proc_stat(proc, root, &stat));
    CHECK(proc_io(proc, root, &io) == -EACCES);
    CHECK(proc_io_of_thread(proc, root, root, &io) == -EACCES);
    CHECK(proc_io_of_threads(proc, root, &io, NULL) == -EACCES);
    CHECK(proc_environ(proc, root, &variable, 1) == -EACCES);
    CHECK(proc_files_add(files, proc, root) == -EACCES);
    proc_files_free(files);
    proc_close(proc);
    return 0;
}

TEST(why_a_process_cannot_be_read_is_told)
{
    struct proc *proc = open_proc("/proc"), *recorded = open_proc(test_dir());
    char value[10];
    struct proc_variable variable = { "PATH", value, sizeof(value) };
    struct proc_files *files = proc_files_new(NULL);
    struct io_use io;

    assert_int_equal(proc_io(proc, GONE, &io), -ESRCH);
    assert_int_equal(proc_io_of_thread(proc, GONE, GONE, &io), -ESRCH);
    assert_int_equal(proc_io_of_threads(proc, GONE, &io, NULL), -ESRCH);
    assert_int_equal(proc_environ(proc, GONE, &variable, 1), -ESRCH);
    assert_int_equal(proc_files_add(files, proc, GONE), -ESRCH);
    put_file(7, "stat", STR("7 (a) S"));
    assert_int_equal(proc_io(recorded, 7, &io), -ENOENT);
    put_file(7, "io", STR("nothing"));
    assert_int_equal(proc_io(recorded, 7, &io), -EBADMSG);
    assert_int_equal(proc_sight(recorded), PROC_READS_ALL);
    proc_files_free(files);
    proc_close(recorded);
    proc_close(proc);
}

TEST(an_ordinary_user_may_read_nothing_of_roots)
{
    need("root");
    assert_int_equal(as_nobody(nothing_of_roots_can_be_read, getpid()), 0);
}

static void become_nobody(void *ctx)
{
    (void)ctx;
    if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(1);
}

TEST(whether_others_can_be_read_is_known_beforehand)
{
    struct child child;
    struct proc *proc;
    struct io_use io;

    need("root");
    proc = open_proc("/proc");
    child = start(become_nobody, NULL);
    assert_int_equal(proc_io(proc, child.pid, &io),
                     proc_sight(proc) == PROC_READS_ALL ? 0 : -EACCES);
    stop(child);
    proc_close(proc);
}

static int others_are_hidden(pid_t root)
{
    struct proc *proc;
    struct proc_stat stat;
    struct io_use io;

    CHECK(proc_open(test_dir(), &proc, NULL) == 0);
    CHECK(proc_sight(proc) == PROC_SEES_OWN);
    CHECK(!proc_stat(proc, root, &stat));
    CHECK(proc_io(proc, root, &io) == -ESRCH);
    CHECK(proc_stat(proc, getpid(), &stat));
    proc_close(proc);
    return 0;
}

/* In a pid namespace of its own, because older kernels keep hidepid there and not with the mount.
 */
static int look_at_hidden(void)
{
    pid_t pid;
    int status;

    CHECK(unshare(CLONE_NEWNS | CLONE_NEWPID) == 0);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL); /* in a chroot it is no mount, and fails */
    pid = fork();
    if (pid == 0) {
        if (mount("proc", test_dir(), "proc", 0, "hidepid=2") < 0)
            _exit(254);
        status = as_nobody(others_are_hidden, 1);
        umount(test_dir()); /* others see it too if it could not be made private */
        _exit(status);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 253;
}

TEST(a_proc_that_hides_others_is_noticed)
{
    pid_t pid;
    int status;

    need("root");
    need("namespaces");
    test_dir(); /* which the child mounts upon */
    pid = fork();
    if (pid == 0)
        _exit(look_at_hidden());
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void write_some(size_t n)
{
    int ends[2];
    char bytes[4096] = { 0 };

    if (n > sizeof(bytes) || pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], bytes, n) != (ssize_t)n)
        _exit(1);
    close(ends[0]);
    close(ends[1]);
}

static pthread_barrier_t barrier;

static void *write_and_end(void *ctx)
{
    (void)ctx;
    write_some(20);
    return NULL;
}

static void *write_and_live(void *ctx)
{
    (void)ctx;
    write_some(300);
    pthread_barrier_wait(&barrier);
    pause();
    return NULL;
}

static void write_in_threads(void *ctx)
{
    pthread_t ended, living;

    (void)ctx;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&ended, NULL, write_and_end, NULL);
    pthread_join(ended, NULL);
    pthread_create(&living, NULL, write_and_live, NULL);
    pthread_barrier_wait(&barrier);
    write_some(1);
}

TEST(what_threads_did_is_told_from_what_the_process_did)
{
    struct proc *proc = open_proc("/proc");
    struct child child = start(write_in_threads, NULL);
    struct io_use io;

    assert_int_equal(proc_io(proc, child.pid, &io), 0);
    assert_int_equal(io.write_chars, 321);
    assert_int_equal(io.writes, 3);
    assert_int_equal(proc_io_of_threads(proc, child.pid, &io, NULL), 0);
    assert_int_equal(io.write_chars, 301);
    assert_int_equal(proc_io_of_thread(proc, child.pid, child.pid, &io), 0);
    assert_int_equal(io.write_chars, 1);
    stop(child);
    proc_close(proc);
}

static int main_thread_ended; /* the end of a pipe that tells it */

static void *wait_for_main_thread(void *ctx)
{
    struct proc *proc;
    struct proc_stat stat = { 0 };

    (void)ctx;
    write_some(300);
    if (proc_open("/proc", &proc, NULL) < 0)
        _exit(1);
    while (stat.state != 'Z')
        proc_stat(proc, getpid(), &stat);
    close(main_thread_ended);
    pause();
    return NULL;
}

/* The files of a process whose memory is gone are those of the machine's root. */
TEST(a_main_thread_that_has_ended_does_not_count)
{
    struct proc *proc;
    int ends[2];
    struct proc_stat stat;
    struct io_use io;
    pthread_t thread;
    char byte;
    pid_t pid;

    need("root");
    need("ptrace");
    proc = open_proc("/proc");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        main_thread_ended = ends[1];
        write_some(4000);
        pthread_create(&thread, NULL, wait_for_main_thread, NULL);
        pthread_exit(NULL);
    }
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0)
        continue;
    assert_true(proc_stat(proc, pid, &stat));
    assert_int_equal(stat.threads, 1);
    assert_int_equal(proc_io(proc, pid, &io), 0);
    assert_int_equal(io.write_chars, 4300);
    assert_int_equal(proc_io_of_threads(proc, pid, &io, NULL), 0);
    assert_int_equal(io.write_chars, 300);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    proc_close(proc);
}

enum { RANDOMIZED = 0x400000, EXITING = 0x4 }; /* flags of a thread */

static void put_thread(int thread, unsigned flags, unsigned written)
{
    char name[64], text[200];

    snprintf(name, sizeof(name), "task/%d/stat", thread);
    snprintf(text, sizeof(text), "%d (a) R 3 1 1 0 -1 %u 1 2 3 4 5 6 7 8 20 0 3 0 77 1000 9 1 1",
             thread, flags);
    put_file(7, name, str_of(text));
    if (thread == 7)
        put_file(7, "stat", str_of(text));
    snprintf(name, sizeof(name), "task/%d/io", thread);
    snprintf(text, sizeof(text),
             "rchar: 0\nwchar: %u\nsyscr: 0\nsyscw: 1\nread_bytes: 0\nwrite_bytes: 0\n"
             "cancelled_write_bytes: 0\n",
             written);
    put_file(7, name, str_of(text));
}

TEST(what_threads_did_that_are_exiting_is_told_apart)
{
    struct proc *proc = open_proc(test_dir());
    struct io_use all, exiting;
    struct proc_stat stat;

    put_file(7, "stat", STR(""));
    put_thread(7, RANDOMIZED | EXITING, 4000);
    put_thread(8, RANDOMIZED, 300);
    put_thread(9, RANDOMIZED | EXITING, 20);
    assert_true(proc_stat(proc, 7, &stat));
    assert_true(stat.is_exiting);
    assert_int_equal(stat.threads, 3);
    assert_int_equal(proc_io_of_threads(proc, 7, &all, &exiting), 0);
    assert_int_equal(all.write_chars, 4320);
    assert_int_equal(exiting.write_chars, 4020);
    /* By a thread that has become another program, the main one lives again. */
    put_thread(7, RANDOMIZED, 300);
    assert_true(proc_stat(proc, 7, &stat));
    assert_false(stat.is_exiting);
    assert_int_equal(proc_io_of_threads(proc, 7, &all, &exiting), 0);
    assert_int_equal(all.write_chars, 620);
    assert_int_equal(exiting.write_chars, 20);
    proc_close(proc);
}

TEST(uids_are_found_in_status)
{
    struct proc_uids uids;

    assert_true(proc_uids_parse(STR("Name:\tUid:\\n\nUmask:\t0022\nState:\tS (sleeping)\n"
                                    "Uid:\t1000\t0\t7\t8\nGid:\t1\t1\t1\t1\n"),
                                &uids));
    assert_int_equal(uids.real, 1000);
    assert_int_equal(uids.effective, 0);
    assert_int_equal(uids.saved, 7);
    assert_false(proc_uids_parse(STR("Name:\tx\n"), &uids));
    assert_false(proc_uids_parse(STR("Uid:\t1000\n"), &uids));
    assert_false(proc_uids_parse(STR("Uid:\t1\t2\t4294967296\t4\n"), &uids));
}

TEST(variables_are_found_only_where_they_begin)
{
    static const char environ[] =
        "XACCOUNT=no\0ACCOUNTX=no\0PATH=/:ACCOUNT=no\0\0=ACCOUNT=no\0"
        "ACCOUNT\0GPUS=\0ACCOUNT=first=\n\xff\0ACCOUNT=second\0CPUS=12345";
    char account[20], gpus[20], cpus[4], none[20];
    struct proc_variable variables[] = {
        { "ACCOUNT", account, sizeof(account) },
        { "GPUS", gpus, sizeof(gpus) },
        { "CPUS", cpus, sizeof(cpus) },
        { "NONE", none, sizeof(none) },
    };

    for (size_t n = 1; n <= sizeof(environ); n++) {
        struct environ_scan scan;
        struct str rest = { environ, sizeof(environ) - 1 };

        memset(none, 'x', sizeof(none));
        environ_begin(&scan, variables, COUNT(variables));
        for (; rest.n; rest = str_skip(rest, n))
            assert_true(environ_feed(&scan, str_head(rest, n)));
        assert_string_equal(account, "first=\n\xff");
        assert_string_equal(gpus, "");
        assert_string_equal(cpus, "123");
        assert_string_equal(none, "");
        assert_int_equal(scan.wanted, 1 << 3);
    }
}

/* As an environment of that size, with a variable at its end. */
static void put_environ(int pid, size_t size)
{
    char *text = heap_array(size, 1);

    for (size_t i = 0; i < size; i++)
        text[i] = i % 100 == 99 ? '\0' : 'F';
    memcpy(text + size - 8, "\0SONDE=1", 8);
    put_file(pid, "environ", (struct str){ text, size });
    free(text);
}

TEST(an_environment_may_be_long_and_has_a_ceiling)
{
    struct proc *proc = open_proc(test_dir());
    char value[10] = "x";
    struct proc_variable variable = { "SONDE", value, sizeof(value) };

    put_environ(7, 1000000);
    assert_int_equal(proc_environ(proc, 7, &variable, 1), 0);
    assert_string_equal(value, "1");
    put_environ(7, 3000000);
    assert_int_equal(proc_environ(proc, 7, &variable, 1), -ENOENT);
    assert_string_equal(value, "");
    put_file(7, "environ", STR(""));
    assert_int_equal(proc_environ(proc, 7, &variable, 1), -EAGAIN);
    proc_close(proc);
}

TEST(the_environment_of_a_real_process_is_read)
{
    struct proc *proc = open_proc("/proc");
    char value[10];
    struct proc_variable variable = { "SONDE_TEST", value, sizeof(value) };
    int ends[2], out[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execle("/bin/cat", "cat", NULL, (const char *[]){ "A=1", "SONDE_TEST=seen", NULL });
        _exit(1);
    }
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(read(out[0], &byte, 1), 1);
    assert_int_equal(proc_environ(proc, pid, &variable, 1), 0);
    assert_string_equal(value, "seen");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(out[i]);
    }
    proc_close(proc);
}

enum { READY = 3 };

static void close_all_but_ready(void)
{
    close_range(0, READY - 1, 0);
    close_range(READY + 1, ~0U, 0);
    for (int fd = 0; fd < 3; fd++)
        open("/dev/null", O_RDWR);
}

static int open_in_place(const char *name, int flags)
{
    return open(test_path("%s", name), O_CREAT | O_RDWR | flags, 0600);
}

/* Waits for its end by signal: the pipes of start() are closed too. */
static void wait_for_signal(int ready)
{
    close(ready);
    for (;;)
        pause();
}

static struct child start_with_files(void (*open_files)(void))
{
    int ready[2];
    struct child child = { .end = -1 };
    char byte;

    test_dir(); /* which the child writes into */
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    child.pid = fork();
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ready[1], READY);
        close_all_but_ready();
        open_files();
        wait_for_signal(READY);
    }
    close(ready[1]);
    while (read(ready[0], &byte, 1) > 0)
        continue;
    close(ready[0]);
    return child;
}

static void stop_with_files(struct child child)
{
    kill(child.pid, SIGKILL);
    waitpid(child.pid, NULL, 0);
}

static void open_all_kinds(void)
{
    int ends[2];

    dup(open_in_place("one", 0));
    open_in_place("one", 0);
    open_in_place("two", 0);
    open_in_place("gone", 0);
    if (pipe2(ends, 0) < 0)
        _exit(1);
    socket(AF_UNIX, SOCK_STREAM, 0);
    eventfd(0, 0);
    memfd_create("scratch", 0);
    open("/proc/self/stat", O_RDONLY);
    open("/sys/kernel/uevent_seqnum", O_RDONLY);
    unlinkat(open(test_dir(), O_PATH), "gone", 0);
}

static void open_one_of_them(void)
{
    open_in_place("two", 0);
    open_in_place("three", 0);
}

TEST(distinct_regular_files_are_counted_by_name)
{
    struct proc *proc = open_proc("/proc");
    struct child first = start_with_files(open_all_kinds), second;
    struct pattern *scratch;
    struct proc_files *files;

    assert_int_equal(pattern_new(STR("scratch|null|thr.e"), &scratch, NULL), 0);
    files = proc_files_new(scratch);
    assert_int_equal(proc_files_add(files, proc, first.pid), 0);
    /* 0 to 2, five of files, a pipe's two, socket, eventfd, memfd, /proc, /sys, the directory. */
    assert_int_equal(proc_files_descriptors(files), 16);
    /* one, two, gone, and the directory, which no name tells from a file */
    assert_int_equal(proc_files_distinct(files), 4);
    assert_false(proc_files_found(files));
    second = start_with_files(open_one_of_them);
    assert_int_equal(proc_files_add(files, proc, second.pid), 0);
    assert_int_equal(proc_files_descriptors(files), 21);
    assert_int_equal(proc_files_distinct(files), 5);
    assert_true(proc_files_found(files));
    proc_files_begin(files);
    assert_int_equal(proc_files_descriptors(files), 0);
    assert_int_equal(proc_files_distinct(files), 0);
    assert_false(proc_files_found(files));
    stop_with_files(first);
    stop_with_files(second);
    proc_files_free(files);
    pattern_free(scratch);
    proc_close(proc);
}

/* The ceiling is reached by looking at the same files more often. */
enum { MANY = 30000, MOST_LOOKS = PROC_FILES_MAX / MANY };

/* As a process of that number with so many files open; few systems let a real one have them. */
static void put_many_links(int pid)
{
    int directory;

    put_file(pid, "stat", STR(""));
    directory = open(make_dir(test_path("%d/fd", pid)), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < MANY; i++) {
        char number[16], target[64];

        snprintf(number, sizeof(number), "%d", i);
        snprintf(target, sizeof(target), "/home/alice/part-%d.h5", i);
        assert_int_equal(symlinkat(target, directory, number), 0);
    }
    close(directory);
}

TEST(thirty_thousand_files_are_told_apart_and_more_than_the_ceiling_are_unknown)
{
    struct proc *recorded = open_proc(test_dir()), *real = open_proc("/proc");
    struct child child = start_with_files(open_one_of_them);
    struct proc_files *files = proc_files_new(NULL);
    unsigned long before;

    put_many_links(7);
    before = n_allocations;
    assert_int_equal(proc_files_add(files, recorded, 7), 0);
    assert_true(n_allocations - before < 30); /* what they are told apart with doubles */
    assert_int_equal(proc_files_descriptors(files), MANY);
    assert_int_equal(proc_files_distinct(files), MANY);
    for (int i = 1; i < MOST_LOOKS; i++)
        assert_int_equal(proc_files_add(files, recorded, 7), 0);
    assert_int_equal(proc_files_distinct(files), MANY);
    assert_int_equal(proc_files_add(files, recorded, 7), 0);
    assert_int_equal(proc_files_distinct(files), MODEL_UNKNOWN_U64);
    assert_int_equal(proc_files_descriptors(files), (MOST_LOOKS + 1) * MANY);
    assert_int_equal(proc_files_add(files, real, child.pid), 0);
    assert_int_equal(proc_files_descriptors(files), (MOST_LOOKS + 1) * MANY + 5);
    for (int i = 0; i < 20; i++)
        proc_files_begin(files);
    assert_int_equal(proc_files_add(files, real, child.pid), 0);
    assert_int_equal(proc_files_distinct(files), 2);
    stop_with_files(child);
    proc_files_free(files);
    proc_close(real);
    proc_close(recorded);
}

TEST(a_cgroup_is_found_by_its_controller)
{
    static const struct str text =
        STR_INIT("12:pids:/\n11:cpu,cpuacct:/slurm/uid_1/job_7\n"
                 "10:name=systemd:/user.slice\n9:freezer:/a:b/c\n"
                 "8:memory:\n7:devices\n0::/system.slice/x\n5:cpuset:/cut");
    static const struct {
        struct str controller;
        const char *path;
    } cases[] = {
        { STR_INIT("cpuacct"), "slurm/uid_1/job_7" },
        { STR_INIT("cpu"), "slurm/uid_1/job_7" },
        { STR_INIT("name=systemd"), "user.slice" },
        { STR_INIT("freezer"), "a:b/c" },
        { STR_INIT("pids"), "" },
        { STR_INIT(""), "system.slice/x" },
        { STR_INIT("cpus"), NULL },
        { STR_INIT("memory"), NULL },
        { STR_INIT("devices"), NULL },
        { STR_INIT("cpuset"), NULL },
    };
    struct str path;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (proc_cgroup_parse(text, cases[i].controller, &path) != !!cases[i].path)
            fail_msg("%s", cases[i].controller.p);
        if (cases[i].path)
            assert_str(path, cases[i].path);
    }
    assert_false(proc_cgroup_parse(STR("5:cpu:/v1\n"), STR(""), &path));
    assert_false(proc_cgroup_parse(STR("3::/v1\n"), STR(""), &path));
}

TEST(the_cgroup_of_a_real_process_is_read)
{
    struct proc *proc = open_proc("/proc");
    struct buf path;

    buf_init(&path, 4096);
    assert_true(proc_cgroup(proc, getpid(), "", &path) ||
                proc_cgroup(proc, getpid(), "memory", &path));
    assert_true(path.n == 0 || path.p[0] != '/');
    assert_false(proc_cgroup(proc, GONE, "", &path));
    buf_free(&path);
    proc_close(proc);
}

static void start_grandchild(void *ctx)
{
    pid_t pid = fork();

    (void)ctx;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(3, ~0U, 0); /* the pipe by which its parent says that it is ready */
        pause();
    }
}

static bool has(const struct pid_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->pid[i] == pid)
            return true;
    return false;
}

TEST(descendants_are_listed_parents_first)
{
    struct proc *proc = open_proc("/proc");
    struct child child = start(start_grandchild, NULL);
    struct pid_list pids = { 0 };
    struct proc_stat stat;
    struct err err;

    assert_int_equal(proc_descendants(proc, getpid(), PROC_DESCENDANTS_MAX, &pids), 0);
    assert_int_equal(pids.n, 2);
    assert_int_equal(pids.pid[0], child.pid);
    assert_true(proc_stat(proc, pids.pid[1], &stat));
    assert_int_equal(stat.parent, child.pid);
    assert_int_equal(proc_all(proc, &pids, &err), 0);
    assert_true(pids.n > 4);
    assert_int_equal(pids.pid[0], child.pid);
    pids.n = 0;
    assert_int_equal(proc_all(proc, &pids, &err), 0);
    assert_true(has(&pids, 1));
    assert_true(has(&pids, getpid()));
    assert_true(has(&pids, child.pid));
    pids.n = 0;
    stop(child);
    assert_int_equal(proc_descendants(proc, child.pid, PROC_DESCENDANTS_MAX, &pids), -ESRCH);
    assert_int_equal(pids.n, 0);
    free(pids.pid);
    proc_close(proc);
}

TEST(a_list_of_ids_may_have_anything_between_them)
{
    static const struct str texts[] = {
        STR_INIT("7 12 99 "),
        STR_INIT("7\n12\n99"),
        STR_INIT("7 x 12 -1 0 1x 99999999999 2147483648 00 99999999999999999999999999 99 \n\n"),
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct pid_list pids = { 0 };
        int ends[2];

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], texts[i].p, texts[i].n), texts[i].n);
        close(ends[1]);
        assert_int_equal(pid_list_read(&pids, ends[0], 3), 0);
        assert_int_equal(pids.n, 3);
        assert_int_equal(pids.pid[0] + pids.pid[1] + pids.pid[2], 118);
        close(ends[0]);
        free(pids.pid);
    }
}

TEST(a_list_of_ids_has_a_ceiling)
{
    struct pid_list pids = { 0 };
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "1 2 3 4", 7), 7);
    close(ends[1]);
    assert_int_equal(pid_list_read(&pids, ends[0], 3), -EFBIG);
    assert_int_equal(pids.n, 3);
    close(ends[0]);
    free(pids.pid);
}

static void look_at(struct proc *proc, struct proc_files *files, struct buf *path,
                    struct pid_list *pids)
{
    char value[10];
    struct proc_variable variable = { "PATH", value, sizeof(value) };
    struct proc_stat stat;
    struct io_use io;
    uint32_t uid;

    proc_files_begin(files);
    pids->n = 0;
    buf_reset(path);
    assert_true(proc_stat(proc, getpid(), &stat));
    assert_int_equal(proc_io(proc, getpid(), &io), 0);
    assert_int_equal(proc_io_of_threads(proc, getpid(), &io, NULL), 0);
    assert_true(proc_uid(proc, getpid(), &uid));
    assert_int_equal(proc_environ(proc, getpid(), &variable, 1), 0);
    assert_int_equal(proc_files_add(files, proc, getpid()), 0);
    proc_cgroup(proc, getpid(), "", path);
    assert_int_equal(proc_descendants(proc, getpid(), PROC_DESCENDANTS_MAX, pids), 0);
    assert_int_equal(proc_all(proc, pids, NULL), 0);
}

TEST(nothing_is_allocated_for_what_was_read_before)
{
    struct proc *proc = open_proc("/proc");
    struct proc_files *files = proc_files_new(NULL);
    struct pid_list pids = { 0 };
    struct buf path;
    unsigned long before;

    buf_init(&path, 4096);
    look_at(proc, files, &path, &pids);
    pids.pid = heap_resize(pids.pid, PROC_PIDS_MAX, sizeof(*pids.pid));
    pids.room = PROC_PIDS_MAX;
    before = n_allocations;
    for (int i = 0; i < 10; i++)
        look_at(proc, files, &path, &pids);
    assert_int_equal(n_allocations, before);
    buf_free(&path);
    free(pids.pid);
    proc_files_free(files);
    proc_close(proc);
}

TEST(a_missing_proc_is_an_error)
{
    struct proc *proc;
    struct err err;

    assert_int_equal(proc_open("/nonexistent", &proc, &err), -ENOENT);
    assert_contains(err.text, "/nonexistent");
}
