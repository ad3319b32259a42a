/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A clock that stands still until a test moves it. */
#include "manual_clock.h"

#include "test.h"

/* Stands on the stack of the thread that waits. */
struct manual_waiter {
    struct manual_waiter *next;
    pthread_cond_t *cond;
    pthread_mutex_t *lock;
    int64_t until_mono_ns;
    bool was_woken, is_being_woken; /* now: the thread that moves the clock uses cond and lock */
};

static struct manual_clock *manual_of(const struct clock *clock)
{
    return (struct manual_clock *)(uintptr_t)clock;
}

static int64_t read_time(const struct clock *clock, const int64_t *time)
{
    struct manual_clock *manual = manual_of(clock);
    int64_t now;

    pthread_mutex_lock(&manual->lock);
    now = *time;
    pthread_mutex_unlock(&manual->lock);
    return now;
}

static int64_t manual_wall(const struct clock *clock)
{
    return read_time(clock, &manual_of(clock)->wall_ns);
}

static int64_t manual_mono(const struct clock *clock)
{
    return read_time(clock, &manual_of(clock)->mono_ns);
}

static bool enlist(struct manual_clock *manual, struct manual_waiter *waiter)
{
    bool is_to_wait;

    pthread_mutex_lock(&manual->lock);
    is_to_wait = manual->mono_ns < waiter->until_mono_ns;
    if (is_to_wait) {
        waiter->next = manual->waiters;
        manual->waiters = waiter;
        manual->n_waiters++;
        pthread_cond_broadcast(&manual->changed);
    }
    pthread_mutex_unlock(&manual->lock);
    return is_to_wait;
}

static void delist(struct manual_clock *manual, struct manual_waiter *waiter)
{
    struct manual_waiter **link = &manual->waiters;

    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
    manual->n_waiters--;
    pthread_cond_broadcast(&manual->changed);
}

static bool manual_wait(const struct clock *clock, pthread_cond_t *cond, pthread_mutex_t *lock,
                        int64_t until_mono_ns)
{
    struct manual_clock *manual = manual_of(clock);
    struct manual_waiter waiter = { .cond = cond, .lock = lock, .until_mono_ns = until_mono_ns };
    bool has_passed;

    if (!enlist(manual, &waiter))
        return false;
    pthread_cond_wait(cond, lock);

    /* Whoever wakes this thread needs `lock` for it, so that it must be free until that is over. */
    pthread_mutex_unlock(lock);
    pthread_mutex_lock(&manual->lock);
    while (waiter.is_being_woken)
        pthread_cond_wait(&manual->changed, &manual->lock);
    delist(manual, &waiter);
    has_passed = manual->mono_ns >= until_mono_ns;
    pthread_mutex_unlock(&manual->lock);
    pthread_mutex_lock(lock);
    return !has_passed;
}

void manual_clock_init(struct manual_clock *manual, int64_t wall_ns, int64_t mono_ns)
{
    *manual = (struct manual_clock){
        .clock = { manual_wall, manual_mono, manual_wait },
        .wall_ns = wall_ns,
        .mono_ns = mono_ns,
    };
    pthread_mutex_init(&manual->lock, NULL);
    clock_cond_init(&manual->changed);
}

void manual_clock_destroy(struct manual_clock *manual)
{
    pthread_cond_destroy(&manual->changed);
    pthread_mutex_destroy(&manual->lock);
}

static struct manual_waiter *find_due(struct manual_clock *manual)
{
    for (struct manual_waiter *waiter = manual->waiters; waiter; waiter = waiter->next)
        if (waiter->until_mono_ns <= manual->mono_ns && !waiter->was_woken)
            return waiter;
    return NULL;
}

/* Once the lock was held here, the waiter is inside pthread_cond_wait and can't miss the call. */
static void wake(const struct manual_waiter *waiter)
{
    pthread_mutex_lock(waiter->lock);
    pthread_cond_broadcast(waiter->cond);
    pthread_mutex_unlock(waiter->lock);
}

void manual_clock_advance(struct manual_clock *manual, int64_t ns)
{
    struct manual_waiter *due;

    pthread_mutex_lock(&manual->lock);
    manual->wall_ns += ns;
    manual->mono_ns += ns;
    while ((due = find_due(manual))) {
        due->was_woken = due->is_being_woken = true;
        pthread_mutex_unlock(&manual->lock);
        wake(due);
        pthread_mutex_lock(&manual->lock);
        due->is_being_woken = false;
        pthread_cond_broadcast(&manual->changed);
    }
    pthread_mutex_unlock(&manual->lock);
}

void manual_clock_set_wall(struct manual_clock *manual, int64_t wall_ns)
{
    pthread_mutex_lock(&manual->lock);
    manual->wall_ns = wall_ns;
    pthread_mutex_unlock(&manual->lock);
}

bool manual_clock_await_waiters(struct manual_clock *manual, size_t n)
{
    int64_t deadline = clock_mono(&clock_real) + TEST_DEADLINE;
    bool in_time = true;

    pthread_mutex_lock(&manual->lock);
    while (manual->n_waiters < n && in_time)
        in_time = clock_wait(&clock_real, &manual->changed, &manual->lock, deadline);
    in_time = manual->n_waiters >= n;
    pthread_mutex_unlock(&manual->lock);
    return in_time;
}
