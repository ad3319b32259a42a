/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of the benchmark's jobs. Called "slurmstepd: [JOB.STEP]" it stands for the
 * slurmstepd of a step, without which a job directory is a leftover: it starts a process in each
 * task's cgroups, which starts the others of its task. A copy of this program must be called
 * slurmstepd, because the agent looks at that too.
 *
 * slurmstepd ROOT UID JOB STEP PROCESSES LIFE_MS PROGRAM SCRATCH
 * PROGRAM PROCESSES LIFE_MS SCRATCH NAME      (LIFE_MS 0: until killed) */
#include "layout.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TOUCHED_BYTES = 256 * 1024, STACK_BYTES = 64 * 1024 };

static const double spin_seconds = 200e-6; /* in each second, by the first of a task */

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static unsigned number(const char *text)
{
    uint64_t value;

    if (!num_get_u64(str_of(text), &value) || value > UINT32_MAX)
        fail(text);
    return (unsigned)value;
}

/* Nothing outlives the benchmark, however it ends. */
static void die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void join(const struct place *place)
{
    for (size_t i = 0; i < HIERARCHIES; i++) {
        char directory[PLACE_PATH], path[FILE_PATH];
        int fd;

        place_path(place, i, LEVEL_TASK, directory);
        file_path(directory, "cgroup.procs", path);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
            fail(path);
        close(fd);
    }
}

static void start_task(const struct place *place, unsigned processes, char **args)
{
    char job[64], step[64], uid[64], count[16], name[64];
    const char *environment[] = { "PATH=/usr/bin:/bin",
                                  "SLURM_JOB_ACCOUNT=physics",
                                  "SLURM_CPUS_ON_NODE=2",
                                  job,
                                  step,
                                  uid,
                                  NULL };
    pid_t pid = fork();

    if (pid < 0)
        fail("fork");
    if (pid > 0)
        return;
    join(place);
    if (setgid(place->uid) < 0 || setuid(place->uid) < 0)
        fail("setuid");
    snprintf(job, sizeof(job), "SLURM_JOB_ID=%u", place->job);
    snprintf(step, sizeof(step), "SLURM_STEP_ID=%s", place->step);
    snprintf(uid, sizeof(uid), "SLURM_JOB_UID=%u", place->uid);
    snprintf(count, sizeof(count), "%u", processes);
    snprintf(name, sizeof(name), "%u.%s.%u", place->job, place->step, place->task);
    execle(args[7], "simulate", count, args[6], args[8], name, (char *)NULL, environment);
    fail(args[7]);
}

static int be_slurmstepd(char **args)
{
    struct place place = { args[1], number(args[2]), number(args[3]), args[4], 0 };

    /* Still root in effect: its tasks become other users. */
    if (setresuid(STEPD_UID, 0, STEPD_UID) < 0)
        fail("setresuid");
    die_with_parent();
    for (unsigned left = number(args[5]), n; left; left -= n, place.task++) {
        n = left < PER_TASK ? left : PER_TASK;
        start_task(&place, n, args);
    }
    close(READY_FD);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    return 0;
}

static void *idle(void *none)
{
    for (;;)
        pause();
    return none;
}

static void open_files(const char *scratch, const char *name, unsigned member)
{
    for (int i = 0; i < FILES; i++) {
        char path[512], text[16];
        int fd;

        snprintf(path, sizeof(path), "%s/%s.%u.%d", scratch, name, member, i);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, "0123456789abcdef", 16) != 16 || pread(fd, text, 8, 0) != 8)
            fail(path);
    }
}

/* What a job's process has for its first three descriptors, whatever the benchmark was given. */
static void leave_output(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(fd, i);
    close(fd);
}

static void start_threads(void)
{
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    for (int i = 1; i < THREADS; i++)
        if (pthread_create(&thread, &small, idle, NULL) != 0)
            fail("pthread_create");
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static void work(void)
{
    for (;;) {
        for (double until = now() + spin_seconds; now() < until;)
            ;
        pause_ms(1000);
    }
}

static int be_member(char **args, unsigned member)
{
    unsigned life_ms = number(args[2]);
    char *memory = malloc(TOUCHED_BYTES);

    die_with_parent();
    if (!memory)
        fail("malloc");
    memset(memory, 1, TOUCHED_BYTES);
    open_files(args[3], args[4], member);
    start_threads();
    leave_output();
    if (write(READY_FD, "", 1) != 1)
        fail("ready");
    close(READY_FD);
    if (life_ms)
        pause_ms(life_ms);
    else if (member == 0)
        work();
    else
        idle(NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 9)
        return be_slurmstepd(argv);
    if (argc != 5)
        return 2;
    for (unsigned i = 1, n = number(argv[1]); i < n; i++)
        if (fork() == 0)
            return be_member(argv, i);
    return be_member(argv, 0);
}
