/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report as one JSON object: docs/report.md has its members. Those of nodes, GPUs and processes
 * are as in a kept summary. */
#include "report/members.h"
#include "report/report.h"
#include "report/summary_table.h"
#include "report/use_members.h"
#include "report/waiting.h"

#include <math.h>

/* Of each list; how many more there are is told. */
enum {
    NODES_MAX = 5000,
    CORES_MAX = 20000,
    GPUS_MAX = 5000,
    PROCESSES_MAX = 1000,
    LIFE_MAX = 1000,
};

static void end_list(struct buf *to, const char *left_out, size_t n, size_t most)
{
    buf_byte(to, ']');
    if (n > most)
        member_whole(to, left_out, (int64_t)(n - most));
}

static void put_state(struct buf *to, struct job_state state)
{
    struct buf words;

    buf_init(&words, 512);
    job_state_put(&words, state);
    member_text(to, "state", buf_str(&words));
    buf_free(&words);
}

static void put_identity(struct buf *to, const struct job_row *row)
{
    const struct job_record *record = &row->record;

    member_text(to, "cluster", row->key.cluster);
    member_whole(to, "job_id", record->id);
    if (record->array_job_id) {
        member_whole(to, "array_job_id", record->array_job_id);
        member_u32(to, "array_task_id", record->array_task_id);
    }
    if (record->het_job_id) {
        member_whole(to, "het_job_id", record->het_job_id);
        member_whole(to, "het_offset", record->het_offset);
    }
    member_text(to, "name", record->name);
    member_text(to, "user", record->user);
    member_u32(to, "user_id", record->user_id);
    member_text(to, "account", record->account);
    member_text(to, "partition", record->partition);
    member_text(to, "qos", record->qos);
    member_text(to, "reservation", record->reservation);
}

static void put_job(struct buf *to, const struct job_row *row)
{
    const struct job_record *record = &row->record;
    uint32_t limit = record->time_limit_minutes;

    member_begin(to, "job", '{');
    put_identity(to, row);
    put_state(to, record->state);
    member_text(to, "reason", record->reason);
    member_u32(to, "exit_code", record->exit_code);
    member_u32(to, "exit_signal", record->exit_signal);
    member_u32(to, "restarts", record->restarts);
    member_text(to, "nodes", record->nodes);
    member_u32(to, "node_count", record->node_count);
    member_text(to, "tres", record->tres);
    member_text(to, "tres_requested", record->tres_requested);
    member_u64(to, "billing", row->billing);
    member_text(to, "gpu_types", row->gpu_types);
    member_time(to, "submit_time", record->submit_time);
    member_time(to, "eligible_time", record->eligible_time);
    member_time(to, "start_time", record->start_time);
    member_time(to, "end_time", record->end_time);
    member_span(to, "wait_seconds", row->wait_seconds);
    member_span(to, "elapsed_seconds", row->elapsed_seconds);
    member_u64(to, "suspended_seconds", record->suspended_seconds);
    if (limit != MODEL_UNKNOWN_U32)
        member_whole(to, "time_limit_seconds", (int64_t)limit * 60);
    member_u64(to, "energy_joules", record->energy_joules);
    buf_byte(to, '}');
}

static void put_waiting(struct buf *to, const struct job_record *record)
{
    struct buf words;

    buf_init(&words, 1024);
    waiting_put(&words, record);
    member_text(to, "why_waiting", buf_str(&words));
    buf_free(&words);
}

static void put_derived(struct buf *to, const struct job_facts *facts)
{
    member_number(to, "cpu_seconds_held", facts->cpu_seconds_held);
    member_number(to, "cpu_ratio", facts->cpu_ratio);
    member_number(to, "mean_cpus", facts->mean_cpus);
    member_number(to, "cores_used", facts->cores_used);
    member_number(to, "memory_ratio", facts->memory_ratio);
    member_number(to, "gpu_ratio", facts->gpu_ratio);
    member_number(to, "gpu_memory_ratio", facts->gpu_memory_ratio);
    member_number(to, "time_ratio", facts->time_ratio);
}

static void put_total(struct buf *to, const struct use_facts *total)
{
    member_begin(to, "total", '{');
    for (size_t i = 0; i < USE_MEMBERS; i++)
        member_number(to, use_members[i].name, use_value(total, &use_members[i]));
    buf_byte(to, '}');
}

static void put_list(struct buf *to, const char *name, const char *left_out,
                     const struct fact_table *table, const void *items, size_t size, size_t n,
                     size_t most)
{
    member_begin(to, name, '[');
    for (size_t i = 0; i < n && i < most; i++) {
        member_item(to, i);
        fact_put(to, table, (const char *)items + i * size);
        buf_byte(to, '}');
    }
    end_list(to, left_out, n, most);
}

static void put_cores(struct buf *to, const struct job_facts *facts)
{
    size_t n = 0;

    member_begin(to, "cores", '[');
    for (size_t i = 0; i < facts->n_nodes; i++) {
        const struct node_facts *node = &facts->node[i];

        for (size_t j = 0; j < node->n_cores; j++, n++) {
            struct core_item item = { node->name, node->core[j].core, node->core[j].seconds };

            if (n >= CORES_MAX)
                continue;
            member_item(to, n);
            fact_put(to, &summary_core, &item);
            buf_byte(to, '}');
        }
    }
    end_list(to, "cores_left_out", n, CORES_MAX);
}

static void put_rest_of_use(struct buf *to, const struct job_facts *facts)
{
    const struct lustre_facts *lustre = &facts->lustre;
    const struct earlier_facts *earlier = &facts->earlier;

    member_begin(to, "lustre", '{');
    member_number(to, "read_bytes", lustre->read_bytes);
    member_number(to, "written_bytes", lustre->written_bytes);
    member_number(to, "operations", lustre->operations);
    member_number(to, "opens", lustre->opens);
    buf_byte(to, '}');
    member_begin(to, "earlier", '{');
    member_whole(to, "n", (int64_t)earlier->n);
    member_number(to, "cpus_used", earlier->cpus_used);
    member_number(to, "memory_peak_bytes", earlier->memory_peak_bytes);
    member_number(to, "elapsed_seconds", earlier->elapsed_seconds);
    buf_byte(to, '}');
}

static void put_life(struct buf *to, const struct job_facts *facts)
{
    member_begin(to, "life", '[');
    for (size_t i = 0; i < facts->n_life && i < LIFE_MAX; i++) {
        member_item(to, i);
        member_time(to, "time", facts->life[i].time);
        member_text(to, "state", facts->life[i].state);
        member_text(to, "reason", facts->life[i].reason);
        buf_byte(to, '}');
    }
    end_list(to, "life_left_out", facts->n_life, LIFE_MAX);
}

static const char *const plot_names[FACTS_PLOTS] = {
    [PLOT_CPU] = "cpus",
    [PLOT_MEMORY] = "memory_bytes",
    [PLOT_READ] = "read_bytes_per_second",
    [PLOT_WRITTEN] = "written_bytes_per_second",
    [PLOT_GPU] = "gpu_ratio",
    [PLOT_GPU_MEMORY] = "gpu_memory_bytes",
    [PLOT_GPU_POWER] = "gpu_watts",
};

static void put_values(struct buf *to, const double *value, size_t n)
{
    member_begin(to, "values", '[');
    for (size_t i = 0; i < n; i++) {
        buf_text(to, i ? "," : "");
        if (isfinite(value[i]))
            buf_double(to, value[i]);
        else
            buf_text(to, "null");
    }
    buf_byte(to, ']');
}

static void put_plot(struct buf *to, const char *name, const struct facts_plot *plot)
{
    member_begin(to, name, '{');
    member_whole(to, "begin_time", plot->begin);
    member_whole(to, "step_seconds", plot->step_seconds);
    member_whole(to, "members", (int64_t)plot->n_members);
    member_begin(to, "lines", '[');
    for (size_t i = 0; i < plot->n_lines; i++) {
        member_item(to, i);
        member_text(to, "name", plot->line[i].name);
        put_values(to, plot->line[i].value, plot->n_points);
        buf_byte(to, '}');
    }
    buf_text(to, "]}");
}

static void put_plots(struct buf *to, const struct job_facts *facts)
{
    member_begin(to, "plots", '{');
    for (size_t i = 0; i < FACTS_PLOTS; i++)
        if (facts->plot[i].n_points)
            put_plot(to, plot_names[i], &facts->plot[i]);
    buf_byte(to, '}');
}

static void put_findings(struct buf *to, const struct job_report *report)
{
    member_begin(to, "findings", '[');
    for (size_t i = 0; i < report->n_findings; i++) {
        const struct finding *finding = &report->finding[i];

        member_item(to, i);
        member_text(to, "check", str_of(finding->check->name));
        member_text(to, "severity", str_of(severity_words[finding->severity]));
        member_text(to, "sentence", finding->sentence);
        member_text(to, "link", finding->link);
        buf_byte(to, '}');
    }
    buf_byte(to, ']');
}

static void put_advice(struct buf *to, const struct advice *advice)
{
    member_begin(to, "advice", '{');
    member_begin(to, "lines", '[');
    for (size_t i = 0; i < advice->n_lines; i++) {
        member_item(to, i);
        member_text(to, "line", advice->line[i].line);
        member_text(to, "why", advice->line[i].why);
        if (advice->line[i].is_guess)
            member_truth(to, "is_guess", true);
        buf_byte(to, '}');
    }
    buf_byte(to, ']');
    if (advice->n_lines) {
        member_whole(to, "jobs", (int64_t)advice->n_jobs);
        member_number(to, "cpus_back", advice->cores_back);
        member_number(to, "memory_bytes_back", advice->memory_bytes_back);
        member_number(to, "cpu_hours_back", advice->core_hours_back);
        member_number(to, "gpu_hours_back", advice->gpu_hours_back);
    }
    buf_byte(to, '}');
}

static void put_origin(struct buf *to, const struct facts_origin *origin)
{
    member_begin(to, "origin", '{');
    member_text(to, "teller", str_of(facts_teller_words[origin->teller]));
    member_truth(to, "has_accounting", origin->has_accounting);
    member_truth(to, "has_agents", origin->has_agents);
    member_truth(to, "has_series", origin->has_series);
    member_truth(to, "has_summary", origin->has_summary);
    member_text(to, "series", origin->series);
    member_text(to, "why_no_series", origin->why_no_series);
    member_time(to, "asked_time", origin->asked_time);
    buf_byte(to, '}');
}

void report_json(struct buf *to, const struct job_report *report)
{
    const struct job_facts *facts = &report->facts;

    buf_byte(to, '{');
    if (facts->origin.is_simulated)
        member_truth(to, "simulated", true);
    put_job(to, &facts->row);
    member_truth(to, "is_running", facts->is_running);
    put_waiting(to, &facts->row.record);
    put_derived(to, facts);
    put_total(to, &facts->total);
    put_list(to, "nodes", "nodes_left_out", &summary_node, facts->node, sizeof(*facts->node),
             facts->n_nodes, NODES_MAX);
    put_cores(to, facts);
    put_list(to, "gpus", "gpus_left_out", &summary_gpu, facts->gpu, sizeof(*facts->gpu),
             facts->n_gpus, GPUS_MAX);
    put_list(to, "processes", "processes_left_out", &summary_process, facts->process,
             sizeof(*facts->process), facts->n_processes, PROCESSES_MAX);
    put_rest_of_use(to, facts);
    put_life(to, facts);
    put_plots(to, facts);
    put_findings(to, report);
    put_advice(to, &report->advice);
    put_origin(to, &facts->origin);
    member_text(to, "more_url", report->more_url);
    buf_text(to, "}\n");
}
