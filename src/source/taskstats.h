/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's records of threads that end: Documentation/accounting/taskstats.rst and
 * taskstats-struct.rst, over generic netlink. Needs CAP_NET_ADMIN and the first pid and network
 * namespaces. */
#ifndef SONDE_SOURCE_TASKSTATS_H
#define SONDE_SOURCE_TASKSTATS_H

#include "base/err.h"
#include "model/usage.h"

struct exit_record {
    pid_t thread;
    pid_t process; /* 0: the kernel does not tell. Before 6.0 it does so only for the last thread of
                    * several */
    pid_t parent;  /* process */
    uint32_t uid;
    char comm[USAGE_COMM];
    uint64_t cpu_ns;
    uint64_t peak_resident_bytes; /* of the process */
    struct io_use io; /* of this thread alone. The kernel rounds all of it down to a multiple of
                       * 1024, the numbers of calls too: for those, this is little more than 0 */
};

struct taskstats;

/* -EPERM, -ENOENT (the kernel has none), -EINVAL (not in the first pid namespace), -ENODATA (not in
 * the first network namespace: a thread that ended was not told), … */
int taskstats_open(struct taskstats **ret, struct err *err);
struct taskstats *taskstats_close(struct taskstats *taskstats); /* returns NULL */
int taskstats_fd(const struct taskstats *taskstats);

/* Calls `exited` for each record that waits; never blocks, and leaves the rest of very many for the
 * next call. */
void taskstats_read(struct taskstats *taskstats,
                    void (*exited)(void *ctx, const struct exit_record *record), void *ctx);

uint64_t taskstats_lost(const struct taskstats *taskstats); /* times the kernel found no room */

/* One netlink message, of any bytes: calls `exited` for what is in it. For tests and fuzzing. */
void taskstats_parse(struct str message, unsigned short family,
                     void (*exited)(void *ctx, const struct exit_record *record), void *ctx);

#endif
