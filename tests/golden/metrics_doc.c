/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints docs/metrics.md from the tables that the exporter itself uses. */
#include "collector/self.h"

static const char *const types[] = { "gauge", "counter", "histogram" };

static void print_families(const struct family *families, size_t n)
{
    puts("\n| metric | type | labels | what it is |\n|---|---|---|---|");
    for (size_t i = 0; i < n; i++) {
        printf("| `%s` | %s | ", families[i].name, types[families[i].type]);
        for (size_t k = 0; families[i].labels[k]; k++)
            printf("%s`%s`", k ? ", " : "", families[i].labels[k]);
        printf(" | %s |\n", families[i].help);
    }
}

int main(void)
{
    puts(
        "# Metrics\n\n"
        "Made from the tables in `src/collector` by `./check golden --update`; do not edit.\n\n"
        "Collectors are switched with `--[no-]collector.NAME` and chosen per scrape with\n"
        "`?collect[]=NAME`. A simulated cluster has the label `simulated=\"true\"` on everything.\n"
        "Names are those of prometheus-slurm-exporter where it has one, also where they break the\n"
        "conventions: some gauges are called `_total`. A counter without `_total` in its name is\n"
        "typed `unknown` in OpenMetrics.");
    for (size_t i = 0; collectors[i]; i++) {
        printf("\n## %s\n\nGives %s. Made of Slurm's %s.\n", collectors[i]->name,
               collectors[i]->help, kind_name(collectors[i]->kind));
        print_families(collectors[i]->families, collectors[i]->n_families);
    }
    puts("\n## sonde itself\n\nAlways there.");
    print_families(self_families, n_self_families);
    return 0;
}
