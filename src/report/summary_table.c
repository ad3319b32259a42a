/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the members of a stored summary. */
#include "report/summary_table.h"

#include <math.h>
#include <stdlib.h>

void summary_clear(struct summary *summary)
{
    *summary = (struct summary){
        .version = NAN,
        .total = use_facts_unknown,
        .lustre = { NAN, NAN, NAN, NAN },
        .earlier = { NAN, NAN, NAN, NAN },
        .gpu_ratio = NAN,
        .gpu_memory_ratio = NAN,
        .cores_used = NAN,
    };
}

void summary_free(struct summary *summary)
{
    free(summary->node);
    free(summary->core);
    free(summary->gpu);
    free(summary->process);
}

static void *begin_node(void *ctx)
{
    struct summary *summary = ctx;
    struct node_facts *node;

    summary->node = heap_grow(summary->node, summary->n_nodes, &summary->nodes_room, sizeof(*node));
    node = &summary->node[summary->n_nodes++];
    *node = (struct node_facts){ .use = use_facts_unknown };
    return node;
}

static void *begin_core(void *ctx)
{
    struct summary *summary = ctx;
    struct core_item *core;

    summary->core = heap_grow(summary->core, summary->n_cores, &summary->cores_room, sizeof(*core));
    core = &summary->core[summary->n_cores++];
    *core = (struct core_item){ .core = NAN, .seconds = NAN };
    return core;
}

static void *begin_gpu(void *ctx)
{
    static const struct spread unknown = { NAN, NAN, NAN };
    struct summary *summary = ctx;
    struct gpu_facts *gpu;

    summary->gpu = heap_grow(summary->gpu, summary->n_gpus, &summary->gpus_room, sizeof(*gpu));
    gpu = &summary->gpu[summary->n_gpus++];
    *gpu = (struct gpu_facts){ .utilization_ratio = unknown,
                               .memory_used_bytes = unknown,
                               .power_watts = unknown,
                               .temperature_celsius = unknown,
                               .memory_bytes = NAN,
                               .energy_joules = NAN,
                               .processes_peak = NAN };
    return gpu;
}

static void *begin_process(void *ctx)
{
    struct summary *summary = ctx;
    struct process_facts *process;

    summary->process = heap_grow(summary->process, summary->n_processes, &summary->processes_room,
                                 sizeof(*process));
    process = &summary->process[summary->n_processes++];
    *process = (struct process_facts){ { NULL, 0 }, NAN, NAN, NAN };
    return process;
}

#define AMOUNT(record, field) FACT(record, #field, FACT_AMOUNT, field)
#define NAME(record, field)   FACT(record, #field, FACT_TEXT, field)

static const struct fact_member use_rows[] = {
#define ROW(member, sum) AMOUNT(struct use_facts, member),
#include "report/use_members.inc"
#undef ROW
};
static const struct fact_table use_table = FACT_TABLE(use_rows);

static const struct fact_member node_rows[] = {
    NAME(struct node_facts, name),
#define ROW(member, sum) FACT(struct node_facts, #member, FACT_AMOUNT, use.member),
#include "report/use_members.inc"
#undef ROW
};
const struct fact_table summary_node = FACT_TABLE(node_rows);

static const struct fact_member core_rows[] = {
    NAME(struct core_item, node),
    AMOUNT(struct core_item, core),
    AMOUNT(struct core_item, seconds),
};
const struct fact_table summary_core = FACT_TABLE(core_rows);

static const struct fact_member spread_rows[] = {
    AMOUNT(struct spread, min),
    AMOUNT(struct spread, mean),
    AMOUNT(struct spread, max),
};
static const struct fact_table spread_table = FACT_TABLE(spread_rows);

#define SPREAD(field) FACT_OF(struct gpu_facts, #field, field, &spread_table)

static const struct fact_member gpu_rows[] = {
    NAME(struct gpu_facts, node),
    NAME(struct gpu_facts, gpu),
    NAME(struct gpu_facts, model),
    SPREAD(utilization_ratio),
    SPREAD(memory_used_bytes),
    SPREAD(power_watts),
    SPREAD(temperature_celsius),
    AMOUNT(struct gpu_facts, memory_bytes),
    AMOUNT(struct gpu_facts, energy_joules),
    AMOUNT(struct gpu_facts, processes_peak),
};
const struct fact_table summary_gpu = FACT_TABLE(gpu_rows);

static const struct fact_member process_rows[] = {
    NAME(struct process_facts, name),
    AMOUNT(struct process_facts, instances_peak),
    AMOUNT(struct process_facts, threads_peak),
    AMOUNT(struct process_facts, cpu_seconds),
};
const struct fact_table summary_process = FACT_TABLE(process_rows);

static const struct fact_member lustre_rows[] = {
    AMOUNT(struct lustre_facts, read_bytes),
    AMOUNT(struct lustre_facts, written_bytes),
    AMOUNT(struct lustre_facts, operations),
    AMOUNT(struct lustre_facts, opens),
};
static const struct fact_table lustre_table = FACT_TABLE(lustre_rows);

static const struct fact_member earlier_rows[] = {
    AMOUNT(struct earlier_item, n),
    AMOUNT(struct earlier_item, cpus_used),
    AMOUNT(struct earlier_item, memory_peak_bytes),
    AMOUNT(struct earlier_item, elapsed_seconds),
};
static const struct fact_table earlier_table = FACT_TABLE(earlier_rows);

static const struct fact_member summary_rows[] = {
    AMOUNT(struct summary, version),
    FACT_OF(struct summary, "total", total, &use_table),
    FACT_OF(struct summary, "lustre", lustre, &lustre_table),
    FACT_OF(struct summary, "earlier", earlier, &earlier_table),
    AMOUNT(struct summary, gpu_ratio),
    AMOUNT(struct summary, gpu_memory_ratio),
    AMOUNT(struct summary, cores_used),
    FACTS("nodes", &summary_node, begin_node),
    FACTS("cores", &summary_core, begin_core),
    FACTS("gpus", &summary_gpu, begin_gpu),
    FACTS("processes", &summary_process, begin_process),
};
const struct fact_table summary_table = FACT_TABLE(summary_rows);
