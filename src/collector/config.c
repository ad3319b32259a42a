/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which cluster this is, and what of it is hidden from us: slurm.conf(5), PrivateData. */
#include "collector/collector.h"

enum { INFO, LIMITED };

static const struct family families[] = {
    [INFO] = { "slurm_config_info",
               METRIC_GAUGE,
               "Always 1; the labels tell the cluster's name and the version of its slurmctld.",
               { "cluster_name", "version" } },
    [LIMITED] = { "sonde_source_limited",
                  METRIC_GAUGE,
                  "1 for each word of PrivateData that hides something from the user as whom sonde "
                  "asks Slurm: what is counted of it is then too little. Else 0.",
                  { "reason" } },
};

/* These make numbers wrong, so that their 0 is said. */
static const unsigned always_told = 1 << PRIVATE_ACCOUNTS | 1 << PRIVATE_JOBS | 1 << PRIVATE_NODES |
                                    1 << PRIVATE_PARTITIONS | 1 << PRIVATE_RESERVATIONS |
                                    1 << PRIVATE_USAGE | 1 << PRIVATE_USERS;

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct config *config = &section->config;

    metric_begin(writer, INFO);
    if (config->cluster || config->version)
        metric_u64(writer,
                   METRIC_VALUES(section_text(section, config->cluster),
                                 section_text(section, config->version)),
                   1);
    metric_begin(writer, LIMITED);
    for (unsigned i = 0; i < PRIVATE_DATA; i++)
        if ((always_told | config->hidden) >> i & 1)
            metric_u64(writer, METRIC_VALUES(private_data_words[i]), config->hidden >> i & 1);
}

const struct collector collector_config = {
    .name = "config",
    .help = "the cluster's name and version, and what PrivateData hides",
    .kind = KIND_CONFIG,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
