/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real clocks, and those that a test has in its hand. */
#include "base/clock.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static int64_t real_wall(const struct clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_REALTIME);
}

static int64_t real_mono(const struct clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_MONOTONIC);
}

static bool real_wait(const struct clock *clock, pthread_cond_t *cond, pthread_mutex_t *lock,
                      int64_t until_mono_ns)
{
    struct timespec until = { .tv_sec = until_mono_ns / NS_PER_SEC,
                              .tv_nsec = until_mono_ns % NS_PER_SEC };

    (void)clock;
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

const struct clock clock_real = { real_wall, real_mono, real_wait, 0 };

struct still_clock {
    struct clock clock;
    int64_t wall_ns;
};

static int64_t still_wall(const struct clock *clock)
{
    return ((const struct still_clock *)clock)->wall_ns;
}

struct ahead_clock {
    struct clock clock;
    const _Atomic int64_t *ahead_ns; /* mapped */
    const int64_t *still_ns;         /* it does not pass by itself from there; NULL: it does */
};

static int64_t read_ahead(const struct clock *clock, clockid_t id)
{
    const struct ahead_clock *ahead = (const struct ahead_clock *)clock;

    return (ahead->still_ns ? *ahead->still_ns : read_clock(id)) + atomic_load(ahead->ahead_ns);
}

static int64_t ahead_wall(const struct clock *clock)
{
    return read_ahead(clock, CLOCK_REALTIME);
}

static int64_t ahead_mono(const struct clock *clock)
{
    return read_ahead(clock, CLOCK_MONOTONIC);
}

/* The condition is not signalled when the file changes: such a wait ends early as if it were, and
 * the caller waits again. */
static bool ahead_wait(const struct clock *clock, pthread_cond_t *cond, pthread_mutex_t *lock,
                       int64_t until_mono_ns)
{
    int64_t nap_ns = clock_nap(clock, until_mono_ns - ahead_mono(clock));

    return real_wait(clock, cond, lock, read_clock(CLOCK_MONOTONIC) + nap_ns) ||
           ahead_mono(clock) < until_mono_ns;
}

/* NULL if there is no such file, or nothing in it. */
static const _Atomic int64_t *map_number(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = MAP_FAILED;

    if (fd >= 0 && lseek(fd, 0, SEEK_END) >= (off_t)sizeof(int64_t))
        mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return mapped == MAP_FAILED ? NULL : mapped;
}

const struct clock *clock_of_environment(void)
{
    static struct still_clock still = { { still_wall, real_mono, real_wait, 0 }, 0 };
    static struct ahead_clock ahead = {
        { ahead_wall, ahead_mono, ahead_wait, 10 * NS_PER_MS },
        NULL,
        NULL,
    };
    const char *text = getenv("SONDE_CLOCK"), *path = getenv("SONDE_CLOCK_AHEAD");
    int64_t seconds;
    bool stands = text && num_get_i64(str_of(text), &seconds) &&
                  !__builtin_mul_overflow(seconds, NS_PER_SEC, &still.wall_ns);

    if (path && !ahead.ahead_ns)
        ahead.ahead_ns = map_number(path);
    if (!ahead.ahead_ns)
        return stands ? &still.clock : &clock_real;
    ahead.still_ns = stands ? &still.wall_ns : NULL;
    return &ahead.clock;
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}
