/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that receives signals and limits the time that a stop takes. */
#include "base/stop_guard.h"

#include "base/arena.h"
#include "base/thread.h"

#include <stdlib.h>
#include <unistd.h>

struct stop_guard {
    sigset_t signals;
    const struct clock *clock;
    struct log *log;
    pthread_t thread;

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t changed;
    bool must_reload, is_stopping, has_failed, has_ended;
    int64_t began_ns; /* when the stop began */
    int status;       /* to exit with */
    const char *part; /* that the main thread waits for */
    bool is_writer;   /* of that part */
    const char *late; /* the part during which the time passed; NULL: it has not */
    struct stop_guard_hooks hooks;
};

/* --- the thread --- */

/* Without the lock while it writes the log, as below: stderr may hang too. */
static void note_signal(struct stop_guard *guard, int signal)
{
    bool is_news;

    pthread_mutex_lock(&guard->lock);
    if (signal == SIGHUP) {
        guard->must_reload = true;
    } else {
        guard->is_stopping = true;
        guard->began_ns = clock_mono(guard->clock);
    }
    is_news = guard->is_stopping && !guard->has_failed;
    pthread_cond_broadcast(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    if (is_news)
        LOG(guard->log, LOG_INFO, "stopping",
            LOG_STR("signal", signal == SIGINT ? "SIGINT" : "SIGTERM"));
}

/* Until the first one that ends the process. A second one changes nothing: timeout(1) sends two,
 * and the end is near anyway. */
static void receive_signals(struct stop_guard *guard)
{
    int signal = SIGHUP;

    while (signal == SIGHUP)
        if (sigwait(&guard->signals, &signal) == 0)
            note_signal(guard, signal);
}

/* With the lock held, until its end: the main thread must not free what the hooks use. The status
 * is that of any other stop: who asked for a stop got one, and systemd would call the unit failed.
 * exit(3) would wait for locks that a part may hold. The log comes last: stderr may hang. */
static _Noreturn void exit_late(struct stop_guard *guard)
{
    const struct stop_guard_hooks *hooks = &guard->hooks;

    if (hooks->save)
        hooks->save(hooks->ctx, guard->began_ns + STOP_WRITE_NS);
    if (hooks->clean)
        hooks->clean(hooks->ctx);
    LOG(guard->log, LOG_ERROR, "a part did not stop in time; the process ends without it",
        LOG_STR("part", guard->late));
    _exit(guard->status);
}

/* Waits for a change; false: the time has passed. With the lock held. */
static bool wait_until(struct stop_guard *guard, int64_t until_ns)
{
    if (clock_mono(guard->clock) >= until_ns)
        return false;
    clock_wait(guard->clock, &guard->changed, &guard->lock, until_ns);
    return true;
}

/* With the lock held. */
static void note_time(struct stop_guard *guard)
{
    if (guard->is_stopping && !guard->late && clock_mono(guard->clock) >= guard->began_ns + STOP_NS)
        guard->late = guard->part;
}

static void *run(void *arg)
{
    struct stop_guard *guard = arg;

    receive_signals(guard);
    pthread_mutex_lock(&guard->lock);
    while (!guard->has_ended && wait_until(guard, guard->began_ns + STOP_NS))
        continue;
    note_time(guard);
    while (!guard->has_ended && guard->is_writer &&
           wait_until(guard, guard->began_ns + STOP_WRITE_NS))
        continue;
    if (!guard->has_ended)
        exit_late(guard);
    pthread_mutex_unlock(&guard->lock);
    return NULL;
}

/* --- from outside --- */

static void free_guard(struct stop_guard *guard)
{
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

int stop_guard_start(const sigset_t *signals, const struct clock *clock, struct log *log,
                     struct stop_guard **ret, struct err *err)
{
    struct stop_guard *guard = heap_alloc(sizeof(*guard));
    int code;

    guard->signals = *signals;
    guard->clock = clock;
    guard->log = log;
    guard->part = "start";
    pthread_mutex_init(&guard->lock, NULL);
    clock_cond_init(&guard->changed);
    code = thread_start(&guard->thread, "stop-guard", run, guard, err);
    if (code < 0) {
        free_guard(guard);
        return code;
    }
    *ret = guard;
    return 0;
}

struct stop_guard *stop_guard_end(struct stop_guard *guard)
{
    if (!guard)
        return NULL;
    pthread_mutex_lock(&guard->lock);
    guard->has_ended = true;
    pthread_cond_broadcast(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
    free_guard(guard);
    return NULL;
}

static bool has_news(const struct stop_guard *guard)
{
    return guard->is_stopping || guard->must_reload;
}

int stop_guard_wait(struct stop_guard *guard, int64_t most_ns)
{
    int64_t until_ns = clock_mono(&clock_real) + most_ns;
    bool in_time = true;
    int signal = 0;

    pthread_mutex_lock(&guard->lock);
    guard->part = "main thread";
    while (!has_news(guard) && in_time) {
        if (most_ns < 0)
            pthread_cond_wait(&guard->changed, &guard->lock);
        else
            in_time = clock_wait(&clock_real, &guard->changed, &guard->lock, until_ns);
    }
    if (guard->is_stopping)
        signal = SIGTERM;
    else if (guard->must_reload)
        signal = SIGHUP;
    guard->must_reload = false;
    pthread_mutex_unlock(&guard->lock);
    return signal;
}

/* A signal to the thread alone, which starts the time as any other. */
void stop_guard_fail(struct stop_guard *guard, int status)
{
    if (!guard)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->status = status;
    guard->has_failed = true;
    if (!guard->is_stopping)
        pthread_kill(guard->thread, SIGTERM);
    pthread_mutex_unlock(&guard->lock);
}

int64_t stop_guard_left(struct stop_guard *guard)
{
    int64_t left_ns;

    if (!guard)
        return 0;
    pthread_mutex_lock(&guard->lock);
    left_ns = STOP_PEERS_NS;
    if (guard->is_stopping)
        left_ns = guard->began_ns + STOP_PEERS_NS - clock_mono(guard->clock);
    pthread_mutex_unlock(&guard->lock);
    return left_ns > 0 ? left_ns : 0;
}

static void enter(struct stop_guard *guard, const char *name, bool is_writer)
{
    bool is_stopping;

    if (!guard)
        return;
    pthread_mutex_lock(&guard->lock);
    note_time(guard);
    guard->part = name;
    guard->is_writer = is_writer;
    is_stopping = guard->is_stopping;
    pthread_cond_broadcast(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    if (is_stopping)
        LOG(guard->log, LOG_DEBUG, "waiting for a part to stop", LOG_STR("part", name));
}

void stop_guard_part(struct stop_guard *guard, const char *name)
{
    enter(guard, name, false);
}

void stop_guard_writer(struct stop_guard *guard, const char *name)
{
    enter(guard, name, true);
}

void stop_guard_use(struct stop_guard *guard, const struct stop_guard_hooks *hooks)
{
    if (!guard)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->hooks = *hooks;
    pthread_mutex_unlock(&guard->lock);
}
