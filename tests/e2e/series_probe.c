/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Prometheus knows of a run, for tests:
 *     series_probe URL JOB BEGIN END NOW NODES MATCHER plots|numbers TIMEOUT_MS RESTARTS
 * END 0: it runs. Prints a line for each fact, and how many milliseconds it took. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/num.h"
#include "report/use_members.h"
#include "report/facts_series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARGUMENTS = 11, MAX_ANSWER = 64 << 20 };

static void print(const char *what, struct str of, const char *fact, double value)
{
    if (!isnan(value))
        printf("%s %.*s %s %.17g\n", what, STR_ARG(of), fact, value);
}

static void print_use(const char *what, struct str of, const struct use_facts *use)
{
    for (size_t i = 0; i < USE_MEMBERS; i++)
        print(what, of, use_members[i].name, use_value(use, &use_members[i]));
}

static void print_node(const struct node_facts *node)
{
    print_use("node", node->name, &node->use);
    for (size_t i = 0; i < node->n_cores; i++)
        printf("core %.*s %u %.17g\n", STR_ARG(node->name), node->core[i].core,
               node->core[i].seconds);
}

static void print_spread(struct str of, const char *fact, const struct spread *spread)
{
    if (!isnan(spread->min))
        printf("gpu %.*s %s %.17g %.17g %.17g\n", STR_ARG(of), fact, spread->min, spread->mean,
               spread->max);
}

static void print_gpu(const struct gpu_facts *gpu, struct arena *arena)
{
    struct buf name;
    struct str of;

    buf_init(&name, 1000);
    buf_printf(&name, "%.*s/%.*s", STR_ARG(gpu->node), STR_ARG(gpu->gpu));
    of = arena_str(arena, buf_str(&name));
    buf_free(&name);
    printf("gpu %s model %.*s\n", of.p, STR_ARG(gpu->model));
    print_spread(of, "utilization_ratio", &gpu->utilization_ratio);
    print_spread(of, "memory_used_bytes", &gpu->memory_used_bytes);
    print_spread(of, "power_watts", &gpu->power_watts);
    print_spread(of, "temperature_celsius", &gpu->temperature_celsius);
    print("gpu", of, "memory_bytes", gpu->memory_bytes);
    print("gpu", of, "energy_joules", gpu->energy_joules);
    print("gpu", of, "processes_peak", gpu->processes_peak);
}

static void print_plot(size_t kind, const struct facts_plot *plot)
{
    if (plot->n_points)
        printf("plot %zu %lld %lld %zu %zu\n", kind, (long long)plot->begin,
               (long long)plot->step_seconds, plot->n_points, plot->n_members);
    for (size_t i = 0; i < plot->n_lines; i++) {
        printf("line %zu %.*s:", kind, STR_ARG(plot->line[i].name));
        for (size_t k = 0; k < plot->n_points; k++)
            printf(" %.17g", plot->line[i].value[k]);
        putchar('\n');
    }
}

static void print_facts(const struct job_facts *facts, struct arena *arena)
{
    print_use("total", STR("-"), &facts->total);
    for (size_t i = 0; i < facts->n_nodes; i++)
        print_node(&facts->node[i]);
    for (size_t i = 0; i < facts->n_gpus; i++)
        print_gpu(&facts->gpu[i], arena);
    for (size_t i = 0; i < facts->n_processes; i++) {
        const struct process_facts *process = &facts->process[i];

        print("process", process->name, "instances_peak", process->instances_peak);
        print("process", process->name, "threads_peak", process->threads_peak);
        print("process", process->name, "cpu_seconds", process->cpu_seconds);
    }
    print("lustre", STR("-"), "read_bytes", facts->lustre.read_bytes);
    print("lustre", STR("-"), "written_bytes", facts->lustre.written_bytes);
    print("lustre", STR("-"), "operations", facts->lustre.operations);
    print("lustre", STR("-"), "opens", facts->lustre.opens);
    for (size_t i = 0; i < FACTS_PLOTS; i++)
        print_plot(i, &facts->plot[i]);
    printf("has_series %d\n", facts->origin.has_series);
    if (facts->origin.why_no_series.n)
        printf("why %.*s\n", STR_ARG(facts->origin.why_no_series));
}

static int64_t number(const char *text)
{
    int64_t value;

    if (!num_get_i64(str_of(text), &value)) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static void describe_run(char **arguments, struct job_facts *facts, struct arena *arena)
{
    struct job_row row = { .gpus = MODEL_UNKNOWN_U64, .elapsed_seconds = -1, .wait_seconds = -1 };

    job_record_clear(&row.record);
    row.record.id = (uint32_t)number(arguments[2]);
    row.record.start_time = number(arguments[3]);
    row.record.end_time = number(arguments[4]);
    row.record.node_count = (uint32_t)number(arguments[6]);
    row.record.restarts = (uint32_t)number(arguments[10]);
    row.record.state.base = row.record.end_time ? JOB_COMPLETED : JOB_RUNNING;
    row.record.origin = RECORD_ACCOUNTED;
    job_facts_clear(facts);
    facts_take_row(facts, arena, &row, number(arguments[5]));
}

int main(int argc, char **argv)
{
    struct prometheus_settings settings = { .max_answer = MAX_ANSWER };
    struct series_question question = { 0 };
    struct arena arena = { 0 };
    struct job_facts facts;
    struct err err = { 0 };
    int64_t began = clock_mono(&clock_real);
    int code;

    if (argc != ARGUMENTS)
        return 2;
    settings.url = str_of(argv[1]);
    describe_run(argv, &facts, &arena);
    question.matcher = str_of(argv[7]);
    question.wants_plots = strcmp(argv[8], "plots") == 0;
    question.deadline_ns = began + number(argv[9]) * NS_PER_MS;
    code = prometheus_open(&settings, &question.prometheus, &err);
    if (code == 0)
        code = facts_take_series(&facts, &arena, &question, &err);
    if (code < 0)
        printf("failed %s\n", err.text);
    else
        facts_finish(&facts);
    print_facts(&facts, &arena);
    printf("milliseconds %lld\n", (long long)((clock_mono(&clock_real) - began) / NS_PER_MS));
    prometheus_close(question.prometheus);
    arena_clear(&arena);
    return 0;
}
