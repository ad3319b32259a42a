/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stands before clock_gettime(2): the program's own comes before that of any library. */
#include "kernel_time.h"

#include "base/arena.h"
#include "base/clock.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Those that can be read in place of CLOCK_MONOTONIC and CLOCK_REALTIME. */
static const clockid_t clocks[] = {
    CLOCK_REALTIME,        CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
    CLOCK_REALTIME_COARSE, CLOCK_BOOTTIME,  CLOCK_MONOTONIC_COARSE
};

static struct {
    pthread_mutex_t lock;
    int64_t ahead_ns[COUNT(clocks)];
    int64_t still_ns[COUNT(clocks)]; /* where they stand */
    bool (*has_happened)(void);      /* NULL: they go on */
    int64_t leap_ns;
    uint64_t readings;
} kernel = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int64_t read_kernel(clockid_t id)
{
    struct timespec now = { 0 };

    syscall(SYS_clock_gettime, id, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

void time_leap(int64_t ns)
{
    pthread_mutex_lock(&kernel.lock);
    for (size_t i = 0; i < COUNT(clocks); i++)
        kernel.ahead_ns[i] += ns;
    pthread_mutex_unlock(&kernel.lock);
}

void time_leap_when(bool (*has_happened)(void), int64_t ns)
{
    pthread_mutex_lock(&kernel.lock);
    for (size_t i = 0; i < COUNT(clocks); i++)
        kernel.still_ns[i] = read_kernel(clocks[i]) + kernel.ahead_ns[i];
    kernel.has_happened = has_happened;
    kernel.leap_ns = ns;
    pthread_mutex_unlock(&kernel.lock);
}

uint64_t time_readings(void)
{
    uint64_t n;

    pthread_mutex_lock(&kernel.lock);
    n = kernel.readings;
    pthread_mutex_unlock(&kernel.lock);
    return n;
}

/* They go on, later than they stood. */
static void go_on(void)
{
    for (size_t i = 0; i < COUNT(clocks); i++)
        kernel.ahead_ns[i] = kernel.still_ns[i] + kernel.leap_ns - read_kernel(clocks[i]);
    kernel.has_happened = NULL;
}

static int64_t read_clock(size_t i)
{
    int64_t ns;

    pthread_mutex_lock(&kernel.lock);
    kernel.readings += clocks[i] == CLOCK_MONOTONIC;
    if (kernel.has_happened && kernel.has_happened())
        go_on();
    ns = kernel.has_happened ? kernel.still_ns[i] : read_kernel(clocks[i]) + kernel.ahead_ns[i];
    pthread_mutex_unlock(&kernel.lock);
    return ns;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    for (size_t i = 0; i < COUNT(clocks); i++)
        if (clocks[i] == id) {
            int64_t ns = read_clock(i);

            *ret = (struct timespec){ .tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC };
            return 0;
        }
    return (int)syscall(SYS_clock_gettime, id, ret);
}
