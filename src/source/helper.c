/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts a helper process and talks to it with deadlines. */
#include "source/helper.h"

#include "base/arena.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    PIECE = 256 * 1024,
    SOCKET_BYTES = 1 << 20,
    CANCEL_CHECK_MS = 100,
    DEATH_MS = 2000, /* how long what was killed may take to be gone */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Ours, with one setting changed. */
static char **make_env(const char *setting)
{
    size_t n = 0, length = setting ? (size_t)(strchr(setting, '=') + 1 - setting) : 0;
    char **env;

    while (environ[n])
        n++;
    env = heap_array(n + 2, sizeof(*env));
    n = 0;
    for (char **entry = environ; *entry; entry++)
        if (!setting || strncmp(*entry, setting, length) != 0)
            env[n++] = *entry;
    if (setting)
        env[n++] = (char *)setting;
    env[n] = NULL;
    return env;
}

/* posix_spawn proper; both descriptors are the child's ends. */
static int spawn_child(const char *path, const char *setting, int socket, int warnings,
                       pid_t *ret_pid)
{
    char *const argv[] = { (char *)path, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    char **env = make_env(setting);
    int code;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, warnings, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, warnings, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    code = posix_spawn(ret_pid, path, &actions, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    free(env);
    return code;
}

/* Whether the one that had to be left behind is still there. */
static bool is_stuck(pid_t *stuck)
{
    int status;

    if (*stuck == 0)
        return false;
    if (waitpid(*stuck, &status, WNOHANG) == 0)
        return true;
    *stuck = 0;
    return false;
}

static int cannot_start(const char *path, int code, struct err *err)
{
    return err_set(err, code, "cannot start %s: %s", path, err_words(code));
}

int helper_start(struct helper_process *process, const char *path, const char *setting,
                 struct err *err)
{
    int ends[2], warnings[2], code;
    pid_t pid;

    if (is_stuck(&process->stuck))
        return err_set(err, ETIMEDOUT, "process %d can still not be killed", (int)process->stuck);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return cannot_start(path, errno, err);
    if (pipe2(warnings, O_CLOEXEC) < 0) {
        code = errno;
        close(ends[0]);
        close(ends[1]);
        return cannot_start(path, code, err);
    }
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ SOCKET_BYTES }, sizeof(int));
    code = spawn_child(path, setting, ends[1], warnings[1], &pid);
    close(ends[1]);
    close(warnings[1]);
    if (code) {
        close(ends[0]);
        close(warnings[0]);
        return cannot_start(path, code, err);
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(warnings[0], F_SETFL, O_NONBLOCK);
    *process = (struct helper_process){
        .pid = pid,
        .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), /* only wakes the poll */
        .socket = ends[0],
        .warnings = warnings[0],
    };
    return 0;
}

/* Keeps the beginning and reads the rest away, so that nobody waits for a reader. */
static void drain_warnings(struct helper_process *process)
{
    for (int i = 0; process->warnings >= 0 && i < 16; i++) {
        char piece[4096];
        size_t room = sizeof(process->said) - 1 - process->n_said;
        ssize_t n = read(process->warnings, piece, sizeof(piece));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(&process->warnings);
            return;
        }
        room = (size_t)n < room ? (size_t)n : room;
        memcpy(process->said + process->n_said, piece, room);
        process->n_said += room;
    }
}

void helper_forget(struct helper_process *process)
{
    if (process->pid)
        drain_warnings(process);
    process->n_said = 0;
}

struct str helper_said(struct helper_process *process)
{
    if (process->pid)
        drain_warnings(process);
    for (size_t i = 0; i < process->n_said; i++)
        if (process->said[i] >= 0 && process->said[i] < ' ')
            process->said[i] = ' ';
    return str_trim((struct str){ process->said, process->n_said });
}

/* Reaps one that has ended or was killed. False if it will not die. */
static bool reap(const struct helper_process *process, int *ret_status)
{
    struct pollfd fd = { .fd = process->pidfd, .events = POLLIN };
    int64_t until = clock_mono(&clock_real) + DEATH_MS * NS_PER_MS;

    while (waitpid(process->pid, ret_status, WNOHANG) == 0) {
        if (clock_mono(&clock_real) > until)
            return false;
        poll(&fd, 1, CANCEL_CHECK_MS);
    }
    return true;
}

/* Before its leader is reaped, the group's number cannot belong to anybody else. Gives how it
 * ended, or -1. */
static int end(struct helper_process *process)
{
    int status = -1;

    if (!process->pid)
        return status;
    killpg(process->pid, SIGKILL);
    if (!reap(process, &status)) {
        process->stuck = process->pid;
        status = -1;
    }
    drain_warnings(process);
    close_fd(&process->socket);
    close_fd(&process->warnings);
    close_fd(&process->pidfd);
    process->pid = 0;
    return status;
}

void helper_stop(struct helper_process *process)
{
    end(process);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

bool helper_is_there(struct helper_process *process)
{
    if (process->pid && has_ended(process->pid))
        end(process);
    return process->pid;
}

/* It has closed its socket: its end will follow within a moment, and tell how. */
static int tell_end(struct helper_process *process, struct err *err)
{
    struct pollfd fd = { .fd = process->pidfd, .events = POLLIN };
    struct str said;
    int status;

    if (!has_ended(process->pid))
        poll(&fd, 1, CANCEL_CHECK_MS);
    status = end(process);
    said = helper_said(process);
    if (!said.n)
        said = STR("it said nothing");
    if (status >= 0 && WIFEXITED(status))
        return err_set(err, EPIPE, "it exited with status %d: %.*s", WEXITSTATUS(status),
                       STR_ARG(said));
    return err_set(err, EPIPE, "it was ended by signal %d: %.*s",
                   status >= 0 ? WTERMSIG(status) : 0, STR_ARG(said));
}

/* Positive at the end, 0 if more may come. */
static int take(struct helper_process *process, char *piece,
                int (*sink)(void *ctx, struct str piece, struct err *err), void *ctx,
                uint64_t *bytes, struct err *err)
{
    ssize_t n = recv(process->socket, piece, PIECE, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return tell_end(process, err);
    *bytes += (uint64_t)n;
    return sink(ctx, (struct str){ piece, (size_t)n }, err);
}

static int wait_for(struct helper_process *process, const struct helper_limits *limits,
                    struct err *err)
{
    struct pollfd fds[] = {
        { .fd = process->socket, .events = POLLIN },
        { .fd = process->warnings, .events = POLLIN },
    };
    int64_t left_ms = (limits->deadline_ns - clock_mono(&clock_real) + NS_PER_MS - 1) / NS_PER_MS;

    if (limits->cancelled && atomic_load(limits->cancelled))
        return err_set(err, ECANCELED, "it was stopped");
    if (left_ms <= 0)
        return err_set(err, ETIMEDOUT, "it did not answer in time and was killed");
    poll(fds, COUNT(fds), (int)(left_ms < CANCEL_CHECK_MS ? left_ms : CANCEL_CHECK_MS));
    drain_warnings(process);
    return 0;
}

int helper_ask(struct helper_process *process, struct str question,
               const struct helper_limits *limits,
               int (*sink)(void *ctx, struct str piece, struct err *err), void *ctx,
               uint64_t *ret_bytes, struct err *err)
{
    char *piece = heap_array(PIECE, 1);
    uint64_t bytes = 0;
    int code = 0;

    /* The other side reads nothing else, so that there is always room for it. */
    if (question.n && send(process->socket, question.p, question.n, MSG_NOSIGNAL) < 0)
        code = tell_end(process, err);
    while (code == 0) {
        code = wait_for(process, limits, err);
        if (code == 0)
            code = take(process, piece, sink, ctx, &bytes, err);
    }
    free(piece);
    *ret_bytes += bytes;
    if (code < 0)
        end(process);
    return code < 0 ? code : 0;
}
