/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts a program that serves /metrics, and measures what it uses. */
#include "daemon.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"

#include "../bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { START_MS = 30 * 1000, STOP_MS = 10 * 1000, PAUSE_MS = 20, ANSWER_MAX = 64 << 20 };

static struct sockaddr_in local(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

uint16_t daemon_port(void)
{
    struct sockaddr_in any = local(0);
    socklen_t size = sizeof(any);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
        getsockname(fd, (struct sockaddr *)&any, &size) < 0)
        bench_give_up("no port is free: %m");
    close(fd);
    return ntohs(any.sin_port);
}

static int dial(const struct daemon *daemon)
{
    struct sockaddr_in address = local(daemon->port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool has_ended(const struct daemon *daemon)
{
    return waitpid(daemon->pid, NULL, WNOHANG) != 0;
}

static _Noreturn void become(const char *const *argv, const char *log)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1); /* as sonde-agent.service does */
    execv(argv[0], (char *const *)argv);
    perror(argv[0]);
    _exit(1);
}

struct daemon daemon_start(const char *name, const char *const *argv, uint16_t port,
                           const char *log)
{
    struct daemon daemon = { .pid = fork(), .port = port, .name = name };
    int fd;

    if (daemon.pid == 0)
        become(argv, log);
    if (daemon.pid < 0)
        bench_give_up("%s cannot be started: %m", name);
    for (int waited = 0; (fd = dial(&daemon)) < 0; waited += PAUSE_MS) {
        if (has_ended(&daemon) || waited >= START_MS)
            bench_give_up("%s does not listen: see %s", name, log);
        poll(NULL, 0, PAUSE_MS);
    }
    close(fd);
    return daemon;
}

void daemon_stop(struct daemon *daemon)
{
    kill(daemon->pid, SIGCONT);
    kill(daemon->pid, SIGTERM);
    for (int waited = 0; !has_ended(daemon); waited += PAUSE_MS) {
        if (waited >= STOP_MS)
            kill(daemon->pid, SIGKILL);
        poll(NULL, 0, PAUSE_MS);
    }
    daemon->pid = 0;
}

double daemon_cpu_seconds(const struct daemon *daemon)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(daemon->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        bench_give_up("%s has ended", daemon->name);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* The format that Prometheus likes best, so that the agent writes one and not two. */
static void get(const struct daemon *daemon, const char *encoding, struct buf *to)
{
    char request[512];
    ssize_t n;
    int fd = dial(daemon);

    snprintf(request, sizeof(request),
             "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
             "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n"
             "Accept-Encoding: %s\r\n\r\n",
             encoding);
    if (fd < 0 || write(fd, request, strlen(request)) != (ssize_t)strlen(request))
        bench_give_up("%s does not take requests: %m", daemon->name);
    buf_init(to, ANSWER_MAX);
    do {
        char *room = buf_room(to, 65536);

        n = room ? read(fd, room, 65536) : -1;
        if (n > 0)
            to->n += (size_t)n;
    } while (n > 0);
    close(fd);
    if (n < 0 || !str_starts(buf_str(to), STR("HTTP/1.1 200")))
        bench_give_up("%s answers otherwise than with its metrics", daemon->name);
}

size_t daemon_scrape(const struct daemon *daemon)
{
    struct buf answer;
    size_t n;

    get(daemon, "gzip", &answer);
    n = answer.n;
    buf_free(&answer);
    return n;
}

double daemon_sample(const struct daemon *daemon, const char *name)
{
    struct buf answer;
    double value = NAN;
    char start[128];

    snprintf(start, sizeof(start), "%s ", name);
    get(daemon, "identity", &answer);
    for (struct str rest = buf_str(&answer); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        if (str_starts(line, str_of(start)))
            value = strtod(line.p + strlen(start), NULL);
    }
    buf_free(&answer);
    return value;
}

/* The first bytes of /proc/PID/NAME. */
static struct str about(const struct daemon *daemon, const char *name, char *to, size_t room)
{
    char path[128];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", daemon->pid, name);
    file = fopen(path, "re");
    if (!file)
        bench_give_up("%s has ended", daemon->name);
    n = fread(to, 1, room, file);
    fclose(file);
    return (struct str){ to, n };
}

static double bytes_after(struct str text, struct str key)
{
    struct str rest = str_skip(text, str_find_str(text, key) + key.n);
    struct str line = str_trim(str_cut(&rest, '\n'));
    uint64_t kibibytes;

    return num_get_u64(str_cut(&line, ' '), &kibibytes) ? (double)kibibytes * 1024 : NAN;
}

struct daemon_memory daemon_memory(const struct daemon *daemon)
{
    char text[4096];
    struct str status = about(daemon, "status", text, sizeof(text));

    return (struct daemon_memory){ bytes_after(status, STR("VmRSS:")),
                                   bytes_after(status, STR("RssAnon:")) };
}

bool daemon_has_started(const struct daemon *daemon)
{
    char name[64], text[4096];
    struct str rest;

    snprintf(name, sizeof(name), "task/%d/children", daemon->pid);
    if (about(daemon, name, text, sizeof(text)).n)
        return true;
    rest = about(daemon, "stat", text, sizeof(text));
    rest = str_skip(rest, str_find_str(rest, STR(") ")) + 2);
    /* cminflt is the eleventh field of proc_pid_stat(5), the state the third. */
    for (int field = 3; field < 11; field++)
        str_cut(&rest, ' ');
    return !str_eq(str_cut(&rest, ' '), STR("0"));
}
