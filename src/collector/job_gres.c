/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many GRES of each name and type a job has: a series for each of them. */
#include "base/num.h"
#include "collector/collector.h"
#include "collector/gres.h"
#include "collector/known.h"
#include "collector/once.h"

enum { MOST_SERIES = 50000 };

static const struct family families[] = {
    { "slurm_job_gres_allocated",
      METRIC_GAUGE,
      "GRES that are allocated to a job by name and type, GPUs included: type none where the job's "
      "TRES name no type.",
      { "job_id", "gres", "type" } },
};

static void write_list(const struct gres_reader *reader, const struct gres_list *list, uint32_t job,
                       size_t *left, struct metric_writer *writer)
{
    char id[NUM_U64_MAX];
    struct str labels[] = { { id, num_put_u64(id, job) }, STR(""), STR("") };

    for (size_t i = 0; i < list->n; i++) {
        if (!*left) {
            writer->folded++;
            continue;
        }
        labels[1] = gres_name(reader, list->item[i].type);
        labels[2] = gres_type_label(reader, list->item[i].type);
        known_write(writer, labels, list->item[i].count);
        (*left)--;
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    size_t left = MOST_SERIES;
    struct gres_reader reader;
    struct once once;

    metric_begin(writer, 0);
    gres_reader_init(&reader, section, STR(""));
    once_init(&once);
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        if (!job_holds_resources(job->state) || !once_numbers(&once, job->id))
            continue;
        write_list(&reader, gres_read(&reader, job->tres), job->id, &left, writer);
        write_list(&reader, gres_read(&reader, job->gres), job->id, &left, writer);
    }
    once_free(&once);
    gres_reader_free(&reader);
}

const struct collector collector_job_gres = {
    .name = "job_gres",
    .help = "how many GRES each job has: a series for each name and type of a job",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
