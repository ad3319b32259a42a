/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a command with a deadline and a limit on its output. */
#include "base/spawn.h"

#include "base/arena.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    PIECE = 64 * 1024,
    PIECES_AT_ONCE = 16,
    PIPE_BYTES = PIECE * PIECES_AT_ONCE,
    WORDS = 2048, /* of standard error that are read at once */
    GATHER_MS = 1,
    CANCEL_CHECK_MS = 100,
    DEATH_MS = 2000, /* how long what was killed may take to be gone */
};

struct child {
    pid_t pid;
    int pidfd, out, warnings;
};

/* What is read of the child. */
struct reading {
    char *piece; /* of standard output: what may be the beginning of the mark, then what is new */
    size_t n_before;       /* bytes that may be */
    char words[2 * WORDS]; /* of standard error: the beginning, or before the mark the newest */
    size_t n_words;
    bool out_begun, words_begun; /* the mark has come there */
};

static const char *name_of(const struct spawn *spawn)
{
    return spawn->name ? spawn->name : spawn->argv[0];
}

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

/* A file in memory, so that nobody has to wait until it is read. -1 with errno. */
static int open_input(struct str input)
{
    int fd;

    if (!input.n)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    fd = memfd_create("input", MFD_CLOEXEC);
    if (fd >= 0 && (write(fd, input.p, input.n) != (ssize_t)input.n || lseek(fd, 0, SEEK_SET) < 0))
        close_fd(&fd);
    return fd;
}

/* posix_spawn proper; in, out and warnings are the child's ends. */
static int start(const struct spawn *spawn, int in, int out, int warnings, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, pipe_signal;
    char **env = merge_env(spawn->env);
    int code;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
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

/* Opens both ends of what the child is given. -errno, and then none is open. */
static int open_ends(struct str input, int *ret_in, int out[2], int warnings[2])
{
    int code;

    *ret_in = out[0] = out[1] = -1;
    if ((*ret_in = open_input(input)) >= 0 && pipe2(out, O_CLOEXEC) == 0 &&
        pipe2(warnings, O_CLOEXEC) == 0)
        return 0;
    code = -errno;
    close_fd(ret_in);
    close_fd(&out[0]);
    close_fd(&out[1]);
    return code;
}

static int open_child(const struct spawn *spawn, struct child *ret, struct err *err)
{
    int in, out[2], warnings[2];
    struct child child;
    int code = open_ends(spawn->input, &in, out, warnings);

    if (code < 0)
        return err_set(err, -code, "cannot start %s: %s", spawn->argv[0], err_words(-code));
    code = start(spawn, in, out[1], warnings[1], &child.pid);
    close(in);
    close(out[1]);
    close(warnings[1]);
    child.out = out[0];
    child.warnings = warnings[0];
    if (code) {
        close(out[0]);
        close(warnings[0]);
        return err_set(err, code, "cannot start %s: %s; %s", spawn->argv[0], err_words(code),
                       code == ENOENT   ? "is it installed and in PATH?"
                       : code == EACCES ? "may this user enter its directory and run it?"
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

/* Passes on what follows the mark. Until it has come, keeps as much as may be its beginning. */
static int pass_on(const struct spawn *spawn, struct reading *reading, size_t n, struct err *err)
{
    struct str all = { reading->piece, reading->n_before + n };

    if (!reading->out_begun) {
        size_t at = str_find_str(all, spawn->mark);

        reading->out_begun = at < all.n;
        if (!reading->out_begun) {
            reading->n_before = all.n < spawn->mark.n ? all.n : spawn->mark.n - 1;
            memmove(reading->piece, all.p + all.n - reading->n_before, reading->n_before);
            return 0;
        }
        reading->n_before = 0;
        all = str_skip(all, at + spawn->mark.n);
    }
    return all.n ? spawn->sink(spawn->ctx, all, err) : 0;
}

/* Reads what is there, but no more than a few pieces: the deadline must be looked at in between.
 * Closes the descriptor at its end. */
static int drain_output(const struct spawn *spawn, int *fd, struct reading *reading,
                        struct spawn_result *result, struct err *err)
{
    for (int i = 0; *fd >= 0 && i < PIECES_AT_ONCE; i++) {
        ssize_t n = read(*fd, reading->piece + reading->n_before, PIECE);
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
                           name_of(spawn), spawn->max_output);
        code = pass_on(spawn, reading, (size_t)n, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* Keeps the beginning; but until the mark has come, the end. */
static void keep_words(const struct spawn *spawn, struct reading *reading, struct str piece)
{
    size_t room = sizeof(reading->words) - reading->n_words;

    if (!reading->words_begun && room < piece.n) {
        reading->n_words -= piece.n - room;
        memmove(reading->words, reading->words + piece.n - room, reading->n_words);
        room = piece.n;
    }
    piece = str_head(piece, room);
    memcpy(reading->words + reading->n_words, piece.p, piece.n);
    reading->n_words += piece.n;
    if (!reading->words_begun) {
        struct str all = { reading->words, reading->n_words };
        size_t at = str_find_str(all, spawn->mark);

        reading->words_begun = at < all.n;
        if (reading->words_begun) {
            all = str_skip(all, at + spawn->mark.n);
            memmove(reading->words, all.p, all.n);
            reading->n_words = all.n;
        }
    }
}

/* What is not kept is read away, so that the command does not wait for a reader. */
static void drain_warnings(const struct spawn *spawn, int *fd, struct reading *reading)
{
    for (int i = 0; *fd >= 0 && i < PIPE_BYTES / WORDS; i++) {
        char piece[WORDS];
        ssize_t n = read(*fd, piece, sizeof(piece));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_fd(fd);
            return;
        }
        keep_words(spawn, reading, (struct str){ piece, (size_t)n });
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
static int follow(const struct spawn *spawn, struct child *child, struct reading *reading,
                  struct spawn_result *result, struct err *err)
{
    int code = 0;

    while (!code && !has_ended(child->pid)) {
        int64_t now = clock_mono(&clock_real);

        if (spawn->cancelled && atomic_load(spawn->cancelled)) {
            code = err_set(err, ECANCELED, "%s was stopped", name_of(spawn));
        } else if (now >= spawn->deadline_ns) {
            code =
                err_set(err, ETIMEDOUT, "%s did not finish in time and was killed", name_of(spawn));
        } else {
            wait_for_child(child, poll_timeout(spawn, now));
            code = drain_output(spawn, &child->out, reading, result, err);
            drain_warnings(spawn, &child->warnings, reading);
        }
    }
    /* Before its leader is reaped, the group's number cannot belong to anybody else; and once all
     * writers are dead, no more is left than a pipe holds: 1 MB at most, which is what one drain
     * takes. (Who has left the group may go on writing, for nobody.) */
    killpg(child->pid, SIGKILL);
    if (!code)
        code = drain_output(spawn, &child->out, reading, result, err);
    drain_warnings(spawn, &child->warnings, reading);
    return code;
}

/* The part of what was kept that fits; whole lines, where it is the end. */
static void tell_warning(const struct reading *reading, struct spawn_result *ret)
{
    struct str words = str_trim((struct str){ reading->words, reading->n_words });
    size_t most = sizeof(ret->warning) - 1;

    if (!reading->words_begun && words.n > most) {
        words = str_skip(words, words.n - most);
        words = str_skip(words, str_find(words, '\n') < words.n ? str_find(words, '\n') + 1 : 0);
    }
    words = str_head(words, most);
    memcpy(ret->warning, words.p, words.n);
    ret->warning[words.n] = '\0';
}

static int judge(const struct spawn *spawn, int status, struct spawn_result *ret, struct err *err)
{
    const char *warning = ret->warning[0] ? ret->warning : "it said nothing";

    if (WIFEXITED(status))
        ret->status = WEXITSTATUS(status);
    if (ret->status == 0)
        return 0;
    if (WIFSIGNALED(status))
        return err_set(err, EREMOTEIO, "%s was ended by signal %d: %s", name_of(spawn),
                       WTERMSIG(status), warning);
    return err_set(err, EREMOTEIO, "%s exited with status %d: %s", name_of(spawn), ret->status,
                   warning);
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
    bool no_mark = !spawn->mark.n;
    struct reading reading = { .out_begun = no_mark, .words_begun = no_mark };
    struct child child;
    int status = 0, code;

    *ret = (struct spawn_result){ .begun = no_mark, .status = -1 };
    if (is_stuck(spawn->stuck))
        return err_set(err, ETIMEDOUT,
                       "%s (process %d) can still not be killed; it waits for a file system or "
                       "belongs to another user",
                       name_of(spawn), (int)*spawn->stuck);
    code = open_child(spawn, &child, err);
    if (code < 0)
        return code;
    reading.piece = heap_array(SPAWN_MARK_MAX + PIECE, 1);
    code = follow(spawn, &child, &reading, ret, err);
    free(reading.piece);
    if (!reap(&child, &status)) {
        code = err_set(err, ETIMEDOUT, "%s (process %d) cannot be killed and is left behind",
                       name_of(spawn), (int)child.pid);
        if (spawn->stuck)
            *spawn->stuck = child.pid;
    }
    close_fd(&child.out);
    close_fd(&child.warnings);
    close_fd(&child.pidfd);
    ret->begun = reading.out_begun;
    tell_warning(&reading, ret);
    return code < 0 ? code : judge(spawn, status, ret, err);
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
