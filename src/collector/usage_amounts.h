/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent's collectors share: numbers of a struct as rows of a table, and labels. */
#ifndef SONDE_COLLECTOR_USAGE_AMOUNTS_H
#define SONDE_COLLECTOR_USAGE_AMOUNTS_H

#include "base/num.h"
#include "collector/usage.h"

enum { PER_MILLI = 1000, PER_NANO = 1000000000, PER_MIB = 1 << 20, MEGA = 1000000 };

/* One uint64_t of a struct as a family. */
struct usage_amount {
    size_t family;
    size_t offset;
    uint32_t divisor; /* 0: the number is in the family's unit; PER_NANO: in billionths of it */
    uint32_t factor;  /* 0, or what an integer is multiplied with; MEGA: it is in millions */
    bool remains;     /* a gauge that is still true of a job that has ended, as counters are */
};

/* A sample of the family that has been begun, unless the number is unknown. */
void usage_amount_write(const struct usage_amount *amount, const void *of, const struct str *labels,
                        struct metric_writer *writer);

/* Whether a family tells of what has ended. */
static inline bool usage_amount_remains(const struct usage_amount *amount,
                                        const struct metric_writer *writer)
{
    return amount->remains || writer->families[amount->family].type == METRIC_COUNTER;
}

/* Writes the samples of one job to the family that has been begun. */
typedef void usage_amount_writer(const struct job_use *job, const struct usage_amount *amount,
                                 struct metric_writer *writer);

/* Families one after another, each of all jobs that it tells of. */
void usage_amounts_write(const struct usage *usage, const struct usage_amount *amounts, size_t n,
                         usage_amount_writer *write, struct metric_writer *writer);

/* For numbers of struct job_use, in families that have the labels of a job alone. */
usage_amount_writer usage_amount_of_job;

#define USAGE_JOB_LABELS      "job_id", "node"
#define USAGE_JOB_VALUES(job) str_of((job)->id), str_of((job)->node)

/* A GPU as the labels gpu and gpu_instance have it: "0" and "", or "0" and "3" with MIG. */
struct usage_gpu_text {
    char digits[2][NUM_U64_MAX];
    struct str index, instance;
};

void usage_gpu_text(const struct gpu_use *gpu, struct usage_gpu_text *ret);

/* The same of a GPU that a job holds: as Slurm names it, if the agent does not see it. */
void usage_job_gpu_text(const struct usage *usage, const struct job_gpu *gpu,
                        struct usage_gpu_text *ret);

#endif
