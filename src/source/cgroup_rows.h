/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the path of a cgroup becomes a job: a table of path templates, one row for each layout of
 * Slurm, and rows from the configuration for other schedulers. cgroup.conf(5) and cgroup_v2 of
 * Slurm's documentation.
 *
 * A template is a path below the hierarchy's mount point. In a component, {job} {sluid} {uid}
 * {step} {task} {node} stand for what they name, and * for anything; each takes as little as it
 * can. In Slurm's rows {job} is a number, in those of the configuration any text that fits. A
 * template may begin with the component **: any directories, at most eight deep, none included.
 * What lies deeper than the template belongs to the deepest directory that matched: once a path has
 * come to a job, nothing that is named below can lead to another. */
#ifndef SONDE_SOURCE_CGROUP_ROWS_H
#define SONDE_SOURCE_CGROUP_ROWS_H

#include "base/arena.h"
#include "base/err.h"
#include "model/usage.h"

enum cgroup_level {
    CGROUP_ABOVE, /* somewhere below it there may be a scope: a slice, a service, a container */
    CGROUP_SCOPE, /* the first directory that a row has a name for ("slurm", "slurmstepd.scope"),
                   * and what leads from there to the jobs ("uid_1000") */
    CGROUP_JOB,
    CGROUP_STEP,
    CGROUP_TASK,
    CGROUP_BELOW,     /* anything else below a job, mostly made by the job itself */
    CGROUP_STEPD,     /* v2: holds the step's slurmstepd ("slurm") */
    CGROUP_STEP_USER, /* v2: holds the tasks of a step ("user"): empty when they have all ended */
};

struct cgroup_row {
    const char *name;  /* "slurm v2", shown by doctor and in logs */
    const char *path;  /* the template */
    bool is_v2;        /* of the unified hierarchy */
    bool has_stepd;    /* a job of it lives as long as a slurmstepd of it does */
    const char *stepd; /* v2: name of a step's directory for its slurmstepd; NULL: it has none */
};

extern const struct cgroup_row cgroup_slurm_rows[]; /* ended by name = NULL */

/* The rows in use: Slurm's, then those that were added. */
struct cgroup_rows;

struct cgroup_rows *cgroup_rows_new(void);
struct cgroup_rows *cgroup_rows_free(struct cgroup_rows *rows);

/* From "NAME=v1:PATH" or "NAME=v2:PATH", as the configuration has it. -EINVAL with a sentence.
 * Where two rows claim a directory, the earlier has it. */
int cgroup_rows_add(struct cgroup_rows *rows, struct str text, struct err *err);

/* What one directory is. */
struct cgroup_match {
    const struct cgroup_row *row;
    enum cgroup_level level;
    char job[USAGE_ID]; /* empty with a SLUID: only the slurmstepd knows the id */
    char sluid[USAGE_ID];
    char step[USAGE_ID], task[USAGE_ID];
    char node[USAGE_NODE]; /* empty: the host's own */
    uint32_t uid;          /* MODEL_UNKNOWN_U32: the path does not tell */
};

/* `path` is below the mount, without a leading slash; empty, it is the mount itself. False if no
 * row leads there or through it. Above a job, `row` is the first of those that lead through. */
bool cgroup_rows_match(const struct cgroup_rows *rows, bool is_v2, struct str path,
                       struct cgroup_match *ret);

#endif
