/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints tables that the programs are made from as one JSON object, for tests that go by them:
 * collectors, what sonde asks of Slurm's commands, metrics of the profile plugin, pages, API. */
#include "collector/collector.h"
#include "collector/self.h"
#include "model/profile.h"
#include "source/cli_format.h"
#include "web/api_call.h"
#include "web/site.h"

static void print_fields(const char *name, const char *const *fields, size_t n)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < n; i++)
        printf("%s\"%s\"", i ? ", " : "", fields[i]);
    puts("],");
}

static void print_names(const struct family *families, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s\"%s\"", i ? ", " : "", families[i].name);
}

static void print_collectors(void)
{
    puts("\"collectors\": [");
    for (size_t i = 0; collectors[i]; i++) {
        printf("%s{\"name\": \"%s\", \"kind\": \"%s\", \"profile\": \"%s\", \"families\": [",
               i ? ",\n" : "", collectors[i]->name, kind_name(collectors[i]->kind),
               collectors[i]->profile ? collectors[i]->profile : "");
        print_names(collectors[i]->families, collectors[i]->n_families);
        printf("]}");
    }
    printf("],\n\"self\": [");
    print_names(self_families, n_self_families);
    puts("],");
}

static void print_profile(void)
{
    static const char *const datasets[] = { "task", "energy", "network", "filesystem" };

    puts("\"profile_metrics\": [");
    for (size_t i = 0; i < n_profile_metrics; i++)
        printf("%s{\"name\": \"%s\", \"dataset\": \"%s\"}", i ? ",\n" : "", profile_metrics[i].name,
               datasets[profile_metrics[i].kind]);
    puts("],");
}

static void print_routes(void)
{
    printf("\"pages\": [");
    for (size_t i = 0; site_pages[i]; i++)
        printf("%s\"%s\"", i ? ", " : "", site_pages[i]->path);
    printf("],\n\"api\": [");
    for (size_t i = 0; i < COUNT(api_resources); i++)
        printf("%s\"%s\"", i ? ", " : "", api_resources[i]->path);
    puts("]");
}

int main(void)
{
    puts("{");
    print_fields("squeue", squeue_fields, COUNT(squeue_fields));
    print_fields("sinfo", sinfo_fields, COUNT(sinfo_fields));
    print_collectors();
    print_profile();
    print_routes();
    puts("}");
    return 0;
}
