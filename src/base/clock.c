/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real clocks, and the fixed wall clock of SONDE_CLOCK. */
#include "base/clock.h"

#include "base/num.h"

#include <errno.h>
#include <stdlib.h>

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

const struct clock clock_real = { real_wall, real_mono, real_wait };

struct still_clock {
    struct clock clock;
    int64_t wall_ns;
};

static int64_t still_wall(const struct clock *clock)
{
    return ((const struct still_clock *)clock)->wall_ns;
}

const struct clock *clock_of_environment(void)
{
    static struct still_clock still = { { still_wall, real_mono, real_wait }, 0 };
    const char *text = getenv("SONDE_CLOCK");
    int64_t seconds;

    if (!text || !num_get_i64(str_of(text), &seconds) ||
        __builtin_mul_overflow(seconds, NS_PER_SEC, &still.wall_ns))
        return &clock_real;
    return &still.clock;
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}
