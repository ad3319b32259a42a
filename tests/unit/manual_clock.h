/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A clock for tests: it stands still until the test moves it, and threads that wait on it sleep
 * until then. Implements base/clock.h; pass &manual.clock where a clock is wanted. */
#ifndef SONDE_TESTS_MANUAL_CLOCK_H
#define SONDE_TESTS_MANUAL_CLOCK_H

#include "base/clock.h"

#include <stddef.h>

struct manual_waiter;

struct manual_clock {
    struct clock clock; /* first: the functions below get back to the rest from it */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a thread began or ended its wait */
    int64_t wall_ns, mono_ns;
    struct manual_waiter *waiters;
    size_t n_waiters;
};

void manual_clock_init(struct manual_clock *manual, int64_t wall_ns, int64_t mono_ns);
void manual_clock_destroy(struct manual_clock *manual);

/* Both times go on by `ns`, and whoever waited for a moment that has come wakes. Must not be called
 * with a lock held that a waiting thread gave to clock_wait. */
void manual_clock_advance(struct manual_clock *manual, int64_t ns);

/* The wall clock is set, as by an administrator or NTP; monotonic time does not notice. */
void manual_clock_set_wall(struct manual_clock *manual, int64_t wall_ns);

/* Returns when at least `n` threads wait on this clock: the way for a test to know that a thread
 * got there. False if that has not happened within TEST_DEADLINE of real time. */
bool manual_clock_await_waiters(struct manual_clock *manual, size_t n);

#endif
