/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A YAML file of what was promised to whom, and other constants: docs/allocations.md. */
#ifndef SONDE_SOURCE_ALLOCATION_FILE_H
#define SONDE_SOURCE_ALLOCATION_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "model/allocation.h"

/* As it stands there; what is not said is NAN, a time 0. No two of an account hold at once. */
struct allocation_entry {
    struct str cluster, account;
    const struct str *includes; /* other accounts whose use counts here as well */
    size_t n_includes;
    double cpu_years, gpu_years, storage_bytes, students;
    int64_t from, to; /* UTC seconds; to: itself excluded; both 0: for good */
    unsigned line;
};

struct allocation_list {
    struct allocation_entry *entry;
    size_t n;
};

/* The list lives in the arena. -EINVAL with file and line, also if it cannot be read: it was named
 * by somebody. */
int allocation_file_read(const char *path, struct arena *arena, struct allocation_list *ret,
                         struct err *err);

/* Whether it holds at that time. */
bool allocation_entry_holds(const struct allocation_entry *entry, int64_t now);

/* What it promises: its account is not set, and what is used unknown. */
struct allocation allocation_entry_promise(const struct allocation_entry *entry);

#endif
