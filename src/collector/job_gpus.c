/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which GPUs each job holds: a series for each GPU in use. With what the agents see on the nodes it
 * tells a GPU that is held and not used. */
#include "base/num.h"
#include "collector/collector.h"
#include "collector/once.h"
#include "model/job_gpus.h"

enum { MOST_GPUS = 50000 };

static const struct family families[] = {
    { "slurm_job_gpu_allocated",
      METRIC_GAUGE,
      "Always 1; the labels tell which GPU of which node a job holds, by its index in Slurm.",
      { "job_id", "node", "gpu" } },
};

static void write_row(const struct section *section, const struct job_gpus *row, size_t *left,
                      struct metric_writer *writer)
{
    struct gpu_indexes indexes = { 0 };
    char id[NUM_U64_MAX], index[NUM_U64_MAX];
    struct str labels[] = { { id, num_put_u64(id, row->job_id) },
                            section_text(section, row->node),
                            { index, 0 } };

    if (!gpu_indexes_add(&indexes, section_text(section, row->gpus)))
        return;
    for (unsigned gpu = 0; gpu_indexes_next(&indexes, &gpu); gpu++) {
        if (!*left) {
            writer->folded++;
            continue;
        }
        labels[2].n = num_put_u64(index, gpu);
        metric_u64(writer, labels, 1);
        (*left)--;
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct jobs *jobs = &section->jobs;
    size_t left = MOST_GPUS;
    struct once once;

    metric_begin(writer, 0);
    once_init(&once);
    for (size_t i = 0; i < jobs->n_gpus; i++)
        if (once_numbers(&once, jobs->gpus[i].job_id, jobs->gpus[i].node))
            write_row(section, &jobs->gpus[i], &left, writer);
    once_free(&once);
}

const struct collector collector_job_gpus = {
    .name = "job_gpus",
    .help = "which GPUs each job holds: a series for each GPU in use",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .is_of_details = true,
    .collect = collect,
};
