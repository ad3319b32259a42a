/* SPDX-License-Identifier: GPL-2.0-or-later */
/* credentials(7), signal(7), prctl(2): PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG. */
#include "cmd/run_child.h"

#include "base/process.h"
#include "base/quote.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/wait.h>

void child_prepare(struct child *child)
{
    struct sigaction before;
    sigset_t all;

    *child = (struct child){ 0 };
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        child->is_closed[fd] = fcntl(fd, F_GETFD) < 0;
    process_keep_standard_fds();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &child->mask);
    /* Ignored, it would make children end unseen. */
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &before);
    child->ignores_sigchld = before.sa_handler == SIG_IGN;
}

/* In the child, between fork and exec. */
_Noreturn static void become(const struct child *child, char **argv, pid_t parent, int failure)
{
    int code;

    /* Whoever kills us with SIGKILL, which cannot be passed on, means the command. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (child->is_closed[fd])
            close(fd);
    if (child->ignores_sigchld)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &child->mask, NULL);
    execvp(argv[0], argv);
    code = errno;
    if (write(failure, &code, sizeof(code)) < 0)
        _exit(126);
    _exit(127);
}

/* So that whoever waits for the command to close its end of a pipe does not wait for us. */
static void let_go(bool keeps_stdout)
{
    int null;

    closefrom(STDERR_FILENO + 1);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    if (!keeps_stdout)
        dup2(null, STDOUT_FILENO);
    close(null);
}

/* Any directory of PATH that may not be entered makes execvp say EACCES, where a shell says that
 * there is no such command. */
static bool is_in_path(const char *command)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];

    for (struct str rest = str_of(path ? path : "/bin:/usr/bin"); rest.p;) {
        struct str directory = str_cut(&rest, ':');

        snprintf(file, sizeof(file), "%.*s/%s", STR_ARG(directory), command);
        if (access(file, F_OK) == 0)
            return true;
    }
    return false;
}

static int refuse(const char *command, int code, struct err *err)
{
    if (code == EACCES && !strchr(command, '/') && !is_in_path(command))
        code = ENOENT;
    return err_set(err, code, "%s: %s", quote(str_of(command)).text,
                   code == ENOENT ? "there is no such command, or not the interpreter that it names"
                                  : err_words(code));
}

int child_start(struct child *child, char **argv, bool keeps_stdout, struct err *err)
{
    pid_t parent = getpid();
    int failure[2], code = 0;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(failure, O_CLOEXEC) < 0 || (child->pid = fork()) < 0)
        return err_set(err, errno, "cannot start %s: %s; are the limits on processes too low?",
                       quote(str_of(argv[0])).text, err_words(errno));
    if (child->pid == 0)
        become(child, argv, parent, failure[1]);
    close(failure[1]);
    if (read(failure[0], &code, sizeof(code)) == sizeof(code))
        return refuse(argv[0], code, err);
    let_go(keeps_stdout);
    return 0;
}

/* What the terminal sends goes to the whole foreground group, the command included; only its hangup
 * goes to the session's leader alone. What a process sends is taken as meant for the command, also
 * when it was sent to all of the group: Slurm's proctrack/cgroup signals nobody but its tasks. */
static bool is_for_command(const siginfo_t *info)
{
    if (info->si_code > 0)
        return (info->si_signo == SIGHUP || info->si_signo == SIGCONT) && getsid(0) == getpid();
    /* Our own writing to a pipe without a reader. */
    return info->si_signo != SIGCHLD && info->si_pid != getpid();
}

static void pass_on(const struct child *child, const siginfo_t *info)
{
    if (info->si_code == SI_QUEUE)
        sigqueue(child->pid, info->si_signo, info->si_value);
    else
        kill(child->pid, info->si_signo);
}

static bool stops_from_terminal(int signal)
{
    return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void see_if_stopped(struct child *child)
{
    siginfo_t info = { 0 };

    while (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
           info.si_pid) {
        child->is_stopped = info.si_code == CLD_STOPPED;
        info.si_pid = 0;
    }
}

/* The shell takes the terminal back when it sees its own child stop, which we are. Not when the
 * command alone was told to stop: whoever did that will not wake us. */
static void stop_with(struct child *child)
{
    if (!child->is_stopped || !child->was_told_to_stop)
        return;
    child->was_told_to_stop = false;
    kill(getpid(), SIGSTOP);
}

/* Waits for orphans. True, with *ret_status, if the command has ended. */
static bool see_who_ended(struct child *child, int *ret_status)
{
    for (;;) {
        siginfo_t info = { 0 };

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return false;
        if (info.si_pid == child->pid) {
            child->end_signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
            *ret_status = child->end_signal ? 128 + child->end_signal : info.si_status;
            return true;
        }
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
    }
}

int child_follow(struct child *child)
{
    sigset_t all;
    int status;

    sigfillset(&all);
    while (!see_who_ended(child, &status)) {
        siginfo_t info;

        see_if_stopped(child);
        stop_with(child);
        if (sigwaitinfo(&all, &info) < 0)
            continue;
        if (stops_from_terminal(info.si_signo))
            child->was_told_to_stop = true;
        else if (info.si_signo == SIGCONT)
            child->was_told_to_stop = false;
        else if (info.si_signo == SIGINT && info.si_code > 0)
            child->was_interrupted = true;
        if (is_for_command(&info))
            pass_on(child, &info);
    }
    return status;
}

void child_exit(const struct child *child, int status, bool is_clean)
{
    sigset_t interrupt;

    /* Only what was waited for counts as ours with whoever waits for us: time(1), Slurm. */
    waitpid(child->pid, NULL, 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    /* A shell leaves its loop at Ctrl-C only if it sees what ran there end by it. */
    if (child->end_signal == SIGINT && child->was_interrupted) {
        sigemptyset(&interrupt);
        sigaddset(&interrupt, SIGINT);
        signal(SIGINT, SIG_DFL);
        kill(getpid(), SIGINT);
        sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
    }
    if (is_clean)
        exit(status);
    _exit(status);
}
