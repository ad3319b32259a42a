/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket is passed as systemd passes them: sd_listen_fds(3). It stays while agents come and go,
 * so that who asks meanwhile waits instead of being refused. */
#include "cmd/up_agent.h"

#include "base/arena.h"
#include "base/num.h"
#include "cmd/beside.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { PASSED_FD = 3, BACKLOG = 64, FLAG_MAX = 80 };

static const int64_t look_ns = 100 * NS_PER_MS;     /* from one look whether it lives to the next */
static const int64_t healthy_ns = 60 * NS_PER_SEC;  /* one that lived so long is started at once */
static const int64_t farewell_ns = NS_PER_SEC;      /* then it is killed: it has nothing to save */
static const int64_t ask_ns = 5 * NS_PER_SEC;       /* from one question to the next */
static const int64_t patience_ns = 30 * NS_PER_SEC; /* how long it may be silent */
static const int64_t first_backoff_ns = NS_PER_SEC / 2, most_backoff_ns = 60 * NS_PER_SEC;

/* What the keeper counts, in memory that it shares with us. */
struct counted {
    _Atomic uint64_t ends, hangs;
};

struct up_agent {
    char *socket_path;
    struct counted *counted;
    pid_t keeper;
    int rope; /* the keeper holds its other end, and ends when we let go; -1: we have */
};

/* What the keeper knows. */
struct keeper {
    char *program;
    const struct up_agent_config *config;
    struct counted *counted;
    char tick[FLAG_MAX];
    char user[FLAG_MAX]; /* --user=NAME, or --user= */
    int listener, rope;
    struct log *log;
    pid_t pid; /* of the agent; 0: there is none */
    int64_t began_ns, backoff_ns;
    int question;         /* a connection on which it is to answer; -1: none */
    int64_t asked_ns;     /* when the last one was asked */
    int64_t silent_looks; /* since it was last heard: time may pass in which nobody runs */
    bool is_cut_off;      /* its socket has been removed: nobody can ask it */
    bool is_killed;
};

static void put_number(char *to, size_t room, const char *name, int64_t number)
{
    snprintf(to, room, "%s=%lld", name, (long long)number);
}

/* In the child: there are no threads here that could hold a lock. */
static void become_agent(const struct keeper *keeper, pid_t parent)
{
    /* What the profile plugin tells is for Prometheus, which does not reach this agent: it is left
     * to one that is scraped. */
    char fds[FLAG_MAX], pid[FLAG_MAX], no_profile[] = "--profile.socket=";
    char *argv[] = { keeper->program, (char *)keeper->tick, (char *)keeper->user, no_profile,
                     NULL };
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    put_number(fds, sizeof(fds), "LISTEN_FDS", 1);
    put_number(pid, sizeof(pid), "LISTEN_PID", getpid());
    putenv(fds);
    putenv(pid);
    dup2(nowhere, STDOUT_FILENO); /* where it listens is nobody's concern */
    dup2(keeper->listener, PASSED_FD);
    fcntl(PASSED_FD, F_SETFD, 0); /* it may have been that one already */
    close_range(PASSED_FD + 1, ~0U, 0);
    execv(argv[0], argv);
    _exit(127);
}

static void begin(struct keeper *keeper)
{
    pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        become_agent(keeper, parent);
    keeper->pid = pid > 0 ? pid : 0;
    keeper->began_ns = clock_mono(&clock_real);
    keeper->silent_looks = 0;
    keeper->is_killed = false;
}

/* True: whoever wants an agent has let go. */
static bool wait_for(const struct keeper *keeper, int64_t ns)
{
    int64_t until_ns = clock_mono(&clock_real) + ns, now_ns;
    struct pollfd rope = { .fd = keeper->rope, .events = POLLIN };

    while ((now_ns = clock_mono(&clock_real)) < until_ns) {
        int r = poll(&rope, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);

        if (r > 0)
            return true;
    }
    return false;
}

static bool has_ended(struct keeper *keeper, int *ret_status)
{
    pid_t pid = keeper->pid ? waitpid(keeper->pid, ret_status, WNOHANG) : -1;

    if (pid == 0 || (pid < 0 && keeper->pid && errno == EINTR))
        return false;
    keeper->pid = 0;
    return true;
}

/* ---- its socket ---- */

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

static bool is_answered(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;

    if (fd >= 0)
        close(fd);
    return is;
}

/* As the user whose directory it is: what root does there, that user could turn on other files. */
static int bind_as_owner(int fd, const struct sockaddr_un *address,
                         const struct up_agent_config *config)
{
    bool is_root = geteuid() == 0;
    mode_t mask = umask(0177);
    int code = 0, failure;

    if (is_root && (setegid(config->group) < 0 || seteuid(config->owner) < 0))
        code = -1;
    if (code == 0) {
        unlink(address->sun_path);
        code = bind(fd, (const struct sockaddr *)address, sizeof(*address));
    }
    failure = errno;
    if (is_root && (seteuid(0) < 0 || setegid(0) < 0))
        _exit(1); /* it cannot fail, and nothing may go on like this */
    umask(mask);
    errno = failure;
    return code;
}

static int listen_at(const struct up_agent_config *config, struct err *err)
{
    const struct sockaddr_un address = address_of(config->socket_path);
    int fd, code;

    if (strlen(config->socket_path) >= sizeof(address.sun_path))
        return err_set(err, ENAMETOOLONG,
                       "%s is too long for a socket: choose another --state.directory",
                       config->socket_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && is_answered(&address)) {
        close(fd);
        return err_set(err, EADDRINUSE,
                       "another sonde up is there: its agent answers on %s; choose another "
                       "--state.directory",
                       config->socket_path);
    }
    if (fd >= 0 && bind_as_owner(fd, &address, config) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    code = errno;
    if (fd >= 0)
        close(fd);
    return err_set(err, code, "cannot listen for the agent on %s: %s", config->socket_path,
                   err_words(code));
}

static void listen_anew(struct keeper *keeper)
{
    struct err err;
    int fd = listen_at(keeper->config, &err);

    if (fd < 0) {
        LOG(keeper->log, LOG_ERROR, "nobody can ask sonde agent", LOG_STR("error", err.text));
        return;
    }
    close(keeper->listener);
    keeper->listener = fd;
    keeper->is_cut_off = false;
}

/* ---- whether it answers ---- */

static void drop_question(struct keeper *keeper)
{
    if (keeper->question >= 0)
        close(keeper->question);
    keeper->question = -1;
}

static void ask(struct keeper *keeper)
{
    static const char request[] =
        "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const struct sockaddr_un address = address_of(keeper->config->socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    keeper->question = fd;
    keeper->asked_ns = clock_mono(&clock_real);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        keeper->is_cut_off = errno == ENOENT || errno == ECONNREFUSED;
        drop_question(keeper);
    } else if (fd >= 0 && send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0) {
        drop_question(keeper);
    }
}

/* An agent whose sampler hangs replies with another status than 200: it counts as silent. */
static void listen_for_answer(struct keeper *keeper)
{
    static const char good[] = "HTTP/1.1 200 ";
    char some[64];
    ssize_t n;

    if (keeper->question < 0)
        return;
    n = recv(keeper->question, some, sizeof(some), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n >= (ssize_t)sizeof(good) - 1 && memcmp(some, good, sizeof(good) - 1) == 0)
        keeper->silent_looks = 0;
    drop_question(keeper);
}

/* Of one that is stopped, or hangs in a driver, the kernel says that all is well. */
static void look_after(struct keeper *keeper)
{
    keeper->silent_looks++;
    listen_for_answer(keeper);
    if (keeper->question < 0 && clock_mono(&clock_real) - keeper->asked_ns >= ask_ns)
        ask(keeper);
    if (keeper->is_killed || (!keeper->is_cut_off && keeper->silent_looks * look_ns < patience_ns))
        return;
    LOG(keeper->log, LOG_WARN, "sonde agent does not answer, or its sampler hangs; it is killed",
        LOG_INT("pid", keeper->pid),
        LOG_DOUBLE("silent_seconds", (double)(keeper->silent_looks * look_ns) / NS_PER_SEC));
    keeper->is_killed = true;
    if (kill(-keeper->pid, SIGKILL) < 0) /* it has no group of its own yet */
        kill(keeper->pid, SIGKILL);
}

static void back_off(struct keeper *keeper)
{
    bool was_healthy = clock_mono(&clock_real) - keeper->began_ns > healthy_ns;
    int64_t next_ns =
        was_healthy || !keeper->backoff_ns ? first_backoff_ns : 2 * keeper->backoff_ns;

    keeper->backoff_ns = next_ns < most_backoff_ns ? next_ns : most_backoff_ns;
}

/* From its start to its end; true: it is to end with us. */
static bool attend(struct keeper *keeper)
{
    int status = 0;

    if (keeper->is_cut_off)
        listen_anew(keeper);
    begin(keeper);
    while (!has_ended(keeper, &status)) {
        if (wait_for(keeper, look_ns))
            return true;
        look_after(keeper);
    }
    drop_question(keeper);
    back_off(keeper);
    atomic_fetch_add(keeper->is_killed ? &keeper->counted->hangs : &keeper->counted->ends, 1);
    LOG(keeper->log, LOG_WARN, "sonde agent has ended; it is started again",
        LOG_INT(WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)),
        LOG_DOUBLE("in_seconds", (double)keeper->backoff_ns / NS_PER_SEC));
    return wait_for(keeper, keeper->backoff_ns);
}

static bool await_end(struct keeper *keeper)
{
    int64_t until_ns = clock_mono(&clock_real) + farewell_ns;
    const struct timespec moment = { .tv_nsec = 10 * NS_PER_MS };
    int status;

    while (!has_ended(keeper, &status)) {
        if (clock_mono(&clock_real) >= until_ns)
            return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

static void end(struct keeper *keeper)
{
    if (!keeper->pid)
        return;
    kill(-keeper->pid, SIGTERM);
    if (await_end(keeper))
        return;
    kill(-keeper->pid, SIGKILL);
    await_end(keeper);
}

/* Signals are left to who started us: a Ctrl-C is meant for that one. */
static void keep(struct keeper *keeper)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    prctl(PR_SET_NAME, "sonde-up-agent");
    while (!attend(keeper))
        ;
    end(keeper);
    _exit(0);
}

static int start_keeper(struct up_agent *agent, struct keeper *keeper, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe: %s", err_words(errno));
    keeper->rope = ends[0];
    agent->rope = ends[1];
    agent->keeper = fork();
    if (agent->keeper == 0) {
        close(agent->rope);
        keep(keeper);
    }
    close(keeper->rope);
    if (agent->keeper > 0)
        return 0;
    close(agent->rope);
    return err_set(err, errno, "cannot start a process: %s", err_words(errno));
}

static struct counted *share_counts(void)
{
    void *memory = mmap(NULL, sizeof(struct counted), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static struct up_agent *free_agent(struct up_agent *agent)
{
    if (agent->counted)
        munmap(agent->counted, sizeof(*agent->counted));
    free(agent->socket_path);
    free(agent);
    return NULL;
}

int up_agent_start(const struct up_agent_config *config, struct up_agent **ret, struct err *err)
{
    struct up_agent *agent = heap_alloc(sizeof(*agent));
    struct keeper keeper = {
        .config = config,
        .listener = listen_at(config, err),
        .log = config->log,
        .question = -1,
    };
    int code = keeper.listener < 0 ? keeper.listener : 0;

    agent->socket_path = heap_str(str_of(config->socket_path));
    agent->counted = keeper.counted = share_counts();
    if (code == 0 && !agent->counted)
        code = err_set(err, errno, "cannot share memory: %s", err_words(errno));
    keeper.program =
        config->program ? heap_str(str_of(config->program)) : program_beside_us("sonde-agent");
    put_number(keeper.tick, sizeof(keeper.tick), "--timer",
               (config->tick_ns + NS_PER_SEC - 1) / NS_PER_SEC);
    snprintf(keeper.user, sizeof(keeper.user), "--user=%s", config->user ? config->user : "");
    if (code == 0)
        code = start_keeper(agent, &keeper, err);
    if (keeper.listener >= 0)
        close(keeper.listener);
    free(keeper.program);
    if (code < 0) {
        free_agent(agent);
        return code;
    }
    *ret = agent;
    return 0;
}

void up_agent_end(struct up_agent *agent)
{
    if (!agent || agent->rope < 0)
        return;
    close(agent->rope);
    agent->rope = -1;
}

struct up_agent *up_agent_stop(struct up_agent *agent)
{
    int64_t until_ns = clock_mono(&clock_real) + 2 * farewell_ns + NS_PER_SEC;
    const struct timespec moment = { .tv_nsec = 10 * NS_PER_MS };

    if (!agent)
        return NULL;
    up_agent_end(agent);
    while (waitpid(agent->keeper, NULL, WNOHANG) == 0 && clock_mono(&clock_real) < until_ns)
        nanosleep(&moment, NULL);
    unlink(agent->socket_path);
    return free_agent(agent);
}

void up_agent_stats(const struct up_agent *agent, struct up_agent_stats *ret)
{
    *ret = (struct up_agent_stats){ agent->counted->ends, agent->counted->hangs };
}
