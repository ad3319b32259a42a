/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde exporter: what the cluster is doing, for Prometheus. */
#include "cmd/exporting.h"

static const struct exporter_shape shape = {
    .name = "sonde exporter",
    .summary = "export what a Slurm cluster is doing to Prometheus",
    .description =
        "Serves the state of a Slurm cluster as metrics on /metrics, in the Prometheus text "
        "format or OpenMetrics, as the scraper prefers.\n\n"
        "Slurm is asked only when somebody scrapes, at most once per poll limit, and all "
        "scrapers share the answer. While Slurm does not answer, the last values are served "
        "together with their age, and withdrawn after the stale limit.\n\n"
        "With --store every job is kept in a file, for sonde jobs, sonde usage and sonde web: "
        "Slurm is "
        "then asked every --store.interval as well, and slurmdbd for what has happened while "
        "nobody "
        "looked. With --cluster.file it is several clusters.\n\n"
        "With --prometheus.url it also tells who reads from and writes to Lustre, as sonde lustre "
        "does.\n\n"
        "SIGHUP, or POST to /-/reload, reads the configuration again: all of it takes effect, "
        "or, if there is a mistake in it, nothing changes and the log says why." SERVE_STOPS,
    .what = "What Slurm is doing",
    .address = ":9092",
    .connections = "4096",
};

int main(int argc, char **argv)
{
    return exporter_main(&shape, argc, argv);
}
