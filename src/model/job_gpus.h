/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which GPUs of which nodes a job holds. Slurm tells it as one text for each of the job's nodes, in
 * their order: gres_detail of JSON and libslurm, as gres_ctld_job_build_details() writes it. */
#ifndef SONDE_MODEL_JOB_GPUS_H
#define SONDE_MODEL_JOB_GPUS_H

#include "base/buf.h"
#include "model/section.h"

enum { GPU_INDEXES_MAX = 1024 }; /* of one node; the first is 0 */

struct gpu_indexes {
    uint64_t bits[GPU_INDEXES_MAX / 64];
};

/* "0-1,3". False for anything else, an index past the ceiling or one that was there already. */
bool gpu_indexes_add(struct gpu_indexes *indexes, struct str list);
void gpu_indexes_put(const struct gpu_indexes *indexes, struct buf *to);
size_t gpu_indexes_count(const struct gpu_indexes *indexes);

/* The first one from *index on.
 *     for (unsigned gpu = 0; gpu_indexes_next(&indexes, &gpu); gpu++) … */
bool gpu_indexes_next(const struct gpu_indexes *indexes, unsigned *index);

/* The GPUs of one text, "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:5),shard:4(1/4,3/4)": those that it
 * gives indexes for and that are the job's alone. False if it cannot be read, or if it has other
 * indexes than it counts: Slurm cuts a list off after 127 bytes. */
bool gpu_indexes_of_detail(struct str detail, struct gpu_indexes *ret);

/* Of nodes whether any has GPUs, of jobs whether any has got or asks for some. */
bool section_has_gpus(const struct section *section);

/* Puts together the section's jobs.gpus, job by job. */
struct job_gpus_reader {
    struct section *section;
    symbol *held; /* by the job at hand, of each of its nodes in turn; 0: none */
    size_t n_held, room_held;
    size_t room; /* of the section's array */
    bool is_bad;
};

void job_gpus_init(struct job_gpus_reader *reader, struct section *section);
void job_gpus_begin(struct job_gpus_reader *reader);
void job_gpus_detail(struct job_gpus_reader *reader, struct str detail); /* of its next node */

/* All has been said of that job. False, and nothing is told of it, if a text cannot be read or if
 * there are not as many as it has nodes: which is of which would be a guess. */
bool job_gpus_end(struct job_gpus_reader *reader, const struct job *job);
void job_gpus_free(struct job_gpus_reader *reader); /* the section keeps what it was told */

#endif
