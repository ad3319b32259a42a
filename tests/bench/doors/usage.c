/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU clocks of processes: clock_getcpuclockid(3); ended children: getrusage(2); children that live
 * and their memory: proc(5), task/TID/children and status. */
#include "usage.h"

#include "base/num.h"
#include "base/str.h"

#include "../bench.h"

#include <ctype.h>
#include <sys/resource.h>

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static double rusage_seconds(int who)
{
    struct rusage usage;

    getrusage(who, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

static double process_seconds(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (!pid || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* The first `room` bytes of a file, ended by NUL; empty if it cannot be read. */
static struct str read_start(const char *path, char *to, size_t room)
{
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(to, 1, room, file) : 0;

    if (file)
        fclose(file);
    return (struct str){ to, n };
}

/* Calls are in turn: no thread of ours has children but the first. */
static struct str children(char *to, size_t room)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    return str_trim(read_start(path, to, room));
}

static pid_t next_pid(struct str *list)
{
    int64_t pid;

    return num_get_i64(str_cut(list, ' '), &pid) ? (pid_t)pid : 0;
}

pid_t usage_child(void)
{
    char text[1024];
    struct str list = children(text, sizeof(text));

    return list.n ? next_pid(&list) : 0;
}

struct usage usage_now(const pid_t daemons[DAEMONS])
{
    struct usage now = { .cpu = rusage_seconds(RUSAGE_SELF) + rusage_seconds(RUSAGE_CHILDREN),
                         .wall = bench_wall_seconds() };
    char text[1024];

    for (struct str list = children(text, sizeof(text)); list.n;)
        now.cpu += process_seconds(next_pid(&list));
    for (int i = 0; i < DAEMONS; i++)
        now.daemons[i] = process_seconds(daemons[i]);
    return now;
}

struct usage usage_between(const struct usage *from, const struct usage *to)
{
    struct usage between = { .cpu = to->cpu - from->cpu, .wall = to->wall - from->wall };

    for (int i = 0; i < DAEMONS; i++)
        between.daemons[i] = to->daemons[i] - from->daemons[i];
    return between;
}

uint64_t usage_peak_bytes(pid_t pid)
{
    char path[64], text[4096];
    struct str line, rest;
    uint64_t kibibytes;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    rest = read_start(path, text, sizeof(text));
    rest = str_skip(rest, str_find_str(rest, STR("VmHWM:")) + strlen("VmHWM:"));
    line = str_trim(str_cut(&rest, '\n'));
    return num_get_u64(str_cut(&line, ' '), &kibibytes) ? kibibytes * 1024 : 0;
}
