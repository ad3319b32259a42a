/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program that is started as root, or with capabilities by systemd, keeps of that:
 * capabilities(7). Called before any thread is started, for all of it belongs to threads. */
#ifndef SONDE_BASE_PRIVILEGES_H
#define SONDE_BASE_PRIVILEGES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct privilege {
    int number;       /* CAP_SYS_PTRACE and the like, of linux/capability.h */
    const char *name; /* "CAP_SYS_PTRACE" */
    const char *lost; /* what is missing without it: a sentence */
};

/* Keeps these of the capabilities that there are and gives up all others, for ever: nothing that is
 * started from here gets more. Nobody of the same user can trace the process. With a `user` (name
 * or number) it becomes that one; for that it must be root. Bit i of *ret_missing: kept[i] is not
 * there. */
int privileges_keep(const struct privilege *kept, size_t n, const char *user, uint32_t *ret_missing,
                    struct err *err);

/* Lets others have the processor and the disks first. */
void privileges_lower_priority(void);

/* The calling thread alone: for what cannot wait, back to where everybody stands; or down again.
 * Where that is not allowed (RLIMIT_NICE), nothing happens. */
void privileges_hurry(bool is_urgent);

#endif
