/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints docs/metrics.md from the tables that the exporter and the agent themselves use. */
#include "collector/agent_self.h"
#include "collector/self.h"
#include "collector/up_self.h"

static const char *const types[] = { "gauge", "counter", "histogram", "untyped" };

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

static void print_origin(enum kind kind)
{
    if (kind == KIND_LUSTRE)
        puts("Made of what a Prometheus says of Lustre: only with `--prometheus.url`.");
    else if (kind == KIND_ENDED)
        puts("Made of what the store keeps: only with `--store`.");
    else if (kind == KIND_ALLOCATIONS)
        puts("Made of the file of allocations and the store: only with `--allocations.file` and "
             "`--store`.");
    else
        printf("Made of Slurm's %s.\n", kind_name(kind));
}

static void print_profile(const struct collector *collector)
{
    if (!collector->profile)
        return;
    printf("Only in the profile `%s`: `?profile=%s`, `--metrics.profile=%s`.\n", collector->profile,
           collector->profile, collector->profile);
    if (collector->is_prefixed)
        puts("Before each name stands what `--metrics.prefix` gives.");
}

static void print_exporter(void)
{
    puts(
        "\n## The exporter\n\n"
        "A simulated cluster has the label `simulated=\"true\"` on everything. Names are those of\n"
        "prometheus-slurm-exporter where it has one, also where they break the conventions: some\n"
        "gauges are called `_total`.");
    for (size_t i = 0; collectors[i]; i++) {
        printf("\n### %s\n\nGives %s. ", collectors[i]->name, collectors[i]->help);
        print_origin(collectors[i]->kind);
        print_profile(collectors[i]);
        print_families(collectors[i]->families, collectors[i]->n_families);
    }
    puts("\n### The exporter itself\n\nAlways there.");
    print_families(self_families, n_self_families);
    puts("\n### sonde up itself\n\nWhat `sonde up` adds: of its agent, and of the series that it "
         "keeps.");
    print_families(up_self_families, n_up_self_families);
}

static void print_agent(void)
{
    puts("\n## The agent\n\n"
         "Names that begin with `jobs_` are those of jobs_exporter, with its labels, types and\n"
         "units; they tell the same as the others. What the kernel, Slurm or a driver does not "
         "tell\n"
         "is absent. Of a job that has ended, counters, peaks, limits and its owner are shown for "
         "a\n"
         "while; what is true of a moment is not.");
    for (size_t i = 0; usage_collectors[i]; i++) {
        printf("\n### %s\n\nGives %s.%s\n", usage_collectors[i]->name, usage_collectors[i]->help,
               usage_collectors[i]->is_off ? " Off unless asked for." : "");
        print_families(usage_collectors[i]->families, usage_collectors[i]->n_families);
    }
    puts("\n### The agent itself\n\nAlways there.");
    print_families(agent_self_families, n_agent_self_families);
}

int main(void)
{
    puts(
        "# Metrics\n\n"
        "Made from the tables in `src/collector` by `./check golden --update`; do not edit.\n\n"
        "`sonde exporter` tells of the cluster, `sonde agent` of the jobs on one node. Collectors\n"
        "are switched with `--[no-]collector.NAME` and chosen per scrape with `?collect[]=NAME`.\n"
        "A counter without `_total` in its name is typed `unknown` in OpenMetrics.");
    print_exporter();
    print_agent();
    return 0;
}
