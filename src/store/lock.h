/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One process at a time records jobs in a store, or puts a copy in its place: it holds a lock on
 * the file PATH-lock. The lock ends with the process. Readers need none. */
#ifndef SONDE_STORE_LOCK_H
#define SONDE_STORE_LOCK_H

#include "base/err.h"

/* A descriptor to be closed in *ret. -EALREADY with a sentence if another process has the lock. */
int store_lock(const char *path, int *ret, struct err *err);

#endif
