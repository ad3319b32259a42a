/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What jobs hold by the features that they asked their nodes to have: sbatch(1), --constraint.
 * Names as prometheus-slurm-exporter has them. */
#include "collector/job_sums.h"

enum { TOTAL, CPU_ALLOC, MEM_ALLOC };

#define BY_FEATURE                                                                                 \
    " by the feature that they asked for: a job that asked for a&b counts for both, one that "     \
    "asked for none under the empty name; past the 100 most frequent ones the rest is called "     \
    "other."

static const struct family families[] = {
    [TOTAL] = { "slurm_feature_total",
                METRIC_GAUGE,
                "Jobs that hold resources, suspended ones included," BY_FEATURE,
                { "feature" } },
    [CPU_ALLOC] = { "slurm_feature_cpu_alloc",
                    METRIC_GAUGE,
                    "CPUs that jobs hold, suspended ones none," BY_FEATURE,
                    { "feature" } },
    [MEM_ALLOC] = { "slurm_feature_mem_alloc",
                    METRIC_GAUGE,
                    "Memory that jobs hold in bytes, suspended ones included," BY_FEATURE,
                    { "feature" } },
};

/* "a&b" asks for both. What stands in brackets or parentheses ("[a|b]", "(a*2&b)") is one request
 * that cannot be told apart. */
static void cut_features(struct groups *groups, struct str text)
{
    size_t begin = 0, depth = 0;

    for (size_t i = 0; i <= text.n; i++) {
        char c = i < text.n ? text.p[i] : '&';

        if (c == '[' || c == '(')
            depth++;
        else if ((c == ']' || c == ')') && depth)
            depth--;
        if (i < text.n && (c != '&' || depth))
            continue;
        if (i > begin)
            groups_put(groups, str_span(text.p + begin, text.p + i));
        begin = i + 1;
    }
}

static const struct job_sums_row rows[] = {
    { TOTAL, AMOUNT_JOBS, HOLDING },
    { CPU_ALLOC, AMOUNT_CPUS, HOLDING },
    { MEM_ALLOC, AMOUNT_MEMORY_BYTES, HOLDING },
};

static const struct job_sums_plan plan = {
    .key = offsetof(struct job, features),
    .cut = cut_features,
    .is_bounded = true,
    .rows = rows,
    .n_rows = COUNT(rows),
};

static void collect(const struct section *section, struct metric_writer *writer)
{
    if (!section->jobs.lacks_features)
        job_sums_collect(&plan, section, writer);
}

const struct collector collector_features = {
    .name = "features",
    .help = "running jobs, their CPUs and memory by the features that they asked for",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
