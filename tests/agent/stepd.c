/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stands for the slurmstepd of a step, for the agent: a copy of this must be called slurmstepd, and
 * its first argument "slurmstepd: [JOB.STEP]". It starts the processes that it is asked for on
 * standard input, a socket that keeps messages apart, and waits for them.
 *
 * slurmstepd: [JOB.STEP] UID
 *
 * A message is words that end with NUL: UID OUTPUT N cgroup.procs… PROGRAM ARGUMENT…; the answer is
 * the process id. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGE = 65536, WORDS = 256 };

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static unsigned number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || !*text)
        fail(text);
    return (unsigned)value;
}

static void join(const char *procs)
{
    int fd = open(procs, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "0", 1) != 1)
        fail(procs);
    close(fd);
}

static void open_output(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);

    if (fd < 0)
        fail(path);
    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
    fd = open("/dev/null", O_RDONLY);
    dup2(fd, 0);
    close(fd);
}

static _Noreturn void become(char **words)
{
    const struct rlimit many = { 1 << 18, 1 << 18 };
    unsigned uid = number(words[0]), n = number(words[2]);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_NOFILE, &many);
    for (unsigned i = 0; i < n; i++)
        join(words[3 + i]);
    open_output(words[1]);
    if (setgid(uid) < 0 || setresuid(uid, uid, uid) < 0)
        fail("setresuid");
    /* Nothing outlives the test, however it ends. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(words[3 + n], &words[3 + n]);
    fail(words[3 + n]);
}

static void start(char *message, size_t size)
{
    char *words[WORDS + 1];
    size_t n = 0;
    pid_t pid;

    for (size_t at = 0; at < size && n < WORDS; at += strlen(message + at) + 1)
        words[n++] = message + at;
    words[n] = NULL;
    pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        become(words);
    if (write(0, &pid, sizeof(pid)) != sizeof(pid))
        fail("answer");
}

static void noticed(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    static char message[MESSAGE];
    struct pollfd wish = { 0, POLLIN, 0 };
    sigset_t blocked, open;
    ssize_t size;

    if (argc != 2)
        return 2;
    /* Still root in effect: its tasks become other users. */
    if (setresuid(number(argv[1]), 0, number(argv[1])) < 0)
        fail("setresuid");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, noticed);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &open);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (ppoll(&wish, 1, NULL, &open) < 0)
            continue;
        size = read(0, message, sizeof(message) - 1);
        if (size <= 0)
            return 0;
        message[size] = '\0';
        start(message, (size_t)size);
    }
}
