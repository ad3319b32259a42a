/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time behind one interface, so that a test can stand still, jump or run ahead.
 * Wall time is for what people and Slurm see; monotonic time for deadlines, ages and intervals. */
#ifndef SONDE_BASE_CLOCK_H
#define SONDE_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NS_PER_SEC INT64_C(1000000000)
#define NS_PER_MS  INT64_C(1000000)

struct clock {
    int64_t (*wall_ns)(const struct clock *clock);
    int64_t (*mono_ns)(const struct clock *clock);
    /* As pthread_cond_timedwait, until a monotonic time of this clock. False when it has passed. */
    bool (*wait)(const struct clock *clock, pthread_cond_t *cond, pthread_mutex_t *lock,
                 int64_t until_mono_ns);
};

extern const struct clock clock_real;

/* clock_real, unless the environment has SONDE_CLOCK=SECONDS: then wall time stands at that moment,
 * so that whole programs say the same in every run of a test. */
const struct clock *clock_of_environment(void);

static inline int64_t clock_wall(const struct clock *clock)
{
    return clock->wall_ns(clock);
}

static inline int64_t clock_mono(const struct clock *clock)
{
    return clock->mono_ns(clock);
}

static inline bool clock_wait(const struct clock *clock, pthread_cond_t *cond,
                              pthread_mutex_t *lock, int64_t until_mono_ns)
{
    return clock->wait(clock, cond, lock, until_mono_ns);
}

/* Condition variables that are waited on through a clock are made with this. */
void clock_cond_init(pthread_cond_t *cond);

#endif
