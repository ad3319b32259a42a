/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long jobs wait, from those that have started while sonde was looking. */
#include "collector/collector.h"

enum { WAIT };

static const struct family families[] = {
    [WAIT] = { "slurm_job_wait_seconds",
               METRIC_HISTOGRAM,
               "How long the jobs waited that have started since sonde began to look, from when "
               "they could have run: submitted, no longer held, nothing left to depend on.",
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
    .help = "how long jobs waited before they started, by partition",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
