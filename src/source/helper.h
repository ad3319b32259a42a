/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that stays and answers on a socket, which is its standard input: its own process group,
 * no inherited descriptors. Every wait has a deadline; who does not answer is killed with its
 * group, and never waited for longer than a moment. */
#ifndef SONDE_SOURCE_HELPER_H
#define SONDE_SOURCE_HELPER_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <sys/types.h>

struct helper_process {
    pid_t pid; /* 0: there is none */
    int pidfd, socket, warnings;
    pid_t stuck;    /* one that even SIGKILL did not end: nothing is started in its place */
    char said[300]; /* the start of what it wrote to standard error since helper_forget */
    size_t n_said;
};

/* What a conversation must not outlast. */
struct helper_limits {
    int64_t deadline_ns; /* monotonic, of clock_real */
    const atomic_bool *cancelled;
};

/* `setting`: "NAME=value" on top of our environment, or NULL. */
int helper_start(struct helper_process *process, const char *path, const char *setting,
                 struct err *err);

/* Kills it, if there is one. */
void helper_stop(struct helper_process *process);

/* Whether there is one that has not ended by itself; one that has is forgotten. */
bool helper_is_there(struct helper_process *process);

void helper_forget(struct helper_process *process); /* what it has said */
struct str helper_said(struct helper_process *process);

/* Sends the question, which may be empty, and gives what comes to the sink until that returns a
 * positive number: there is all of it. Fails with what a negative number the sink returns,
 * -ETIMEDOUT, -ECANCELED, or -EPIPE when the process has ended, with a sentence that says
 * how. After a failure the process is gone. */
int helper_ask(struct helper_process *process, struct str question,
               const struct helper_limits *limits,
               int (*sink)(void *ctx, struct str piece, struct err *err), void *ctx,
               uint64_t *ret_bytes, struct err *err);

#endif
