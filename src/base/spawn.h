/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a command so that it can do no harm: its own process group, a deadline, a ceiling on what it
 * may print, no inherited descriptors, no zombie. When the deadline passes or the ceiling is hit,
 * the whole group is killed; who cannot be killed (waiting for a dead file server, or somebody
 * else's process through sudo) is left behind after a moment, not waited for. Nor is what has left
 * the group and keeps its outputs open (the master that ssh leaves behind with ControlPersist). */
#ifndef SONDE_BASE_SPAWN_H
#define SONDE_BASE_SPAWN_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    SPAWN_INPUT_MAX = 16 << 20,
    SPAWN_MARK_MAX = 64,
};

struct spawn {
    const char *const *argv;      /* ended by NULL; argv[0] is looked up in PATH */
    const char *name;             /* what sentences call it; NULL: argv[0] */
    struct str input;             /* on its standard input, at most SPAWN_INPUT_MAX bytes; empty:
                                   * that is /dev/null */
    struct str mark;              /* what it writes to both outputs when it begins, at most
                                   * SPAWN_MARK_MAX bytes: what stands before it is not its own (a
                                   * login shell's greeting, ssh's banner) and is passed over.
                                   * Empty: all is its own */
    const char *const *env;       /* on top of our own: "NAME=value", or "NAME_*" to drop all that
                                   * begin with NAME_; ended by NULL; NULL = none */
    int64_t deadline_ns;          /* monotonic, of clock_real: the kernel's time, not a test's */
    size_t max_output;            /* bytes on standard output before it is stopped */
    const atomic_bool *cancelled; /* checked at least every 100 ms; NULL = cannot be cancelled */
    pid_t *stuck; /* the caller's, 0 at first: one that even SIGKILL did not end is kept
                   * here, and while it lives nothing is started in its place */

    /* Gets standard output in pieces. A negative return stops the command and is passed on. */
    int (*sink)(void *ctx, struct str piece, struct err *err);
    void *ctx;
};

struct spawn_result {
    size_t output_bytes;
    char warning[300]; /* the start of what it wrote to standard error, trimmed; where the mark has
                        * not come, the end */
    bool begun;        /* the mark has come on standard output, or there was none to wait for */
    int status;        /* what it exited with; -1: it did not end by itself */
};

/* 0 if the command exited with 0. Otherwise -ENOENT (no such command), -EACCES, -ETIMEDOUT, -EFBIG
 * (ceiling), -EREMOTEIO (exit status or signal), -ECANCELED, or what the sink returned; the
 * sentence then carries the command's own first words. *ret is filled in either case. */
int spawn_run(const struct spawn *spawn, struct spawn_result *ret, struct err *err);

/* Whether spawn_run would find that command: by its path, or in PATH. */
bool spawn_exists(const char *command);

/* Cuts a command line at spaces into a NULL-ended argv, all in one heap block (free it). Single and
 * double quotes keep spaces. NULL if it is empty or a quote is not closed. */
char **spawn_split(struct str line);

#endif
