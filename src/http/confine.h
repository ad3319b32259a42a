/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For threads that handle what clients send: whoever takes one over gets little further. Their
 * threads and commands inherit it, so a thread that starts commands, resolves user names or calls
 * drivers must not be confined: docs/decisions/seccomp.md. */
#ifndef SONDE_HTTP_CONFINE_H
#define SONDE_HTTP_CONFINE_H

#include "base/err.h"

/* Takes all capabilities from the calling thread, unless it is plain root's, and has the kernel
 * refuse (EPERM) to it the system calls that start programs, look into other processes, mount, load
 * code into the kernel and the like. There is no way back. On failure the thread may be confined in
 * part. */
int confine_thread(struct err *err);

/* Whether confine_thread works here: tries it on a thread that then ends. */
int confine_try(struct err *err);

#endif
