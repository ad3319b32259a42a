/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the resources that a job had and did not use. */
#include "report/idle.h"

#include "model/tres.h"

#include <math.h>

/* Below this, a GPU that has no process of the job has done nothing for it. */
static const double no_work_ratio = 0.01;

double idle_run_seconds(const struct job_facts *facts)
{
    return facts->row.elapsed_seconds > 0 ? (double)facts->row.elapsed_seconds : NAN;
}

size_t idle_node_count(const struct job_facts *facts)
{
    uint32_t n = facts->row.record.node_count;

    return n && n != MODEL_UNKNOWN_U32 ? n : facts->n_nodes;
}

double idle_gpu_count(const struct job_facts *facts)
{
    return fmax(facts->total.gpus, (double)facts->n_gpus);
}

size_t idle_gpus_measured(const struct job_facts *facts)
{
    size_t n = 0;

    for (size_t i = 0; i < facts->n_gpus; i++)
        n += !isnan(facts->gpu[i].utilization_ratio.mean);
    /* of many, a recorded summary has only some */
    return isnan(facts->gpu_ratio) ? n : (size_t)idle_gpu_count(facts);
}

double idle_cpus(const struct job_facts *facts)
{
    double given = facts->total.cpus;
    struct tres asked;

    tres_parse(facts->row.record.tres_requested, &asked);
    if (asked.cpus != TRES_UNKNOWN && asked.cpus > 0 && (double)asked.cpus < given &&
        given <= 2 * (double)asked.cpus)
        return (double)asked.cpus;
    return given > 0 ? given : NAN;
}

double idle_node_ratio(const struct job_facts *facts, const struct node_facts *node)
{
    double held = node->use.cpus * idle_run_seconds(facts);

    return held > 0 ? node->use.cpu_seconds / held : NAN;
}

bool idle_knows_nodes(const struct job_facts *facts)
{
    static const double nearly_all = 0.9;
    double sum = 0;

    for (size_t i = 0; i < facts->n_nodes; i++)
        sum += facts->node[i].use.cpu_seconds;
    return facts->n_nodes < idle_node_count(facts) ||
           !(sum < facts->total.cpu_seconds * nearly_all);
}

/* A GPU of the job worked there, or may have. */
static bool has_busy_gpu(const struct job_facts *facts, const struct node_facts *node, double ratio)
{
    for (size_t i = 0; i < facts->n_gpus; i++) {
        const struct gpu_facts *gpu = &facts->gpu[i];

        if (str_eq(gpu->node, node->name) && !idle_gpu_is_empty(gpu) &&
            !idle_gpu_is_below(gpu, ratio))
            return true;
    }
    return (double)facts->n_gpus < facts->total.gpus;
}

size_t idle_nodes(const struct job_facts *facts, double ratio, const struct node_facts **ret_first)
{
    size_t n = 0, n_busy = 0;

    if (!idle_knows_nodes(facts))
        return 0;
    for (size_t i = 0; i < facts->n_nodes; i++) {
        const struct node_facts *node = &facts->node[i];
        double used = idle_node_ratio(facts, node);

        if (used < ratio && !has_busy_gpu(facts, node, ratio) && n++ == 0 && ret_first)
            *ret_first = node;
        n_busy += used >= ratio;
    }
    return n_busy ? n : 0;
}

bool idle_gpu_is_empty(const struct gpu_facts *gpu)
{
    return gpu->processes_peak == 0 && !(gpu->utilization_ratio.mean >= no_work_ratio);
}

bool idle_gpu_is_below(const struct gpu_facts *gpu, double ratio)
{
    return gpu->utilization_ratio.mean < ratio;
}

double idle_memory_peak(const struct job_facts *facts)
{
    return facts->origin.has_task_peak ? NAN : facts->total.memory_peak_bytes;
}

double idle_node_memory_peak(const struct job_facts *facts)
{
    double total = idle_memory_peak(facts), highest = NAN;

    if (isnan(total) || idle_node_count(facts) == 1)
        return total;
    for (size_t i = 0; i < facts->n_nodes; i++)
        highest = fmax(highest, facts->node[i].use.memory_peak_bytes);
    return highest;
}
