/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of a store, by SQLite's backup API: made while it is written, checked, and put back. */
#ifndef SONDE_STORE_COPY_H
#define SONDE_STORE_COPY_H

#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

struct store_copied {
    uint64_t bytes, runs;
};

/* Writes the store, as it is at one moment, to the file `to`, which must not exist. It gets its
 * name when it is whole and has passed SQLite's integrity check. -ECANCELED, or codes of store.h.
 */
int store_backup(struct str url, const char *to, const atomic_bool *cancelled,
                 struct store_copied *ret, struct err *err);

/* Puts a copy of the file `from` in the place of the store, once that copy is whole and checked.
 * What was there is kept as PATH.replaced. -EALREADY if a process writes the store, -EEXIST if
 * there is a PATH.replaced. */
int store_restore(struct str url, const char *from, const atomic_bool *cancelled,
                  struct store_copied *ret, struct err *err);

#endif
