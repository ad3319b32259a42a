/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel says of a cgroup, through files that stay open: Documentation/admin-guide/
 * cgroup-v2.rst and cgroup-v1/ of the kernel. One table says which file gives which number. */
#ifndef SONDE_SOURCE_CGROUP_H
#define SONDE_SOURCE_CGROUP_H

#include "base/err.h"
#include "base/quota.h"
#include "model/usage.h"

/* Where the hierarchies are mounted. */
enum cgroup_controller {
    CGROUP_CPUACCT,
    CGROUP_MEMORY,
    CGROUP_CPUSET,
    CGROUP_CPU,
    CGROUP_BLKIO,
    CGROUP_PIDS,
    CGROUP_DEVICES,
    CGROUP_FREEZER,
    CGROUP_CONTROLLERS,
};

enum { CGROUP_CORES = 8192 }; /* the most that a kernel can be built for */

struct cgroup_mounts {
    char unified[256];                        /* of v2; empty: not mounted */
    char controller[CGROUP_CONTROLLERS][256]; /* of v1; empty: not mounted */
    bool is_v2;                               /* the controllers that jobs live under are v2's */
    bool has_local_events; /* limit hits and OOM kills are not counted in the directories above */
    char sys[256];
    uint64_t cores[CGROUP_CORES / 64]; /* bit i: there may be a core i; none: not told */
};

/* From PROC/self/mountinfo. `sys` stands for /sys in the paths found there (for a recorded
 * machine). */
int cgroup_mounts_read(const char *proc, const char *sys, struct cgroup_mounts *ret,
                       struct err *err);

/* The files of one directory (of all hierarchies where it exists, under v1). */
struct cgroup;

/* Where the mounts say has_local_events (v1, mostly), a limit hit is counted in the directory that
 * has the limit, and an OOM kill in the one that its victim was in: a task's, under Slurm. What a
 * job had is the sum over its directory and all below, those that have gone included. */
struct cgroup_wish {
    bool cores;   /* CPU time by core and by mode, and which cores it may use */
    bool details; /* all else that there is; otherwise, for steps and tasks, CPU time, memory, its
                   * peak and its events */
    bool only_events; /* limit hits and OOM kills, nothing else */
    /* Of the files that it keeps open, which it must outlive; NULL: no limit. Files past it are
     * opened for each read. */
    struct quota *files;
};

/* Opens what there is. Never fails: what cannot be opened is absent. `path` is below the mounts,
 * which must outlive this. */
struct cgroup *cgroup_open(const struct cgroup_mounts *mounts, struct str path,
                           struct cgroup_wish wish);
struct cgroup *cgroup_close(struct cgroup *cgroup); /* returns NULL */

/* Reads everything into *use; what could not be read keeps the value it has there, so that the last
 * that was known remains (clear it first with cgroup_use_clear). The first reads and every
 * eighth try again to open what was absent: Slurm makes the directories of a job one after the
 * other. What is set rather than used (limits, cpusets) is looked at in these too. -ENODEV when the
 * directory has gone: then nothing at all was read. use->core_ns and devices point into the cgroup,
 * until its next read or close; a core that cannot be there has the time 0. */
int cgroup_read(struct cgroup *cgroup, struct cgroup_use *use);

/* v1: whether the job's device cgroup lets it use a character device: major:minor. 1, 0, or -1: not
 * told (v2, or not constrained). */
int cgroup_allows_device(const struct cgroup_mounts *mounts, struct str path, unsigned major,
                         unsigned minor);

#endif
