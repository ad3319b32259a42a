/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Lustre targets of this server, and who moves most on them, read on a thread of its own: a
 * job_stats of millions of lines delays nobody else. From files where there are some
 * (PROC/fs/lustre, SYS/kernel/debug/lustre), of the other targets by lctl get_param. */
#ifndef SONDE_SOURCE_LUSTRE_TARGETS_H
#define SONDE_SOURCE_LUSTRE_TARGETS_H

#include "base/clock.h"
#include "base/err.h"
#include "model/lustre_use.h"

struct lustre_targets;

struct lustre_targets_config {
    const char *proc, *sys;    /* "/proc", "/sys" */
    const char *lctl;          /* to be asked of targets that have no file; NULL: nobody */
    size_t max_ids;            /* of one target; those that moved most lately, */
    size_t max_text_bytes;     /* and of all targets those whose samples fit (movers_new) */
    const struct clock *clock; /* must outlive lustre_targets_stop; the rest is copied */
};

/* Starts the thread, which looks when it is asked. On a node that is no Lustre server a look costs
 * three directories that are not there. */
int lustre_targets_start(const struct lustre_targets_config *config, struct lustre_targets **ret,
                         struct err *err);

/* Waits a second for a look that is under way. The thread that waits for a file that cannot be read
 * is left behind and frees what it has when that ever ends. Returns NULL. */
struct lustre_targets *lustre_targets_stop(struct lustre_targets *targets);

/* Has the thread look again; returns at once. Targets may be NULL. Nothing happens while a look is
 * under way. */
void lustre_targets_ask(struct lustre_targets *targets);

/* The newest look, or NULL: none yet, or none younger than `max_age_ns` and twice the time that it
 * took: where looks take long, the next cannot come sooner. Unref it. */
struct lustre_use *lustre_targets_latest(struct lustre_targets *targets, int64_t max_age_ns);

/* How long the look that was asked for has been under way; 0: there is none. */
int64_t lustre_targets_waits_ns(struct lustre_targets *targets);

/* The look that is under way counts as one that was asked for now. */
void lustre_targets_excuse(struct lustre_targets *targets);

#endif
