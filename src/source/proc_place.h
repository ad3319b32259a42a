/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of struct proc, for the files that read below /proc. */
#ifndef SONDE_SOURCE_PROC_PLACE_H
#define SONDE_SOURCE_PROC_PLACE_H

#include "base/num.h"
#include "source/pid_list.h"
#include "source/proc_text.h"

#include <dirent.h>

/* A process and who started it, where the kernel lists no children. */
struct proc_kin {
    pid_t pid, parent;
};

struct proc {
    int fd;
    bool is_recorded; /* files that look like the kernel's */
    struct proc_units units;
    struct proc_kin *kin; /* room that stays */
    size_t kin_room;
    struct pid_list pids; /* likewise */
    char text[8192];      /* of the file or link at hand */
};

enum { PROC_PATH = 64 };

/* "123/stat": snprintf would take a tenth of the time that the kernel takes for the file. */
static inline const char *proc_path(char path[PROC_PATH], pid_t pid, const char *name)
{
    size_t n = num_put_u64(path, (uint64_t)pid), length = strlen(name);

    path[n++] = '/';
    memcpy(path + n, name, length + 1);
    return path;
}

/* Reads what fits of a file in one read, which is all of it for files that the kernel writes at
 * once. -errno. */
int proc_slurp(struct proc *proc, int directory, const char *path, struct str *ret);

/* What a link says. -errno. */
int proc_link(struct proc *proc, pid_t pid, const char *name, struct str *ret);

bool proc_lives(const struct proc *proc, pid_t pid); /* or is a zombie */

/* What an errno says of a process: -ESRCH, -EACCES, or it is the file that is missing: -ENOENT. */
int proc_failure(const struct proc *proc, pid_t pid, int code);

bool proc_pid_of(struct str name, pid_t *ret);

/* Calls `visit` for each name in a directory but . and .., until it returns other than 0. */
int proc_each_name(int directory, int (*visit)(void *ctx, const char *name), void *ctx);

#endif
