/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of files in /proc/PID: proc(5), cgroups(7). It may be anything. */
#ifndef SONDE_SOURCE_PROC_TEXT_H
#define SONDE_SOURCE_PROC_TEXT_H

#include "source/proc.h"

struct proc_units {
    uint64_t tick_ns, page_bytes;
};

/* Without ret->pid. */
bool proc_stat_parse(struct str text, const struct proc_units *units, struct proc_stat *ret);

bool proc_io_parse(struct str text, struct io_use *ret);
bool proc_uids_parse(struct str status, struct proc_uids *ret);

/* The path, without its leading slash; "" for v2. */
bool proc_cgroup_parse(struct str text, struct str controller, struct str *ret);

/* Looks for variables in an environment that comes in pieces of any size. */
struct environ_scan {
    struct proc_variable *variables;
    size_t n;
    uint64_t wanted;             /* bit i: variable i has not been seen yet */
    uint64_t candidates;         /* bit i: variable i may be the one at hand */
    size_t position;             /* in the one at hand */
    struct proc_variable *found; /* its value is being copied, and is this long: */
    size_t n_value;
};

void environ_begin(struct environ_scan *scan, struct proc_variable *variables, size_t n);
bool environ_feed(struct environ_scan *scan, struct str piece); /* false: nothing more is wanted */

#endif
