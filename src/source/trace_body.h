/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one post to /trace says. docs/trace.md has its members. */
#ifndef SONDE_SOURCE_TRACE_BODY_H
#define SONDE_SOURCE_TRACE_BODY_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum { TRACE_HOST_MAX = 255 }; /* bytes; what is longer is cut */

struct trace_amounts {
    double cpu_percent, memory_bytes, read_bytes, write_bytes, threads;
};

struct trace_body {
    double job_id;          /* a whole number, as the next three */
    double step, task, pid; /* NAN: not told, as all that follow */
    double period_seconds;
    struct trace_amounts amounts;
    char host[TRACE_HOST_MAX];
    size_t n_host;
};

/* -EBADMSG with a sentence that names the member, -EFBIG past TRACE_BODY_MAX. */
int trace_body_read(struct str json, struct trace_body *ret, struct err *err);

#endif
