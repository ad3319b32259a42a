/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue as a whole: jobs by state, and why those that wait do. Names as
 * prometheus-slurm-exporter has them. */
#include "collector/collector.h"

enum { COUNT_PER_STATE, PENDING_REASON };

enum { MOST_REASONS = 100 };

static const struct family families[] = {
    [COUNT_PER_STATE] = { "slurm_job_count_per_state",
                          METRIC_GAUGE,
                          "Jobs in the queue by state; every task of a job array counts.",
                          { "state" } },
    [PENDING_REASON] = { "slurm_pending_reason_total",
                         METRIC_GAUGE,
                         "Pending jobs by the reason that Slurm gives for their waiting; past the "
                         "100 most "
                         "frequent ones the rest is called other.",
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

struct reason {
    struct str text;
    uint64_t jobs;
};

static int more_jobs_first(const void *a, const void *b)
{
    uint64_t x = ((const struct reason *)a)->jobs, y = ((const struct reason *)b)->jobs;

    return (x < y) - (x > y);
}

/* The most frequent ones by name, the rest together: a plugin's message to one job is a reason too.
 */
static void write_reasons(struct reason *reasons, size_t n, struct metric_writer *writer)
{
    uint64_t other = 0;

    if (n > MOST_REASONS)
        qsort(reasons, n, sizeof(*reasons), more_jobs_first);
    metric_begin(writer, PENDING_REASON);
    for (size_t i = 0; i < n; i++) {
        if (i < MOST_REASONS)
            metric_u64(writer, &reasons[i].text, reasons[i].jobs);
        else
            other += reasons[i].jobs;
    }
    if (n > MOST_REASONS) {
        writer->folded += n - MOST_REASONS;
        metric_u64(writer, METRIC_VALUES(STR("other")), other);
    }
}

static void collect_reasons(const struct section *section, struct metric_writer *writer)
{
    struct arena arena = { 0 };
    struct symbols names;
    struct reason *reasons = NULL;
    size_t room = 0, n = 0;

    symbols_init(&names, &arena);
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];
        symbol reason;

        if (job->state.base != JOB_PENDING || !job->reason)
            continue;
        /* symbol 0 is the empty one */
        reason = symbols_put(&names, bare_reason(section_text(section, job->reason))) - 1;
        if (reason == n) {
            reasons = heap_grow(reasons, n, &room, sizeof(*reasons));
            reasons[n++] = (struct reason){ symbols_get(&names, reason + 1), 0 };
        }
        reasons[reason].jobs += job->tasks;
    }
    write_reasons(reasons, n, writer);
    free(reasons);
    symbols_free(&names);
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
    .n_families = COUNT(families),
    .collect = collect,
};
