/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a job of the benchmark has its cgroups: Slurm's layout under v1 (cgroup.conf(5)), with
 * task/cgroup and jobacct_gather/cgroup. */
#ifndef SONDE_TESTS_BENCH_AGENT_LAYOUT_H
#define SONDE_TESTS_BENCH_AGENT_LAYOUT_H

#include "base/str.h"

#include <stdio.h>

enum {
    PER_TASK = 4, /* processes; the batch step has one */
    THREADS = 4,
    FILES = 4,
    PLACE_PATH = 256, /* bytes of a directory's path, the NUL included */
    FILE_PATH = PLACE_PATH + 64,
    STEPD_UID = 2147480000, /* nobody's: the host's own slurmstepds are not the benchmark's */
    READY_FD = 3,           /* each process writes a byte there when it is as it will stay */
};

/* Those with directories of tasks first. */
static const char *const hierarchies[] = { "cpuacct", "memory", "cpuset", "freezer", "devices" };

enum { TASK_HIERARCHIES = 2, HIERARCHIES = COUNT(hierarchies) };

static const char *const steps[] = { "batch", "0" };

struct place {
    const char *root; /* "/sys/fs/cgroup" */
    unsigned uid, job;
    const char *step;
    unsigned task;
};

/* Down to the level asked for, or the deepest that the hierarchy has. */
enum level { LEVEL_SCOPE, LEVEL_USER, LEVEL_JOB, LEVEL_STEP, LEVEL_TASK };

static inline void place_path(const struct place *place, size_t hierarchy, enum level level,
                              char to[PLACE_PATH])
{
    const size_t size = PLACE_PATH;
    int n = snprintf(to, size, "%s/%s/slurm_bench", place->root, hierarchies[hierarchy]);

    if (level >= LEVEL_USER)
        n += snprintf(to + n, size - (size_t)n, "/uid_%u", place->uid);
    if (level >= LEVEL_JOB)
        n += snprintf(to + n, size - (size_t)n, "/job_%u", place->job);
    if (level >= LEVEL_STEP)
        n += snprintf(to + n, size - (size_t)n, "/step_%s", place->step);
    if (level >= LEVEL_TASK && hierarchy < TASK_HIERARCHIES)
        snprintf(to + n, size - (size_t)n, "/task_%u", place->task);
}

static inline void file_path(const char *directory, const char *file, char to[FILE_PATH])
{
    snprintf(to, FILE_PATH, "%s/%s", directory, file);
}

#endif
