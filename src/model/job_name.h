/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How people name a job: "4711", a task of an array "4711_7", a component of a heterogeneous job
 * "4711+1", each also with its cluster in front: "beluga:4711". */
#ifndef SONDE_MODEL_JOB_NAME_H
#define SONDE_MODEL_JOB_NAME_H

#include "base/buf.h"
#include "base/err.h"

struct job_name {
    struct str cluster; /* empty: any */
    uint32_t id;
    uint32_t task, offset; /* MODEL_UNKNOWN_U32: all */
};

/* -EINVAL with a sentence. The cluster is part of the text. */
int job_name_read(struct str text, struct job_name *ret, struct err *err);

void job_name_put(struct buf *to, const struct job_name *name);

#endif
