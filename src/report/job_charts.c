/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the charts of a job. */
#include "report/job_charts.h"

#include "report/core_charts.h"
#include "report/words.h"

#include <math.h>

enum { TEXT_MAX = 256 };

static const double acceptable_cpu_ratio = 0.8;

/* What each node was given, or on average if that differs. */
struct given {
    double least, most, sum;
    size_t n;
};

static void take_given(struct given *given, double amount)
{
    if (!(amount > 0) || !isfinite(amount))
        return;
    given->least = given->n ? fmin(given->least, amount) : amount;
    given->most = given->n ? fmax(given->most, amount) : amount;
    given->sum += amount;
    given->n++;
}

static double mean_given(const struct given *given)
{
    return given->n ? given->sum / (double)given->n : NAN;
}

/* `member` is that of struct use_facts. */
static struct given given_by_node(const struct job_facts *facts, size_t member)
{
    uint32_t n_nodes = facts->row.record.node_count;
    struct given given = { 0 };

    for (size_t i = 0; i < facts->n_nodes; i++)
        take_given(&given, *(const double *)((const char *)&facts->node[i].use + member));
    if (!given.n && n_nodes && n_nodes != MODEL_UNKNOWN_U32)
        take_given(&given,
                   *(const double *)((const char *)&facts->total + member) / (double)n_nodes);
    return given;
}

static void put_by_node(const struct job_facts *facts, const struct given *given, struct buf *to)
{
    if (given->n > 1 || facts->row.record.node_count > 1)
        buf_text(to, given->least < given->most ? " a node on average" : " a node");
}

static void limit_of_cpus(const struct job_facts *facts, struct buf *text, double *ret)
{
    struct given given = given_by_node(facts, offsetof(struct use_facts, cpus));
    double cpus = mean_given(&given);

    *ret = acceptable_cpu_ratio * cpus;
    words_percent(text, acceptable_cpu_ratio);
    buf_text(text, " of ");
    words_number(text, cpus);
    buf_text(text, cpus == 1 ? " CPU" : " CPUs");
    put_by_node(facts, &given, text);
}

static void limit_of_memory(const struct job_facts *facts, struct buf *text, double *ret)
{
    struct given given = given_by_node(facts, offsetof(struct use_facts, memory_bytes));

    *ret = mean_given(&given);
    buf_text(text, "allocated: ");
    words_bytes(text, *ret);
    put_by_node(facts, &given, text);
}

static void limit_of_gpu_memory(const struct job_facts *facts, struct buf *text, double *ret)
{
    struct given given = { 0 };

    for (size_t i = 0; i < facts->n_gpus; i++)
        take_given(&given, facts->gpu[i].memory_bytes);
    *ret = mean_given(&given);
    buf_text(text, "memory of a GPU: ");
    words_bytes(text, *ret);
    if (given.least < given.most)
        buf_text(text, " on average");
}

/* Writes what the dashed line stands for, and gives its height. */
typedef void limit_function(const struct job_facts *facts, struct buf *text, double *ret);

static const struct {
    enum facts_plot_kind plot;
    enum axis_unit unit;
    const char *title, *members;
    limit_function *limit; /* or NULL */
} kinds[] = {
    [JOB_CHART_CPU] = { PLOT_CPU, AXIS_NUMBER, "CPUs in use by node", "nodes", limit_of_cpus },
    [JOB_CHART_MEMORY] = { PLOT_MEMORY, AXIS_BYTES, "Memory in use by node", "nodes",
                           limit_of_memory },
    [JOB_CHART_READ] = { PLOT_READ, AXIS_BYTES_PER_SECOND, "Read by node", "nodes", NULL },
    [JOB_CHART_WRITTEN] = { PLOT_WRITTEN, AXIS_BYTES_PER_SECOND, "Written by node", "nodes", NULL },
    [JOB_CHART_GPU] = { PLOT_GPU, AXIS_RATIO, "GPU utilisation", "GPUs", NULL },
    [JOB_CHART_GPU_MEMORY] = { PLOT_GPU_MEMORY, AXIS_BYTES, "GPU memory in use", "GPUs",
                               limit_of_gpu_memory },
    [JOB_CHART_GPU_POWER] = { PLOT_GPU_POWER, AXIS_WATTS, "GPU power", "GPUs", NULL },
};

void job_chart_over_time(const struct job_facts *facts, enum job_chart which, struct arena *arena,
                         struct time_chart *ret)
{
    struct buf text;

    *ret = (struct time_chart){
        .title = kinds[which].title,
        .members = kinds[which].members,
        .unit = kinds[which].unit,
        .from = &facts->plot[kinds[which].plot],
        .limit = NAN,
    };
    if (!kinds[which].limit)
        return;
    buf_init(&text, TEXT_MAX);
    kinds[which].limit(facts, &text, &ret->limit);
    ret->limit_text = arena_str(arena, buf_str(&text));
    buf_free(&text);
}

const char *const job_chart_names[JOB_CHARTS] = {
    "cpu", "memory", "read", "written", "gpu", "gpu_memory", "gpu_power", "time", "cores",
};

bool job_chart_find(struct str name, enum job_chart *ret)
{
    static const struct {
        const char *name;
        enum job_chart chart;
    } others[] = { { "jobs_cpu_percent", JOB_CHART_CPU },
                   { "jobs_rss", JOB_CHART_MEMORY },
                   { "jobs_read_mb", JOB_CHART_READ },
                   { "jobs_write_mb", JOB_CHART_WRITTEN } };

    for (size_t i = 0; i < JOB_CHARTS; i++) {
        if (str_eq(name, str_of(job_chart_names[i]))) {
            *ret = (enum job_chart)i;
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        if (str_eq(name, str_of(others[i].name))) {
            *ret = others[i].chart;
            return true;
        }
    }
    return false;
}

bool job_chart(struct chart *to, struct arena *arena, const struct job_facts *facts,
               enum job_chart which, double width, double height)
{
    struct time_chart over_time;

    chart_init(to, arena, width, height);
    if (which == JOB_CHART_TIME)
        return time_pie(to, facts);
    if (which == JOB_CHART_CORES)
        return core_chart(to, facts);
    job_chart_over_time(facts, which, arena, &over_time);
    return time_chart(to, &over_time);
}
