/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command of `sonde run`: started as if nobody stood between it and whoever started us, and
 * followed to its end. Its process group, session, terminal, limits, environment, signal mask and
 * descriptors are those that we were given. */
#ifndef SONDE_CMD_RUN_CHILD_H
#define SONDE_CMD_RUN_CHILD_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>

struct child {
    pid_t pid; /* nobody else's until child_exit: it is left a zombie */

    sigset_t mask; /* that we were given, as the next two */
    bool ignores_sigchld;
    bool is_closed[3];     /* standard descriptors */
    bool is_stopped;       /* by a signal, as seen so far */
    bool was_told_to_stop; /* were we */
    bool was_interrupted;  /* from the terminal */
    int end_signal;        /* that ended it, or 0 */
};

/* Keeps how we were started, and all signals from now on for child_follow: before there are
 * threads. */
void child_prepare(struct child *child);

/* Once it runs, we hold none of the descriptors that it was given but standard error, and standard
 * output if we print. -ENOENT: there is no such command; any other failure: it cannot be run. */
int child_start(struct child *child, char **argv, bool keeps_stdout, struct err *err);

/* Passes signals on, stops when it is stopped from the terminal, waits for its orphans, which come
 * to us, until it ends. Returns its exit status as a shell tells it: 128 + n for signal n. */
int child_follow(struct child *child);

/* Waits for the ended command and ends us as it has ended; at once, if is_clean is false. */
_Noreturn void child_exit(const struct child *child, int status, bool is_clean);

#endif
