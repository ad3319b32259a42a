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
    int64_t longest_nap_ns; /* it may jump unseen: sleep no longer at a time; 0: it does not */
};

extern const struct clock clock_real;

/* clock_real, unless the environment has one for tests of whole programs:
 * SONDE_CLOCK=SECONDS     wall time stands at that moment, so that every run prints the same;
 * SONDE_CLOCK_AHEAD=FILE  both times are ahead of the real ones by the nanoseconds in the file, a
 *                         native int64_t that the test raises to let time pass;
 * with both of them       both times stand at SECONDS, and pass only when the test raises that. */
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

/* How long to sleep at most by other means than clock_wait, to be awake when `ns` have passed. */
static inline int64_t clock_nap(const struct clock *clock, int64_t ns)
{
    return clock->longest_nap_ns && ns > clock->longest_nap_ns ? clock->longest_nap_ns : ns;
}

/* Condition variables that are waited on through a clock are made with this. */
void clock_cond_init(pthread_cond_t *cond);

#endif
