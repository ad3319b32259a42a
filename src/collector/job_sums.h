/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs added up by whom or what they belong to (a user, a partition, …): how many there are, and
 * what they hold or ask for. A collector of such sums is a table of rows. */
#ifndef SONDE_COLLECTOR_JOB_SUMS_H
#define SONDE_COLLECTOR_JOB_SUMS_H

#include "collector/collector.h"
#include "collector/groups.h"

enum job_amount {
    AMOUNT_JOBS,
    AMOUNT_CPUS,
    AMOUNT_MEMORY_BYTES,
    AMOUNT_GPUS,
    AMOUNT_GPU_SHARDS,
    AMOUNT_GRES, /* all of them, GPUs and shards included */
    AMOUNTS,
};

enum job_part {
    BY_STATE, /* resources only of states whose jobs request or hold some; see tally_add */
    HOLDING,  /* of all jobs that hold resources, whatever their state */
};

/* A family and what it shows. Its labels are the name that jobs are added up by, then of all GRES
 * the name, then the type of a GPU or other GRES, then the state. */
struct job_sums_row {
    size_t family;
    enum job_amount amount;
    enum job_part part;
};

/* Names that Slurm configures: zero is said of them without jobs, and of states that none has. */
struct job_sums_names {
    const symbol *name;
    size_t n;
};
typedef struct job_sums_names job_sums_known(const struct jobs *jobs);

struct job_sums_plan {
    size_t key;            /* where in a struct job the symbol stands that they are added up by */
    groups_cut *cut;       /* NULL: it is one name */
    job_sums_known *known; /* or NULL */
    bool is_bounded;       /* what users write: the most frequent, then other; no states, no GPUs */
    const struct job_sums_row *rows;
    size_t n_rows;
};

enum { JOB_SUMS_MOST = 100 }; /* names of a bounded plan */

/* The end of the HELP of resources by state. */
#define JOB_SUMS_NOT_ENDED ". Ended jobs are left out."
#define JOB_SUMS_BY_STATE                                                                          \
    ": requested while pending, allocated until COMPLETING is over" JOB_SUMS_NOT_ENDED
#define JOB_SUMS_CPUS_BY_STATE                                                                     \
    ": requested while pending, allocated until COMPLETING is over, 0 while "                      \
    "SUSPENDED" JOB_SUMS_NOT_ENDED

void job_sums_collect(const struct job_sums_plan *plan, const struct section *section,
                      struct metric_writer *writer);

#endif
