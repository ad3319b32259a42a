/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde run` tells of its command: a thread that measures and posts. Nothing that happens
 * here may matter to the command. docs/trace.md has what a post says. */
#ifndef SONDE_CMD_RUN_TRACE_H
#define SONDE_CMD_RUN_TRACE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <sys/types.h>

struct tracer_config {
    pid_t pid;       /* of the command, our child */
    uint64_t job_id; /* 0: unknown */
    struct str endpoint;
    const char *munge_socket; /* NULL: munge's usual one */
    const struct clock *clock;
    int64_t period_ns;
    int64_t began_ns; /* monotonic, of that clock: when the command was started */
    bool is_dry;      /* print samples instead of posting them */
    bool is_check;    /* print one, then end the command */
    bool is_verbose;
};

struct tracer;

int tracer_start(const struct tracer_config *config, struct tracer **ret, struct err *err);

/* The command has ended, and is a zombie or waited for: tells the last of it if that takes no more
 * than a moment. False if the thread hangs in a post: then it still uses the tracer, and the
 * process must be ended with _exit. */
bool tracer_finish(struct tracer *tracer);

/* A line for the user on standard error; lost if it would have to wait there. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
