/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GRES of a job that its TRES do not name, as AccountingStorageTRES lacks them. Slurm lists all
 * GRES of a running job in gres_total of libslurm, and in gres_detail of libslurm and JSON. */
#ifndef SONDE_MODEL_JOB_GRES_H
#define SONDE_MODEL_JOB_GRES_H

#include "model/section.h"

enum { JOB_GRES_MAX = 32 }; /* names and types of one job; a job with more is unknown */

struct job_gres {
    struct section *section;
    struct {
        symbol name, type;
        uint64_t count;
    } item[JOB_GRES_MAX];
    size_t n;
    bool is_bad;
};

void job_gres_begin(struct job_gres *gres, struct section *section);

/* All of a job ("nic:2,tpu:v4:1"), or what it has of its next node ("nic(CNT:1)"). */
void job_gres_add(struct job_gres *gres, struct str text);

/* For job.gres: 0 if there are none, or if a text cannot be read. */
symbol job_gres_end(struct job_gres *gres, const struct job *job);

#endif
