/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts a thread that is left alone by signals, which are the main thread's, and has a name. */
#ifndef SONDE_BASE_THREAD_H
#define SONDE_BASE_THREAD_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* name: at most 15 bytes. */
int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg,
                 struct err *err);

/* Capabilities belong to threads: capabilities(7). Bits: 1 << CAP_SYS_PTRACE and the like. */
struct thread_capabilities {
    uint64_t permitted, effective;
};

/* Those of the calling thread. False with errno. */
bool thread_get_capabilities(struct thread_capabilities *ret);

/* The calling thread, and the threads that it starts later, have these from now on, permitted and
 * effective. Others keep theirs. None can be gained. False with errno: all stays as it was. */
bool thread_set_capabilities(uint64_t set);

#endif
