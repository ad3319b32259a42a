/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends the process in time after SIGTERM or SIGINT, even if a part of it hangs in a file system, a
 * driver or a library. A thread receives the signals; the main thread names the part that it waits
 * for. When STOP_NS have passed since the signal, the guard has data written to disk, logs that
 * part, and exits: docs/decisions/stop.md. */
#ifndef SONDE_BASE_STOP_GUARD_H
#define SONDE_BASE_STOP_GUARD_H

#include "base/clock.h"
#include "base/log.h"

#include <signal.h>

/* From the signal on, by the clock of the guard. */
#define STOP_NS       (2 * NS_PER_SEC)
#define STOP_PEERS_NS (1800 * NS_PER_MS) /* for last requests to other servers */
#define STOP_WRITE_NS (8 * NS_PER_SEC)   /* for a disk: less than TimeoutStopSec= of sonde-agent */

struct stop_guard;

/* `signals` are those that it waits for, blocked in all threads: SIGTERM, SIGINT, SIGHUP. Start it
 * when privileges have been given up, and before whatever can hang. */
int stop_guard_start(const sigset_t *signals, const struct clock *clock, struct log *log,
                     struct stop_guard **ret, struct err *err);

/* NULL is allowed for a guard that could not be started, but not by stop_guard_wait. */

/* All parts have ended, and a signal has come or stop_guard_fail was called: the thread waits for
 * one. Returns NULL. */
struct stop_guard *stop_guard_end(struct stop_guard *guard);

/* Waits for a signal: SIGHUP, or SIGTERM for all that end the process. 0 when so much real time has
 * passed; most_ns < 0: waits as long as it takes. */
int stop_guard_wait(struct stop_guard *guard, int64_t most_ns);

/* The process stops without a signal, for a failure, and is to exit with this status. The time
 * starts now. */
void stop_guard_fail(struct stop_guard *guard, int status);

/* What is left of STOP_PEERS_NS; 0: nothing. */
int64_t stop_guard_left(struct stop_guard *guard);

/* What the main thread waits for from now on: a literal. */
void stop_guard_part(struct stop_guard *guard, const char *name);

/* Likewise, of a part that writes data to disk: it gets STOP_WRITE_NS. */
void stop_guard_writer(struct stop_guard *guard, const char *name);

/* What is done before the process exits without some of its parts, on the guard's thread. The main
 * thread is then held in its next call of this module, so that it does not free what these use. */
struct stop_guard_hooks {
    void (*save)(void *ctx, int64_t until_ns); /* writes data to disk until then; or NULL */
    void (*clean)(void *ctx);                  /* removes temporary files; or NULL */
    void *ctx;
};
void stop_guard_use(struct stop_guard *guard, const struct stop_guard_hooks *hooks);

#endif
