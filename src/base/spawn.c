/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/spawn.h"

#include "base/arena.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    PIECE = 64 * 1024,
    PIECES_AT_ONCE = 16,
    PIPE_BYTES = PIECE * PIECES_AT_ONCE,
    GATHER_MS = 1,
    CANCEL_CHECK_MS = 100,
    DEATH_MS = 2000, /* how long what was killed may take to be gone */
};

struct child {
    pid_t pid;
    int pidfd, out, warnings;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* True if `change`, "NAME=value" or "NAME_*", takes the place of that entry of the environment. */
static bool overrides(const char *change, const char *entry)
{
    const char *equals = strchr(change, '=');
    size_t length = equals ? (size_t)(equals + 1 - change) : strcspn(change, "*");

    return strncmp(entry, change, length) == 0;
}

static char **merge_env(const char *const *changes)
{
    size_t n = 0, n_changes = 0;
    char **merged;

    while (environ[n])
        n++;
    while (changes && changes[n_changes])
        n_changes++;
    merged = heap_array(n + n_changes + 1, sizeof(*merged));
    n = 0;
    for (char **entry = environ; *entry; entry++) {
        bool overridden = false;

        for (size_t i = 0; i < n_changes && !overridden; i++)
            overridden = overrides(changes[i], *entry);
        if (!overridden)
            merged[n++] = *entry;
    }
    for (size_t i = 0; i < n_changes; i++)
        if (strchr(changes[i], '='))
            merged[n++] = (char *)changes[i];
    merged[n] = NULL;
    return merged;
}

/* posix_spawn proper; out and warnings are the child's ends. */
static int start(const struct spawn *spawn, int out, int warnings, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, pipe_signal;
    char **env = merge_env(spawn->env);
    int code;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, warnings, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipe_signal);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    code = posix_spawnp(ret_pid, spawn->argv[0], &actions, &attr, (char *const *)spawn->argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    free(env);
    return code;
}

static int open_child(const struct spawn *spawn, struct child *ret, struct err *err)
{
    int out[2], warnings[2];
    struct child child;
    int code;

    if (pipe2(out, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot start %s: %s", spawn->argv[0], err_words(errno));
    if (pipe2(warnings, O_CLOEXEC) < 0) {
        code = errno;
        close(out[0]);
        close(out[1]);
        return err_set(err, code, "cannot start %s: %s", spawn->argv[0], err_words(code));
    }
    code = start(spawn, out[1], warnings[1], &child.pid);
    close(out[1]);
    close(warnings[1]);
    child.out = out[0];
    child.warnings = warnings[0];
    if (code) {
        close(out[0]);
        close(warnings[0]);
        return err_set(err, code, "cannot start %s: %s; %s", spawn->argv[0], err_words(code),
                       code == ENOENT || code == EACCES
                           ? "is it installed and in PATH?"
                           : "are the limits on processes and memory too low?");
    }
    fcntl(child.out, F_SETFL, O_NONBLOCK);
    fcntl(child.out, F_SETPIPE_SZ, PIPE_BYTES); /* where it is refused, 64 KB will do */
    fcntl(child.warnings, F_SETFL, O_NONBLOCK);
    /* Only wakes the poll; where the kernel lacks it, the end is noticed at the next look. */
    child.pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
    *ret = child;
    return 0;
}

/* Reads what is there, but no more than a few pieces: the deadline must be looked at in between.
 * Closes the descriptor at its end. */
static int drain_output(const struct spawn *spawn, int *fd, char *piece,
                        struct spawn_result *result, struct err *err)
{
    for (int i = 0; *fd >= 0 && i < PIECES_AT_ONCE; i++) {
        ssize_t n = read(*fd, piece, PIECE);
        int code;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0) {
            close_fd(fd);
            return 0;
        }
        result->output_bytes += (size_t)n;
        if (result->output_bytes > spawn->max_output)
            return err_set(err, EFBIG, "%s printed more than %zu bytes and was stopped",
                           spawn->argv[0], spawn->max_output);
        code = spawn->sink(spawn->ctx, (struct str){ piece, (size_t)n }, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* Keeps the beginning and reads the rest away, so that the command does not wait for a reader. */
static void drain_warnings(int *fd, struct str *warning, char *text, size_t size)
{
    for (int i = 0; *fd >= 0 && i < PIECES_AT_ONCE; i++) {
        char piece[4096];
        size_t room = size - 1 - warning->n;
        ssize_t n = read(*fd, piece, sizeof(piece));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(fd);
            return;
        }
        room = (size_t)n < room ? (size_t)n : room;
        memcpy(text + warning->n, piece, room);
        warning->n += room;
    }
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Milliseconds until the deadline, but no longer than until the next look at `cancelled`. */
static int poll_timeout(const struct spawn *spawn, int64_t now)
{
    int64_t left_ms = (spawn->deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;

    return (int)(left_ms < CANCEL_CHECK_MS ? left_ms : CANCEL_CHECK_MS);
}

/* Waits for something to do. A command that prints a little at a time is not looked at each time:
 * what it prints within a millisecond is taken together, which saves both sides most of their
 * switching. */
static void wait_for_child(struct child *child, int timeout_ms)
{
    struct pollfd fds[] = {
        { .fd = child->pidfd, .events = POLLIN },
        { .fd = child->out, .events = POLLIN },
        { .fd = child->warnings, .events = POLLIN },
    };

    if (poll(fds, COUNT(fds), timeout_ms) > 0 && fds[1].revents == POLLIN && !fds[0].revents)
        poll(fds, 1, timeout_ms < GATHER_MS ? timeout_ms : GATHER_MS);
}

/* Follows the child until it ends (0) or has to be ended (negative); then ends its whole group. */
static int follow(const struct spawn *spawn, struct child *child, struct str *warning,
                  struct spawn_result *result, struct err *err)
{
    char *piece = heap_array(PIECE, 1);
    int code = 0;

    while (!code && !has_ended(child->pid)) {
        int64_t now = clock_mono(&clock_real);

        if (spawn->cancelled && atomic_load(spawn->cancelled)) {
            code = err_set(err, ECANCELED, "%s was stopped", spawn->argv[0]);
        } else if (now >= spawn->deadline_ns) {
            code =
                err_set(err, ETIMEDOUT, "%s did not finish in time and was killed", spawn->argv[0]);
        } else {
            wait_for_child(child, poll_timeout(spawn, now));
            code = drain_output(spawn, &child->out, piece, result, err);
            drain_warnings(&child->warnings, warning, result->warning, sizeof(result->warning));
        }
    }
    /* Before its leader is reaped, the group's number cannot belong to anybody else; and once all
     * writers are dead, no more is left than a pipe holds: 1 MB at most, which is what one drain
     * takes. (Who has left the group may go on writing, for nobody.) */
    killpg(child->pid, SIGKILL);
    if (!code)
        code = drain_output(spawn, &child->out, piece, result, err);
    drain_warnings(&child->warnings, warning, result->warning, sizeof(result->warning));
    free(piece);
    return code;
}

static int judge(const struct spawn *spawn, int status, struct str warning, struct err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (!warning.n)
        warning = STR("it said nothing");
    if (WIFSIGNALED(status))
        return err_set(err, EREMOTEIO, "%s was ended by signal %d: %.*s", spawn->argv[0],
                       WTERMSIG(status), STR_ARG(warning));
    return err_set(err, EREMOTEIO, "%s exited with status %d: %.*s", spawn->argv[0],
                   WEXITSTATUS(status), STR_ARG(warning));
}

/* Reaps one that was killed. False if it will not die. */
static bool reap(const struct child *child, int *ret_status)
{
    struct pollfd fd = { .fd = child->pidfd, .events = POLLIN };
    int64_t until = clock_mono(&clock_real) + DEATH_MS * NS_PER_MS;

    while (waitpid(child->pid, ret_status, WNOHANG) == 0) {
        if (clock_mono(&clock_real) > until)
            return false;
        poll(&fd, 1, CANCEL_CHECK_MS);
    }
    return true;
}

/* Whether the one that an earlier run had to leave behind is still there. */
static bool is_stuck(pid_t *stuck)
{
    int status;

    if (!stuck || *stuck == 0)
        return false;
    if (waitpid(*stuck, &status, WNOHANG) == 0)
        return true;
    *stuck = 0;
    return false;
}

int spawn_run(const struct spawn *spawn, struct spawn_result *ret, struct err *err)
{
    struct child child;
    struct str warning = { ret->warning, 0 };
    int status = 0, code;

    *ret = (struct spawn_result){ 0 };
    if (is_stuck(spawn->stuck))
        return err_set(err, ETIMEDOUT,
                       "%s (process %d) can still not be killed; it waits for a file system or "
                       "belongs to another user",
                       spawn->argv[0], (int)*spawn->stuck);
    code = open_child(spawn, &child, err);
    if (code < 0)
        return code;
    code = follow(spawn, &child, &warning, ret, err);
    if (!reap(&child, &status)) {
        code = err_set(err, ETIMEDOUT, "%s (process %d) cannot be killed and is left behind",
                       spawn->argv[0], (int)child.pid);
        if (spawn->stuck)
            *spawn->stuck = child.pid;
    }
    close_fd(&child.out);
    close_fd(&child.warnings);
    close_fd(&child.pidfd);
    warning = str_trim(warning);
    memmove(ret->warning, warning.p, warning.n);
    ret->warning[warning.n] = '\0';
    return code < 0 ? code : judge(spawn, status, str_of(ret->warning), err);
}

bool spawn_exists(const char *command)
{
    const char *path = getenv("PATH");
    char file[4096];

    if (strchr(command, '/'))
        return access(command, X_OK) == 0;
    for (struct str rest = str_of(path ? path : "/bin:/usr/bin"); rest.p;) {
        struct str directory = str_cut(&rest, ':');

        snprintf(file, sizeof(file), "%.*s/%s", STR_ARG(directory), command);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

char **spawn_split(struct str line)
{
    /* Every word needs a byte beside it, so there are at most half as many words as bytes. */
    size_t most = line.n / 2 + 2;
    char **argv = heap_alloc(most * sizeof(*argv) + line.n + 1);
    char *to = (char *)(argv + most);
    size_t n = 0;
    char quote = '\0';
    bool in_word = false;

    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];

        if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? '\0' : c;
            c = '\0';
        } else if (!quote && c == ' ') {
            if (in_word)
                *to++ = '\0';
            in_word = false;
            continue;
        }
        if (!in_word)
            argv[n++] = to;
        in_word = true;
        if (c)
            *to++ = c;
    }
    if (quote || n == 0) {
        free(argv);
        return NULL;
    }
    return argv;
}
