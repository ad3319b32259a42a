/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens munge credentials one at a time. libmunge waits some ten seconds for a munged that hangs,
 * and cannot be told to wait less: so that this holds up one worker and no more, and not once for
 * each post, nobody is let in while munged is thought to be away. docs/trace.md. */
#ifndef SONDE_HTTP_UNSEALER_H
#define SONDE_HTTP_UNSEALER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

#include <sys/types.h>

/* After this time without an answer munged hangs; … */
#define UNSEALER_PATIENCE_NS (1 * NS_PER_SEC)
/* … after a failure it is left alone for this. */
#define UNSEALER_PAUSE_NS (10 * NS_PER_SEC)

struct unsealer;

struct unsealer_config {
    /* munge_unseal, or what a test has instead; not from two threads at once. */
    int (*unseal)(const char *socket, struct str credential, struct buf *to, uid_t *ret_uid,
                  struct err *err);
    const char *socket; /* or NULL */
    const struct clock *clock;
};

struct unsealer *unsealer_new(const struct unsealer_config *config);
struct unsealer *unsealer_free(struct unsealer *unsealer); /* returns NULL */

/* -EAGAIN while munged is thought to be away. Waits for nothing. */
int unsealer_check(struct unsealer *unsealer, struct err *err);

/* As munge_unseal. While another thread is at it, waits for its turn: no longer than the patience,
 * and then -EAGAIN. */
int unsealer_open(struct unsealer *unsealer, struct str credential, struct buf *to, uid_t *ret_uid,
                  struct err *err);

#endif
