/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run used over time: a line for each node or GPU, or, of more than fit, the median and the
 * range of all. */
#include "report/series.h"

#include <math.h>

#define GPU_LABELS "node,gpu,gpu_instance"

/* Of one member, in the letters of series_put. */
static const struct row {
    const char *text, *other; /* other: where there is no such; or NULL */
    const char *old_text;     /* of nodes, jobs_exporter's */
    bool is_of_gpus;
} rows[FACTS_PLOTS] = {
    [PLOT_CPU] = { "rate(sonde_job_cpu_seconds_total{$}^)",
                   .old_text = "rate(jobs_cpu_time_total{&}^)" },
    [PLOT_MEMORY] = { "max_over_time(sonde_job_memory_bytes{$}')",
                      "max_over_time(sonde_job_resident_bytes{$}')",
                      "max_over_time(jobs_rss{&}')*1048576" },
    [PLOT_READ] = { "rate(sonde_job_read_bytes_total{$}^)",
                    .old_text = "rate(jobs_read_mb{&}^)*1048576" },
    [PLOT_WRITTEN] = { "rate(sonde_job_written_bytes_total{$}^)",
                       .old_text = "rate(jobs_write_mb{&}^)*1048576" },
    [PLOT_GPU] = { "avg_over_time(sonde_gpu_utilization_ratio{#}')",
                   "avg_over_time(sonde_job_gpu_utilization_ratio{$}')", .is_of_gpus = true },
    [PLOT_GPU_MEMORY] = { "max_over_time(sonde_job_gpu_memory_used_bytes{$}')",
                          "max_over_time(sonde_gpu_memory_used_bytes{#}')", .is_of_gpus = true },
    [PLOT_GPU_POWER] = { "avg_over_time(sonde_gpu_power_watts{#}')", .is_of_gpus = true },
};

/* Of all members; the last is not drawn. */
static const struct {
    const char *line, *function;
} sums[] = {
    { "median", "quantile(0.5," },
    { "lowest", "min(" },
    { "highest", "max(" },
    { "all", "sum(" },
};
enum { DRAWN_SUMS = 3 };

/* One, as its answer comes. */
struct plot {
    struct series *series;
    enum facts_plot_kind kind;
    const struct row *row;
    struct facts_plot *to;
    size_t n_members;
    struct plot_line line[PLOT_LINES_MAX];
    double *all; /* of all members together; NULL: not told */
};

static bool has_sums(const struct plot *plot)
{
    return plot->n_members > PLOT_LINES_MAX;
}

static void put_members(const struct plot *plot, const struct series_times *times, struct buf *to)
{
    const struct series *series = plot->series;
    const struct row *row = plot->row;
    const char *by = row->is_of_gpus ? GPU_LABELS : "node";

    if (!row->is_of_gpus && !series->has_agents) {
        buf_text(to, "max by(instance,exported_instance)(");
        series_put(series, times, to, row->old_text);
        buf_byte(to, ')');
        return;
    }
    buf_printf(to, "(max by(%s)(", by);
    series_put(series, times, to, row->text);
    if (row->other) {
        buf_printf(to, ") or max by(%s)(", by);
        series_put(series, times, to, row->other);
    }
    buf_text(to, "))");
    if (row->is_of_gpus)
        series_put(series, times, to, " and on(" GPU_LABELS ") sonde_job_gpu_info{$}");
}

static void put_text(const struct plot *plot, const struct series_times *times, struct buf *to)
{
    size_t n = plot->kind == PLOT_CPU ? COUNT(sums) : DRAWN_SUMS;

    if (!has_sums(plot)) {
        put_members(plot, times, to);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buf_printf(to, "%slabel_replace(%s", i ? " or " : "", sums[i].function);
        put_members(plot, times, to);
        buf_printf(to, "),\"fact\",\"%s\",\"\",\"\")", sums[i].line);
    }
}

/* From when on a point, which is of the time before it, tells of this run alone; 0: always. */
static int64_t first_time(const struct plot *plot)
{
    const struct series *series = plot->series;

    if (!series_is_requeued(series))
        return 0;
    return series->clean + series_rate_seconds(series, plot->to->step_seconds);
}

/* Points that are there, by their number; false: there are none. */
static bool read_points(const struct plot *plot, const struct prometheus_series *series,
                        double *value)
{
    const struct facts_plot *to = plot->to;
    int64_t first = first_time(plot);
    bool is_known = false;

    for (size_t i = 0; i < to->n_points; i++)
        value[i] = NAN;
    for (size_t i = 0; i < series->n_points; i++) {
        double at = round((series->point[i].time - (double)to->begin) / (double)to->step_seconds);

        if (!(at >= 0) || at >= (double)to->n_points || !isfinite(series->point[i].value) ||
            series->point[i].value < 0 || series->point[i].time < (double)first)
            continue;
        value[(size_t)at] = series->point[i].value;
        is_known = true;
    }
    return is_known;
}

/* Its labels are: fact, node, instance, exported_instance, gpu, gpu_instance. */
static struct str name_line(const struct plot *plot, const struct prometheus_series *series)
{
    const struct str *label = series->label;
    struct buf name;
    struct str copy;

    if (has_sums(plot))
        return arena_str(plot->series->arena, label[0]);
    buf_init(&name, 4096);
    buf_put(&name, label[1].n ? label[1] : series_host(label[3].n ? label[3] : label[2]));
    if (plot->row->is_of_gpus) {
        buf_byte(&name, ' ');
        series_put_gpu(&name, label[4], label[5]);
    }
    copy = arena_str(plot->series->arena, buf_str(&name));
    buf_free(&name);
    return copy;
}

static void take_line(void *ctx, const struct prometheus_series *series)
{
    struct plot *plot = ctx;
    double *value;

    if (plot->to->n_lines == PLOT_LINES_MAX)
        return;
    value = ARENA_ARRAY(plot->series->arena, double, plot->to->n_points);
    if (!read_points(plot, series, value))
        return;
    if (str_eq(series->label[0], STR("all")))
        plot->all = value;
    else
        plot->line[plot->to->n_lines++] = (struct plot_line){ name_line(plot, series), value };
}

static int ask(struct plot *plot, struct err *err)
{
    struct series *series = plot->series;
    struct facts_plot *to = plot->to;
    const struct series_times times = {
        .rate_seconds = series_rate_seconds(series, to->step_seconds),
        .gauge_seconds = series_gauge_seconds(series, to->step_seconds),
    };
    struct prometheus_range range = {
        .begin = to->begin,
        .end = to->begin + (int64_t)(to->n_points - 1) * to->step_seconds,
        .step_seconds = to->step_seconds,
        .labels = { "fact", "node", "instance", "exported_instance", "gpu", "gpu_instance" },
        .timeout_ms = series_timeout_ms(series),
        .cancelled = series->question->cancelled,
        .sink = take_line,
        .ctx = plot,
    };
    struct prometheus_result result;
    struct buf text;
    int code;

    buf_init(&text, SERIES_QUERY);
    put_text(plot, &times, &text);
    range.text = text.p;
    code = prometheus_range(series->question->prometheus, &range, &result, err);
    buf_free(&text);
    if (code == 0)
        series_note_warning(series, result.warning);
    return code;
}

/* The highest, NAN of none. */
static double highest(const double *value, size_t n)
{
    double most = NAN;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, value[i]);
    return most;
}

static double *add_up(const struct plot *plot)
{
    size_t n = plot->to->n_points;
    double *sum = ARENA_ARRAY(&plot->series->scratch, double, n);

    for (size_t i = 0; i < n; i++) {
        sum[i] = NAN;
        for (size_t k = 0; k < plot->to->n_lines; k++) {
            double value = plot->line[k].value[i];

            if (!isnan(value))
                sum[i] = isnan(sum[i]) ? value : sum[i] + value;
        }
    }
    return sum;
}

/* The most CPUs that were in use at once. */
static void take_busiest(const struct plot *plot)
{
    struct job_facts *facts = plot->series->facts;
    const double *all = has_sums(plot) ? plot->all : add_up(plot);
    double most = all ? highest(all, plot->to->n_points) : NAN;

    if (isfinite(most))
        facts->total.busiest_cpus = fmax(facts->total.busiest_cpus, most);
    for (size_t i = 0; i < plot->to->n_lines && !has_sums(plot); i++) {
        struct node_facts *node = facts_node(facts, plot->series->arena, plot->line[i].name);

        node->use.busiest_cpus =
            fmax(node->use.busiest_cpus, highest(plot->line[i].value, plot->to->n_points));
    }
}

static void keep(struct plot *plot)
{
    struct facts_plot *to = plot->to;

    if (plot->kind == PLOT_CPU)
        take_busiest(plot);
    if (!to->n_lines) {
        *to = (struct facts_plot){ 0 };
        return;
    }
    to->line = ARENA_ARRAY(plot->series->arena, struct plot_line, to->n_lines);
    memcpy(to->line, plot->line, to->n_lines * sizeof(*to->line));
    to->n_members = has_sums(plot) ? plot->n_members : to->n_lines;
}

static int take_plot(struct series *series, enum facts_plot_kind kind, struct err *err)
{
    struct plot plot = {
        .series = series,
        .kind = kind,
        .row = &rows[kind],
        .to = &series->facts->plot[kind],
        .n_members = rows[kind].is_of_gpus ? series->n_gpus : series->n_nodes,
    };
    int64_t step = series_step(series, plot.n_members);
    int code;

    if (!plot.n_members)
        return 0;
    *plot.to = (struct facts_plot){
        .begin = series->begin,
        .step_seconds = step,
        .n_points = (size_t)((series->end - series->begin) / step) + 1,
    };
    code = ask(&plot, err);
    if (code == 0)
        keep(&plot);
    else
        *plot.to = (struct facts_plot){ 0 };
    return code;
}

int series_take_plots(struct series *series, struct err *err)
{
    int code = 0;

    for (size_t kind = 0; kind < FACTS_PLOTS && code == 0; kind++)
        code = take_plot(series, (enum facts_plot_kind)kind, err);
    return code;
}
