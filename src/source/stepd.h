/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The slurmstepd of a step: it runs as root and says in its title which step it is for,
 * "slurmstepd: [123.batch]". Nothing that a job can do makes another process pass for one: its real
 * and saved user must be root (or SlurmdUser), its program slurmstepd, and it must not be among
 * a job's own processes, which the caller checks. */
#ifndef SONDE_SOURCE_STEPD_H
#define SONDE_SOURCE_STEPD_H

#include "source/proc.h"

struct stepd {
    pid_t pid;
    uint64_t start_ticks;
    char job[USAGE_ID], step[USAGE_ID]; /* "123", "batch" */
    char node[USAGE_NODE]; /* its slurmd's NodeName, by the socket that it listens on, also where no
                            * other slurmd shares the host; empty: not found */
};

/* Whether that process is one. `slurmd_uid` is 0 nearly everywhere. Some 150 us for one that is, 5
 * for another process. */
bool stepd_read(struct proc *proc, pid_t pid, uint32_t slurmd_uid, struct stepd *ret);

/* "slurmstepd: [123.batch]", "[123.extern stepmgr]", "[123.0+1]"; text may be anything. Fills `job`
 * and `step` alone. */
bool stepd_title_parse(struct str title, struct stepd *ret);

/* The NodeName in the path of a step's socket, "/var/spool/slurmd/c1_123.4294967291"; text may be
 * anything. */
bool stepd_socket_parse(struct str path, const char *job, struct str *ret_node);

/* The one that started a process: the nearest of its ancestors, at most 64 up. A process whose
 * parent has ended has none: slurmstepd does not take orphans in. */
bool stepd_above(struct proc *proc, pid_t pid, uint32_t slurmd_uid, struct stepd *ret);

/* All of this host, by looking at every process once: for sites without cgroups, and for job
 * directories without processes. `item` keeps its room; the caller frees it. */
struct stepds {
    struct stepd *item;
    size_t n, room;
};
int stepds_find(struct proc *proc, uint32_t slurmd_uid, struct stepds *ret, struct err *err);

#endif
