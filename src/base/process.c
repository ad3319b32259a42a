/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads CPU time, memory and open files of this process from /proc/self. */
#include "base/process.h"

#include "base/num.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

void process_keep_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* A line of proc_pid_maps(5): "BEGIN-END r-xp OFFSET DEVICE INODE /PATH". Code of a file is never
 * written to, so that nothing but the mapping is lost. */
static void forget_code(const char *line)
{
    char *next;
    uintptr_t begin = strtoul(line, &next, 16),
              end = *next == '-' ? strtoul(next + 1, &next, 16) : 0;

    if (begin < end && str_starts(str_of(next), STR(" r-xp ")) && strchr(next, '/'))
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void process_forget_start(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t size = 0;

    if (!maps)
        return;
    while (getline(&line, &size, maps) > 0)
        forget_code(line);
    free(line);
    fclose(maps);
}

static struct str read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size);

    if (fd >= 0)
        close(fd);
    return (struct str){ text, n < 0 ? 0 : (size_t)n };
}

/* Of the two clocks' difference, once: read at different moments it would wander, and who counts
 * restarts by the start time would see some. */
static double boot_seconds;

static void read_boot_time(void)
{
    struct timespec wall, boot;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    boot_seconds =
        (double)(wall.tv_sec - boot.tv_sec) + (double)(wall.tv_nsec - boot.tv_nsec) / 1e9;
}

static uint64_t count_fds(void)
{
    struct stat status;
    uint64_t n = 0;
    DIR *dir;

    /* Since Linux 6.2 it is told; an agent has thousands. */
    if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0)
        return (uint64_t)status.st_size;
    dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the one that lists them */
}

/* The second field is the program's name in parentheses, which may hold anything: what follows the
 * last parenthesis is the third. */
static struct str after_name(struct str stat)
{
    size_t n = stat.n;

    while (n && stat.p[n - 1] != ')')
        n--;
    return str_skip(stat, n + 1);
}

void process_read(struct process *ret)
{
    enum { UTIME = 14, STIME = 15, THREADS = 20, START = 22, VSIZE = 23, RSS = 24, FIELDS = 25 };
    char text[1024];
    struct str rest = after_name(read_small("/proc/self/stat", text, sizeof(text)));
    double ticks = (double)sysconf(_SC_CLK_TCK);
    uint64_t fields[FIELDS] = { 0 };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rlimit limit;

    *ret = (struct process){ 0 };
    pthread_once(&once, read_boot_time);
    for (int i = 3; i < FIELDS && rest.p; i++)
        num_get_u64(str_cut(&rest, ' '), &fields[i]);
    ret->cpu_seconds = (double)(fields[UTIME] + fields[STIME]) / ticks;
    ret->start_time_seconds = boot_seconds + (double)fields[START] / ticks;
    ret->virtual_bytes = fields[VSIZE];
    ret->resident_bytes = fields[RSS] * (uint64_t)sysconf(_SC_PAGESIZE);
    ret->threads = fields[THREADS];
    ret->open_fds = count_fds();
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        ret->max_fds = limit.rlim_cur;
    if (getrlimit(RLIMIT_AS, &limit) == 0)
        ret->virtual_max_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}
