/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A YAML file of what was promised to whom, and other constants: docs/allocations.md. */
#ifndef SONDE_SOURCE_ALLOCATION_FILE_H
#define SONDE_SOURCE_ALLOCATION_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "model/allocation.h"

/* As it stands there; what is not said is NAN, a time 0. */
struct allocation_entry {
    struct str cluster, account;
    double cpu_years, gpu_years, storage_bytes, students;
    int64_t from, to;
};

struct allocation_list {
    struct allocation_entry *entry;
    size_t n;
};

/* The list lives in the arena. -EINVAL, -EBADMSG or why it cannot be read, with file and line. */
int allocation_file_read(const char *path, struct arena *arena, struct allocation_list *ret,
                         struct err *err);

#endif
