/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel says of this process: proc(5), /proc/self/stat, limits and fd. */
#ifndef SONDE_BASE_PROCESS_H
#define SONDE_BASE_PROCESS_H

#include <stdint.h>

struct process {
    double cpu_seconds;        /* user and system, of all threads */
    double start_time_seconds; /* since the epoch */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t virtual_max_bytes; /* RLIMIT_AS; UINT64_MAX: unlimited */
    uint64_t threads, open_fds, max_fds;
};

/* Opens /dev/null where standard input, output or error is closed, so that no socket gets its
 * number and what is written there. First thing in main. */
void process_keep_standard_fds(void);

/* Lets go of the pages of code that starting up has touched; what is needed again comes back from
 * the page cache. More than half of a small program's resident memory is such pages. */
void process_forget_start(void);

/* What cannot be read stays 0. */
void process_read(struct process *ret);

#endif
