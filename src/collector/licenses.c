/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Licences that Slurm hands out. Names as prometheus-slurm-exporter has them. */
#include "collector/collector.h"
#include "collector/known.h"

enum { TOTAL, USED, FREE, RESERVED, LAST_CONSUMED, LAST_DEFICIT };

static const struct family families[] = {
    [TOTAL] = { "slurm_lic_total", METRIC_GAUGE, "Licences that there are.", { "name" } },
    [USED] = { "slurm_lic_used", METRIC_GAUGE, "Licences that jobs hold.", { "name" } },
    [FREE] = { "slurm_lic_free",
               METRIC_GAUGE,
               "Licences that no job holds, set aside or not.",
               { "name" } },
    [RESERVED] = { "slurm_lic_reserved",
                   METRIC_GAUGE,
                   "Licences set aside by reservations.",
                   { "name" } },
    [LAST_CONSUMED] = { "slurm_lic_last_consumed",
                        METRIC_GAUGE,
                        "Licences that the licence server last said are in use, by Slurm's jobs "
                        "or by others; of remote licences, from Slurm 23.02 on.",
                        { "name" } },
    [LAST_DEFICIT] = { "slurm_lic_last_deficit",
                       METRIC_GAUGE,
                       "Licences of the cluster's share that others held when the licence server "
                       "last spoke; of remote licences, from Slurm 23.02 on.",
                       { "name" } },
};

static const struct {
    size_t family;
    size_t offset; /* of a uint64_t in struct license */
} amounts[] = {
    { TOTAL, offsetof(struct license, total) },
    { USED, offsetof(struct license, used) },
    { FREE, offsetof(struct license, free) },
    { RESERVED, offsetof(struct license, reserved) },
    { LAST_CONSUMED, offsetof(struct license, last_consumed) },
    { LAST_DEFICIT, offsetof(struct license, last_deficit) },
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(amounts); k++) {
        metric_begin(writer, amounts[k].family);
        for (size_t i = 0; i < section->licenses.n; i++) {
            const struct license *license = &section->licenses.license[i];
            const void *amount = (const char *)license + amounts[k].offset;

            known_write(writer, METRIC_VALUES(section_text(section, license->name)),
                        *(const uint64_t *)amount);
        }
    }
}

const struct collector collector_licenses = {
    .name = "licenses",
    .help = "licences: how many there are, are used, free and reserved",
    .kind = KIND_LICENSES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
