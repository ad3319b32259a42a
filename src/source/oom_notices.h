/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a cgroup of v1 has ever run out of memory, also after its directory has gone: the
 * kernel's Documentation/admin-guide/cgroup-v1/memory.rst, sections 9 and 10. */
#ifndef SONDE_SOURCE_OOM_NOTICES_H
#define SONDE_SOURCE_OOM_NOTICES_H

#include "source/cgroup.h"

enum { OOM_NOTICES_FILES = 3 };

struct oom_notices {
    struct quota *files; /* OOM_NOTICES_FILES of it are taken while the directory is open */
    int directory;
    int out_of_memory, end; /* eventfds; -1: the kernel does not tell */
    uint64_t n_told, n_ended;
    bool has_run_out;
};

/* Where nobody has asked. */
extern const struct oom_notices oom_notices_none;

/* `path` is below the mounts. Without permission (only root has it), or past the limit of open
 * files, nothing is ever noticed. */
void oom_notices_open(const struct cgroup_mounts *mounts, struct str path, struct quota *files,
                      struct oom_notices *ret);
/* Makes notices certain also after the directory has gone. The kernel waits for all CPUs, some 20
 * ms: returns whether it was called. */
bool oom_notices_watch_end(struct oom_notices *notices);
void oom_notices_close(struct oom_notices *notices);

/* Of this directory and those above, whose processes are also in here. May take a moment
 * (OOM_NOTICES_WAIT_MS) where a notice came and the directory has gone. */
enum { OOM_NOTICES_WAIT_MS = 100 };
bool oom_notices_any(struct oom_notices *notices);

#endif
