/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PNG and PDF, made by sonde-report as a child: only that program links what draws them. Few run at
 * once; few more may wait, within the deadline, since who waits holds a worker of the server. */
#ifndef SONDE_WEB_REPORT_CHILD_H
#define SONDE_WEB_REPORT_CHILD_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

enum {
    REPORT_CHILDREN = 2,
    REPORT_WAITERS = 2,
    REPORT_CHILD_BYTES = 8 << 20, /* of what it may answer */
    REPORT_CHILD_FORMS = 2,       /* arguments that say what to make */
};

struct report_child;

/* Both must live as long; the flags say where data is, and end with NULL. Not on a confined thread:
 * children run on threads that are started here. */
int report_child_new(const char *program, char *const *flags, struct report_child **ret,
                     struct err *err);
struct report_child *report_child_free(struct report_child *child); /* returns NULL */

struct report_question {
    const char *form[REPORT_CHILD_FORMS]; /* "--pdf=-"; or "--chart=cpu", "--png" */
    struct str job;                       /* "4711", "4711_7", "4711+1" */
    struct str cluster;                   /* or empty */
    int64_t deadline_ns;                  /* monotonic, clock_real */
};

/* Adds what it made to `to`. Any thread. -EBUSY: others were made until the deadline, or
 * enough wait already; -ENODATA: there is nothing to draw; others as spawn_run. */
int report_child_run(struct report_child *child, const struct report_question *question,
                     struct buf *to, struct err *err);

#endif
