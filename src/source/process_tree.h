/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all descendants of a process use together. */
#ifndef SONDE_SOURCE_PROCESS_TREE_H
#define SONDE_SOURCE_PROCESS_TREE_H

#include "source/proc.h"

enum { PROCESS_TREE_MOST = PROC_DESCENDANTS_MAX };

/* What is used up: these never fall. */
struct process_use {
    uint64_t cpu_ns, read_bytes, write_bytes;
};

struct process_tree {
    const char *proc; /* "/proc" */
    pid_t ancestor;   /* is not counted itself */
    size_t most;      /* processes; 0: PROCESS_TREE_MOST */

    /* What those have used that the ancestor has waited for: process_reaped, or a test's own. */
    void (*reaped)(struct process_use *ret);

    /* 0 at first. */
    struct process_use seen, total;
    bool has_io;
};

struct process_tree_sample {
    uint64_t processes, threads;
    uint64_t resident_bytes; /* what several share counts for each of them */
    struct process_use used; /* since the beginning, also by those that have ended */
    bool has_io;             /* false: the kernel has never told the bytes */
};

/* The kernel adds what a process has used to whoever waits for it. So the sum of what the ancestor
 * was left and what the living ones say misses nobody and counts nobody twice, provided that all
 * orphans become the ancestor's children (PR_SET_CHILD_SUBREAPER) and are waited for. Who ends
 * unawaited, because his parent ignores SIGCHLD, is lost with what he used after the last sample.
 * -EFBIG if there are more than tree->most processes. */
int process_tree_read(struct process_tree *tree, struct process_tree_sample *ret, struct err *err);

void process_reaped(struct process_use *ret); /* by this process */

#endif
