/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens munge credentials one at a time. libmunge waits some ten seconds for a munged that hangs,
 * and its wait cannot be shortened: so that this occupies one worker and no more, and not once for
 * each post, credentials are refused while munged seems to be away. Slurm needs munged too: from an
 * address whose credentials were refused, few more are passed on to it. docs/trace.md. */
#ifndef SONDE_HTTP_UNSEALER_H
#define SONDE_HTTP_UNSEALER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/munge.h"

/* After this time without an answer munged hangs; … */
#define UNSEALER_PATIENCE_NS (1 * NS_PER_SEC)
/* … after a failure it is left alone for this. */
#define UNSEALER_PAUSE_NS (10 * NS_PER_SEC)

struct unsealer;

struct unsealer_config {
    /* munge_unseal, or what a test has instead; not from two threads at once. */
    int (*unseal)(const char *socket, struct str credential, struct buf *to,
                  struct munge_origin *ret, struct err *err);
    const char *socket; /* or NULL */
    const struct clock *clock;
    unsigned max_refused; /* credentials of one client, within … */
    int64_t refused_ns;   /* … this time; then it has to wait as long */
};

struct unsealer *unsealer_new(const struct unsealer_config *config);
struct unsealer *unsealer_free(struct unsealer *unsealer); /* returns NULL */

/* Whether a credential of this client (any number for it) will be opened: -EAGAIN while munged
 * seems to be away, -EBUSY after too many of its credentials were refused. Waits for nothing. */
int unsealer_check(struct unsealer *unsealer, uint64_t client, struct err *err);

/* A credential of this client was refused. False: there are too many such clients to count. */
bool unsealer_blame(struct unsealer *unsealer, uint64_t client);

/* As munge_unseal. While another thread is at it, waits for its turn: no longer than the patience,
 * and then -EAGAIN. */
int unsealer_open(struct unsealer *unsealer, struct str credential, struct buf *to,
                  struct munge_origin *ret, struct err *err);

#endif
