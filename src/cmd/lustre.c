/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde lustre: who reads from and writes to Lustre, for Prometheus. */
#include "cmd/exporting.h"

static const struct exporter_shape shape = {
    .name = "sonde lustre",
    .summary = "export who reads from and writes to Lustre to Prometheus",
    .description =
        "Serves, on /metrics, which account and user reads from and writes to Lustre, and which "
        "program of whom outside of jobs: what a Prometheus has of the job stats of Lustre's "
        "servers, joined with Slurm's jobs and with the names of users and groups.\n\n"
        "The job stats come from sonde agent on those servers, or from another exporter that gives "
        "lustre_job_read_bytes_total, lustre_job_write_bytes_total and lustre_job_stats_total with "
        "a label jobid.\n\n"
        "Prometheus and Slurm are asked only when somebody scrapes, at most once per poll limit, "
        "and all scrapers share the answer. Who cannot wait for it gets "
        "cluster_exporter_scrape_ok 0, and nothing of an earlier moment.\n\n"
        "SIGHUP, or POST to /-/reload, reads the configuration again: all of it takes effect, "
        "or, if there is a mistake in it, nothing changes and the log says why." SERVE_STOPS,
    .what = "Who reads from and writes to Lustre",
    .address = ":9846",
    .connections = "512",
    .is_lustre = true,
};

int main(int argc, char **argv)
{
    return exporter_main(&shape, argc, argv);
}
