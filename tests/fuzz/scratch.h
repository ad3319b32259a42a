/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory in memory for the files of a fuzz target: one for all inputs, removed at the end. */
#ifndef SONDE_TESTS_FUZZ_SCRATCH_H
#define SONDE_TESTS_FUZZ_SCRATCH_H

#include "base/str.h"

#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_path[90]; /* the path of a socket below it has room for 108 bytes */

static inline int scratch_remove_one(const char *path, const struct stat *status, int kind,
                                     struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static inline void scratch_remove(void)
{
    nftw(scratch_path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const char *scratch(void)
{
    const char *below = getenv("SONDE_MEMORY_DIR");

    if (scratch_path[0])
        return scratch_path;
    if (!below)
        below = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    FUZZ_CHECK(snprintf(scratch_path, sizeof(scratch_path), "%s/sonde-fuzz-XXXXXX", below) <
               (int)sizeof(scratch_path));
    FUZZ_CHECK(mkdtemp(scratch_path));
    atexit(scratch_remove);
    return scratch_path;
}

/* Writes a file anew; the path lives until the next call. */
static inline const char *scratch_write(const char *name, struct str bytes)
{
    static char path[512];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", scratch(), name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, bytes.p, bytes.n) == (ssize_t)bytes.n);
    close(fd);
    return path;
}

#endif
