/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts a thread that is left alone by signals, which are the main thread's, and has a name. */
#ifndef SONDE_BASE_THREAD_H
#define SONDE_BASE_THREAD_H

#include "base/err.h"

#include <pthread.h>

/* name: at most 15 bytes. */
int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg,
                 struct err *err);

#endif
