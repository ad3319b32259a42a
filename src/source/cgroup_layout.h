/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where Slurm keeps the cgroups of its jobs on this host, found by looking, for whoever looks once:
 * what a path means is in source/cgroup_rows.h, how it is kept up to date in source/cgroup_tree.h.
 */
#ifndef SONDE_SOURCE_CGROUP_LAYOUT_H
#define SONDE_SOURCE_CGROUP_LAYOUT_H

#include "base/err.h"
#include "model/usage.h"

enum { CGROUP_PATH = 512, CGROUP_SCOPES = 32 };

enum cgroup_version {
    CGROUP_NONE,
    CGROUP_V1,
    CGROUP_V2,
    CGROUP_HYBRID, /* both are mounted; the controllers are v1's */
};

/* The directory of one slurmd. */
struct cgroup_scope {
    char path[CGROUP_PATH]; /* "/sys/fs/cgroup/system.slice/slurmstepd.scope"; without the root */
    char node[USAGE_NODE];  /* where several slurmd share the host: whose it is; otherwise empty */
    bool is_v2;
    size_t jobs_by_id;     /* directories named job_N */
    size_t jobs_by_sluid;  /* from 26.05 on: sF0NM7G8GT4500 */
    char job[CGROUP_PATH]; /* the directory of one of them, or empty */
};

struct cgroup_layout {
    enum cgroup_version version;
    char mount[CGROUP_PATH]; /* of v2, or of v1's memory controller or another; without the root */
    struct cgroup_scope scope[CGROUP_SCOPES];
    size_t n;
    bool is_partial; /* there was more to look at than we do */
};

/* `root` is put before every path: "" for this host. -errno if the mounts cannot be read. */
int cgroup_layout_read(const char *root, struct cgroup_layout *ret, struct err *err);

#endif
