/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long jobs were pending, of those that have started. */
#include "collector/collector.h"

enum { WAIT };

static const struct family families[] = {
    [WAIT] = { "slurm_job_wait_seconds",
               METRIC_HISTOGRAM,
               "How long jobs were pending before they started, from when they could have run: "
               "submitted, not held, no dependency left. With a store: every job that has started "
               "since the store was begun and that the queue or slurmdbd has shown. Without: jobs "
               "that the queue has shown since sonde was started; a job that starts and leaves the "
               "queue between two polls is missing.",
               { "partition" } },
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    metric_begin(writer, WAIT);
    for (size_t i = 0; i < section->jobs.n_waits; i++) {
        const struct wait *wait = &section->jobs.wait[i];
        struct str partition = section_text(section, wait->partition);

        metric_histogram(
            writer, &partition,
            (struct histogram_view){ wait_bounds, WAIT_BOUNDS, wait->buckets, wait->sum });
    }
}

const struct collector collector_waits = {
    .name = "waits",
    .help = "how long jobs were pending before they started, by partition",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
