/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue as a whole: jobs by state, and why those that wait do. Names as
 * prometheus-slurm-exporter has them. */
#include "collector/collector.h"
#include "collector/reasons.h"

enum { COUNT_PER_STATE, PENDING_REASON };

static const struct family families[] = {
    [COUNT_PER_STATE] = { "slurm_job_count_per_state",
                          METRIC_GAUGE,
                          "Jobs in the queue by state; every task of a job array counts.",
                          { "state" } },
    [PENDING_REASON] = { "slurm_pending_reason_total",
                         METRIC_GAUGE,
                         "Pending jobs by the reason that Slurm gives for their waiting; past the "
                         "100 most frequent ones the rest is called other.",
                         { "reason" } },
};

/* prometheus-slurm-exporter takes the parentheses off every reason but this one. */
static void use_known_spelling(struct reasons *reasons)
{
    for (size_t i = 0; i < reasons->n; i++)
        if (str_eq(reasons->rows[i].name, REASON_UNAVAILABLE_NODES))
            reasons->rows[i].name = STR("(ReqNodeNotAvail, UnavailableNodes)");
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    uint64_t *jobs = heap_alloc(n_job_state_words * sizeof(*jobs));
    struct reasons reasons;

    reasons_init(&reasons, section);
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        jobs[job_state_index(job->state)] += job->tasks;
        reasons_add(&reasons, job);
    }
    metric_begin(writer, COUNT_PER_STATE);
    for (size_t i = 0; i < n_job_state_words; i++)
        metric_u64(writer, &job_state_words[i], jobs[i]);
    metric_begin(writer, PENDING_REASON);
    use_known_spelling(&reasons);
    top_write(writer, reasons.rows, reasons.n, REASONS_MOST);
    reasons_free(&reasons);
    free(jobs);
}

const struct collector collector_jobs = {
    .name = "jobs",
    .help = "jobs by state and by pending reason",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
