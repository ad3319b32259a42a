/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's program of known behaviour: does one thing, says on standard output what it really did,
 * by its own clock, and waits to be ended, so that what the agent says of it can be compared. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static void fail(const char *what)
{
    fprintf(stderr, "behave: %s: %m\n", what);
    exit(1);
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*end || !*text) {
        errno = EINVAL;
        fail(text);
    }
    return value;
}

static void wait_to_be_ended(void)
{
    fflush(stdout);
    for (;;)
        pause();
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void *burn_until(void *until)
{
    volatile uint64_t sink = 0;

    while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < *(double *)until)
        for (int i = 0; i < 100000; i++)
            sink += (uint64_t)i;
    return NULL;
}

/* CPU-SECONDS THREADS: together, by the clock of the process. */
static void burn(char **arguments)
{
    double until = (double)number(arguments[0]);
    uint64_t n = number(arguments[1]);
    pthread_t threads[64];
    struct rusage usage;

    for (uint64_t i = 1; i < n && i < 64; i++)
        if (pthread_create(&threads[i], NULL, burn_until, &until) != 0)
            fail("pthread_create");
    burn_until(&until);
    for (uint64_t i = 1; i < n && i < 64; i++)
        pthread_join(threads[i], NULL);
    getrusage(RUSAGE_SELF, &usage);
    printf("cpu %.3f user %.3f system %.3f\n", cpu_seconds(CLOCK_PROCESS_CPUTIME_ID),
           seconds(usage.ru_utime), seconds(usage.ru_stime));
    wait_to_be_ended();
}

static void touch(uint64_t megabytes)
{
    char *memory = mmap(NULL, megabytes * MIB, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        fail("mmap");
    for (uint64_t i = 0; i < megabytes * MIB; i += 4096)
        memory[i] = 1;
}

/* MEGABYTES: of memory, for good. */
static void hold(char **arguments)
{
    touch(number(arguments[0]));
    printf("held %s MiB\n", arguments[0]);
    wait_to_be_ended();
}

/* MEGABYTES MORE: as much as the job may have, until a line comes on standard input, or its end;
 * then more than that. */
static void oom(char **arguments)
{
    char byte = 0;

    touch(number(arguments[0]));
    printf("held %s MiB\n", arguments[0]);
    fflush(stdout);
    while (byte != '\n' && read(0, &byte, 1) == 1)
        ;
    touch(number(arguments[1]));
    printf("was not killed\n");
}

/* MEGABYTES FILE: as fast as it can, and ends. */
static void write_file(char **arguments)
{
    static char piece[MIB];
    uint64_t n = number(arguments[0]);
    double began = cpu_seconds(CLOCK_MONOTONIC);
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0)
        fail(arguments[1]);
    memset(piece, 'x', sizeof(piece));
    for (uint64_t i = 0; i < n; i++)
        if (write(fd, piece, sizeof(piece)) != sizeof(piece))
            fail("write");
    printf("wrote %s MiB in %.3f s\n", arguments[0], cpu_seconds(CLOCK_MONOTONIC) - began);
}

/* N DIRECTORY: keeps so many files open. */
static void files(char **arguments)
{
    uint64_t n = number(arguments[0]);
    struct rlimit limit;
    char path[4096];

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (uint64_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/file-%llu", arguments[1], (unsigned long long)i);
        if (open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0)
            fail(path);
    }
    printf("opened %s files\n", arguments[0]);
    wait_to_be_ended();
}

static void *idle(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

/* So many in all. */
static void start_idle(uint64_t n)
{
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (uint64_t i = 1; i < n; i++) {
        pthread_t thread;

        if (pthread_create(&thread, &small, idle, NULL) != 0)
            fail("pthread_create");
    }
}

/* N: in all. */
static void threads(char **arguments)
{
    start_idle(number(arguments[0]));
    printf("has %s threads\n", arguments[0]);
    wait_to_be_ended();
}

/* MEGABYTES FILE MEMORY THREADS: writes so much and ends with so many threads and mebibytes of
 * memory, which the kernel takes back between the record of its end and the end itself. */
static void end_slowly(char **arguments)
{
    touch(number(arguments[2]));
    start_idle(number(arguments[3]));
    write_file(arguments);
}

/* N: children that end at once, one after another without pause, a hundred at a time. */
static void fork_many(char **arguments)
{
    uint64_t n = number(arguments[0]);

    for (uint64_t i = 0; i < n; i++) {
        pid_t child = fork();

        if (child < 0)
            fail("fork");
        if (child == 0)
            _exit(0);
        if (i % 100 == 99)
            while (waitpid(-1, NULL, 0) > 0)
                ;
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
    printf("forked %s\n", arguments[0]);
    wait_to_be_ended();
}

/* NAME: any bytes. */
static void take_name(char **arguments)
{
    prctl(PR_SET_NAME, arguments[0]);
    printf("is called so\n");
    wait_to_be_ended();
}

/* MEGABYTES DIRECTORY N: children write so much each, one after another, and are not waited for. */
static void write_unawaited(char **arguments)
{
    uint64_t n = number(arguments[2]);
    char path[4096];

    signal(SIGCHLD, SIG_IGN);
    for (uint64_t i = 0; i < n; i++) {
        pid_t child;

        snprintf(path, sizeof(path), "%s/child-%llu", arguments[1], (unsigned long long)i);
        child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            write_file((char *[]){ arguments[0], path });
            exit(0);
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    printf("children are done\n");
    wait_to_be_ended();
}

/* N: children of different names, one after another, that end at once. */
static void end_many_names(char **arguments)
{
    uint64_t n = number(arguments[0]);
    char name[16];

    for (uint64_t i = 0; i < n; i++) {
        pid_t child = fork();

        if (child < 0)
            fail("fork");
        if (child == 0) {
            snprintf(name, sizeof(name), "name-%u", (unsigned)i);
            prctl(PR_SET_NAME, name);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    printf("children are done\n");
    wait_to_be_ended();
}

static volatile sig_atomic_t may_wait;

static void be_told(int unused)
{
    (void)unused;
    may_wait = 1;
}

/* MEGABYTES DIRECTORY: a child writes so much and is waited for after a SIGUSR1. */
static void write_late(char **arguments)
{
    sigset_t told, before;
    char path[4096];
    siginfo_t info;
    pid_t child;

    signal(SIGUSR1, be_told);
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    sigprocmask(SIG_BLOCK, &told, &before);
    snprintf(path, sizeof(path), "%s/late-%d", arguments[1], (int)getpid());
    child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        write_file((char *[]){ arguments[0], path });
        wait_to_be_ended();
    }
    printf("child %d\n", (int)child);
    fflush(stdout);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    printf("child has ended\n");
    fflush(stdout);
    while (!may_wait)
        sigsuspend(&before);
    waitpid(child, NULL, 0);
    printf("child was waited for\n");
    wait_to_be_ended();
}

struct writing {
    char **arguments;
    pthread_t main;
};

static void *write_headless(void *ctx)
{
    struct writing *writing = ctx;

    pthread_join(writing->main, NULL);
    write_file(writing->arguments);
    wait_to_be_ended();
    return NULL;
}

/* MEGABYTES FILE: its main thread ends; another writes so much. */
static void lose_head(char **arguments)
{
    static struct writing writing;
    pthread_t thread;

    writing = (struct writing){ arguments, pthread_self() };
    if (pthread_create(&thread, NULL, write_headless, &writing) != 0)
        fail("pthread_create");
    pthread_exit(NULL);
}

static void write_some(const char *path, int n)
{
    static const char piece[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        fail(path);
    for (int i = 0; i < n; i++)
        if (write(fd, piece, sizeof(piece)) != sizeof(piece))
            fail("write");
    close(fd);
}

static void *write_in_thread(void *path)
{
    write_some(path, 16);
    return NULL;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

/* Some wait for their children, some leave them to others, some end threads. */
static void be_child(char *path, int i)
{
    static const char *const names[] = { "ant", "bee", "cat", "dog", "elk" };
    pthread_t thread;

    prctl(PR_SET_NAME, names[i % 5]);
    write_some(path, 8 + i % 32);
    if (i % 3 == 0 && pthread_create(&thread, NULL, write_in_thread, path) == 0)
        pthread_join(thread, NULL);
    if (i % 4 == 0 && fork() == 0)
        write_some(path, 64);
    pause_ms(i * 37 % 300);
    write_some(path, 8);
    _exit(0);
}

/* DIRECTORY: children of all kinds come and go until it is ended. */
static void churn(char **arguments)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/churn-%d", arguments[0], (int)getpid());
    write_some(path, 1);
    for (int i = 0;; i++) {
        pid_t child = fork();

        if (child < 0)
            fail("fork");
        if (child == 0)
            be_child(path, i);
        pause_ms(10);
        if (i % 16 == 15)
            while (waitpid(-1, NULL, 0) > 0)
                ;
    }
}

static const struct {
    const char *name;
    int n_arguments;
    void (*behave)(char **arguments);
} behaviours[] = {
    { "burn", 2, burn },
    { "hold", 1, hold },
    { "oom", 2, oom },
    { "write", 2, write_file },
    { "slow", 4, end_slowly },
    { "files", 2, files },
    { "threads", 1, threads },
    { "fork", 1, fork_many },
    { "name", 1, take_name },
    { "unawaited", 3, write_unawaited },
    { "names", 1, end_many_names },
    { "late", 2, write_late },
    { "headless", 2, lose_head },
    { "churn", 1, churn },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(behaviours) / sizeof(behaviours[0]); i++)
        if (strcmp(argv[1], behaviours[i].name) == 0 && argc == behaviours[i].n_arguments + 2) {
            behaviours[i].behave(argv + 2);
            return 0;
        }
    fprintf(stderr, "behave: no such behaviour, or not its arguments\n");
    return 2;
}
