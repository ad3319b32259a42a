/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs `sonde report --drain --follow` as a child and restarts it when it ends. */
#include "cmd/drain_child.h"

#include "base/arena.h"
#include "base/thread.h"
#include "cmd/beside.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BAD_USAGE = 2 };

static const int64_t look_ns = 100 * NS_PER_MS;    /* from one look whether it lives to the next */
static const int64_t healthy_ns = 60 * NS_PER_SEC; /* one that lived so long is started at once */
static const int64_t farewell_ns = NS_PER_SEC;     /* then it is killed, before our own end */
static const int64_t death_ns = 2 * NS_PER_SEC;    /* … what was killed */
static const int64_t first_backoff_ns = NS_PER_SEC, most_backoff_ns = 300 * NS_PER_SEC;

struct drain_child {
    char *program, *flag;
    const struct clock *clock;
    struct log *log;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping; /* under the lock */
    atomic_bool is_up;

    pid_t pid; /* the thread's own, as what follows */
    int64_t began_ns, backoff_ns;
};

/* What is between fork and exec may only make calls of signal-safety(7). It writes its log where
 * ours goes, and does not outlive us. */
static void become(char *const *argv, pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    execv(argv[0], argv);
    _exit(127);
}

static int begin(struct drain_child *child)
{
    char drain[] = "--drain", follow[] = "--follow";
    char *const argv[] = { child->program, child->flag, drain, follow, NULL };
    pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        become(argv, parent);
    if (pid < 0)
        return -errno;
    child->pid = pid;
    child->began_ns = clock_mono(child->clock);
    atomic_store(&child->is_up, true);
    return 0;
}

/* False while it lives. */
static bool has_ended(struct drain_child *child, int *ret_status)
{
    pid_t pid = waitpid(child->pid, ret_status, WNOHANG);

    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    child->pid = 0;
    atomic_store(&child->is_up, false);
    return true;
}

/* True: it is time to end. */
static bool wait_for(struct drain_child *child, int64_t ns)
{
    int64_t until_ns = clock_mono(child->clock) + ns;
    bool is_stopping;

    pthread_mutex_lock(&child->lock);
    while (!child->is_stopping && clock_mono(child->clock) < until_ns)
        clock_wait(child->clock, &child->wake, &child->lock, until_ns);
    is_stopping = child->is_stopping;
    pthread_mutex_unlock(&child->lock);
    return is_stopping;
}

static void tell_end(const struct drain_child *child, int status)
{
    bool is_usage = WIFEXITED(status) && WEXITSTATUS(status) == BAD_USAGE;

    LOG(child->log, LOG_ERROR, "sonde report --drain has ended; it is started again",
        LOG_INT(WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)),
        LOG_INT("in_seconds", child->backoff_ns / NS_PER_SEC),
        LOG_STR("hint", is_usage ? "look at the file of --report.config" : NULL));
}

static void back_off(struct drain_child *child, bool was_healthy)
{
    int64_t next_ns = was_healthy || !child->backoff_ns ? first_backoff_ns : 2 * child->backoff_ns;

    child->backoff_ns = next_ns < most_backoff_ns ? next_ns : most_backoff_ns;
}

/* From its start to its end, or to ours. */
static void attend(struct drain_child *child)
{
    int status = 0, code = begin(child);

    if (code < 0) {
        back_off(child, false);
        LOG(child->log, LOG_ERROR, "sonde report --drain cannot be started",
            LOG_STR("error", err_words(-code)));
        return;
    }
    while (!has_ended(child, &status))
        if (wait_for(child, look_ns))
            return;
    back_off(child, clock_mono(child->clock) - child->began_ns > healthy_ns);
    tell_end(child, status);
}

static bool await_end(struct drain_child *child, int64_t ns)
{
    int64_t until_ns = clock_mono(&clock_real) + ns;
    const struct timespec moment = { .tv_nsec = 10 * NS_PER_MS };
    int status;

    while (!has_ended(child, &status)) {
        if (clock_mono(&clock_real) >= until_ns)
            return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

static void end(struct drain_child *child)
{
    if (!child->pid)
        return;
    kill(child->pid, SIGTERM);
    if (await_end(child, farewell_ns))
        return;
    kill(-child->pid, SIGKILL);
    await_end(child, death_ns);
}

static void *run(void *arg)
{
    struct drain_child *child = arg;

    do
        attend(child);
    while (!wait_for(child, child->pid ? 0 : child->backoff_ns));
    end(child);
    return NULL;
}

static char *flag_of(const char *config_file)
{
    char flag[PATH_MAX + 32];

    snprintf(flag, sizeof(flag), "--config.file=%s", config_file);
    return heap_str(str_of(flag));
}

static void free_child(struct drain_child *child)
{
    pthread_mutex_destroy(&child->lock);
    pthread_cond_destroy(&child->wake);
    free(child->program);
    free(child->flag);
    free(child);
}

int drain_child_start(const struct drain_child_config *config, struct drain_child **ret,
                      struct err *err)
{
    struct drain_child *child = heap_alloc(sizeof(*child));
    int code;

    child->program =
        config->program ? heap_str(str_of(config->program)) : program_beside_us("sonde-report");
    child->flag = flag_of(config->config_file);
    child->clock = config->clock;
    child->log = config->log;
    pthread_mutex_init(&child->lock, NULL);
    clock_cond_init(&child->wake);
    code = thread_start(&child->thread, "drain", run, child, err);
    if (code < 0) {
        free_child(child);
        return code;
    }
    *ret = child;
    return 0;
}

void drain_child_end(struct drain_child *child)
{
    if (!child)
        return;
    pthread_mutex_lock(&child->lock);
    child->is_stopping = true;
    pthread_cond_signal(&child->wake);
    pthread_mutex_unlock(&child->lock);
}

struct drain_child *drain_child_stop(struct drain_child *child)
{
    if (!child)
        return NULL;
    drain_child_end(child);
    pthread_join(child->thread, NULL);
    free_child(child);
    return NULL;
}

bool drain_child_is_up(struct drain_child *child)
{
    return atomic_load(&child->is_up);
}
