/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue as a whole: jobs by state, and why those that wait do. Names as
 * prometheus-slurm-exporter has them. */
#include "collector/collector.h"
#include "collector/tally.h"

enum { COUNT_PER_STATE, PENDING_REASON };

static const struct family families[] = {
    [COUNT_PER_STATE] = { "slurm_job_count_per_state",
                          METRIC_GAUGE,
                          "Jobs in the queue by state; every task of a job array counts.",
                          { "state" } },
    [PENDING_REASON] = { "slurm_pending_reason_total",
                         METRIC_GAUGE,
                         "Pending jobs by the reason that Slurm gives for their waiting.",
                         { "reason" } },
};

static void collect_states(const struct jobs *jobs, struct metric_writer *writer)
{
    uint64_t *counts = heap_alloc(n_job_state_words * sizeof(*counts));

    for (size_t i = 0; i < jobs->n; i++)
        counts[job_state_index(jobs->job[i].state)] += jobs->job[i].tasks;
    metric_begin(writer, COUNT_PER_STATE);
    for (size_t i = 0; i < n_job_state_words; i++)
        metric_u64(writer, &job_state_words[i], counts[i]);
    free(counts);
}

/* "ReqNodeNotAvail, UnavailableNodes:n[1-3]" has a node list that differs from job to job: what
 * stands before the colon is the reason. */
static struct str bare_reason(struct str reason)
{
    if (str_starts(reason, STR("ReqNodeNotAvail")))
        reason = str_head(reason, str_find(reason, ':'));
    return reason;
}

static void collect_reasons(const struct section *section, struct metric_writer *writer)
{
    struct arena arena = { 0 };
    struct symbols reasons;
    uint64_t *counts;

    symbols_init(&reasons, &arena);
    counts = heap_alloc((symbols_count(&section->symbols) + 1) * sizeof(*counts));
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        if (job->state.base == JOB_PENDING && job->reason) {
            symbol reason = symbols_put(&reasons, bare_reason(section_text(section, job->reason)));

            counts[reason] += job->tasks;
        }
    }
    metric_begin(writer, PENDING_REASON);
    for (symbol i = 1; i < symbols_count(&reasons); i++)
        metric_u64(writer, METRIC_VALUES(symbols_get(&reasons, i)), counts[i]);
    free(counts);
    symbols_free(&reasons);
    arena_clear(&arena);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    collect_states(&section->jobs, writer);
    collect_reasons(section, writer);
}

const struct collector collector_jobs = {
    .name = "jobs",
    .help = "jobs by state and by pending reason",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = sizeof(families) / sizeof(families[0]),
    .collect = collect,
};
