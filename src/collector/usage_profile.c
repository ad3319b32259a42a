/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's profiling says of each step: by the names of Quoding's plugin, with the labels that
 * a Pushgateway gave them, and by ours. */
#include "collector/usage_amounts.h"

#define CLAIMS "user", "account", "partition", "cluster"

#define TYPE_counter METRIC_COUNTER
#define TYPE_gauge   METRIC_GAUGE

#define SENSOR_LABELS_true  "slurm_job", "step", "sensor", "instance", CLAIMS
#define SENSOR_LABELS_false "slurm_job", "step", "instance", CLAIMS

#define ORIGINAL_LABELS_PROFILE_OF_TASK       "job", "instance", "step", "task"
#define ORIGINAL_LABELS_PROFILE_OF_ENERGY     "job", "instance", "step"
#define ORIGINAL_LABELS_PROFILE_OF_NETWORK    "job", "instance", "step"
#define ORIGINAL_LABELS_PROFILE_OF_FILESYSTEM "job", "instance", "step"

#define TASK(number, name, type, help)                                                             \
    { "slurm_profile_task_" name,                                                                  \
      TYPE_##type,                                                                                 \
      help,                                                                                        \
      { "slurm_job", "step", "task", "instance", CLAIMS } },
#define NODE(number, kind, name, type, has_sensor, help)                                           \
    { "slurm_profile_node_" name, TYPE_##type, help, { SENSOR_LABELS_##has_sensor } },
#define ORIGINAL(number, kind, name, help)                                                         \
    { name, METRIC_UNTYPED, help, { ORIGINAL_LABELS_##kind } },

/* Each has the place of its metric in profile_metrics. */
static const struct family families[] = {
#include "model/profile_metrics.inc"
};

_Static_assert(COUNT(families) <= METRIC_FAMILIES_MAX, "a writer has room for them");

/* A step's numbers as text, for labels. */
struct digits {
    char job[NUM_U64_MAX], task[NUM_U64_MAX];
};

static struct str put_digits(char digits[NUM_U64_MAX], uint64_t number)
{
    return (struct str){ digits, num_put_u64(digits, number) };
}

/* The values of its family's labels. */
static void fill_values(const struct profile_use *use, const struct profile_dataset *dataset,
                        const struct profile_value *value, struct digits *digits,
                        struct str values[METRIC_LABELS_MAX])
{
    const struct profile_metric *metric = value->metric;
    size_t n = 0;

    values[n++] = put_digits(digits->job, use->id.job_id);
    if (metric->is_original)
        values[n++] = str_of(use->id.node);
    values[n++] = str_of(use->id.step);
    if (metric->kind == PROFILE_OF_TASK)
        values[n++] = put_digits(digits->task, dataset->task);
    if (metric->is_original)
        return;
    if (metric->has_sensor)
        values[n++] = value->sensor ? str_of(value->sensor) : STR("");
    values[n++] = str_of(use->id.node);
    values[n++] = str_of(use->labels.user);
    values[n++] = str_of(use->labels.account);
    values[n++] = str_of(use->labels.partition);
    values[n++] = str_of(use->labels.cluster);
}

static void write_dataset(const struct profile_use *use, const struct profile_dataset *dataset,
                          const struct profile_metric *metric, struct metric_writer *writer)
{
    struct str values[METRIC_LABELS_MAX];
    struct digits digits;

    for (size_t i = 0; i < dataset->n_values; i++)
        if (dataset->values[i].metric == metric) {
            fill_values(use, dataset, &dataset->values[i], &digits, values);
            metric_double(writer, values, dataset->values[i].value);
        }
}

static void write_step(const struct profile_use *use, const struct profile_metric *metric,
                       struct metric_writer *writer)
{
    for (size_t i = 0; i < use->n_datasets; i++)
        if (use->datasets[i].kind == metric->kind)
            write_dataset(use, &use->datasets[i], metric, writer);
}

/* Of a step that has ended the counters remain, as they do of a job. */
static void collect(const struct usage *usage, struct metric_writer *writer)
{
    for (size_t family = 0; family < COUNT(families) && usage->n_profiles; family++) {
        metric_begin(writer, family);
        for (size_t i = 0; i < usage->n_profiles; i++)
            if (!usage->profiles[i]->has_ended || families[family].type == METRIC_COUNTER)
                write_step(usage->profiles[i], &profile_metrics[family], writer);
    }
}

const struct usage_collector usage_collector_profile = {
    .name = "profile",
    .help = "what Slurm's profiling says of each step, where its plugin tells the agent",
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
