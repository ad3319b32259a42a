/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The members of a kept summary: for its writer and its reader. */
#ifndef SONDE_REPORT_SUMMARY_TABLE_H
#define SONDE_REPORT_SUMMARY_TABLE_H

#include "report/facts.h"
#include "report/facts_json.h"

struct core_item {
    struct str node;
    double core, seconds;
};

struct earlier_item {
    double n, cpus_used, memory_peak_bytes, elapsed_seconds;
};

/* What a document has. */
struct summary {
    double version;
    struct use_facts total;
    struct lustre_facts lustre;
    struct earlier_item earlier;
    double gpu_ratio, gpu_memory_ratio, cores_used;
    struct node_facts *node;
    size_t n_nodes, nodes_room;
    struct core_item *core;
    size_t n_cores, cores_room;
    struct gpu_facts *gpu;
    size_t n_gpus, gpus_room;
    struct process_facts *process;
    size_t n_processes, processes_room;
};

/* All unknown, and without any list. */
void summary_clear(struct summary *summary);
void summary_free(struct summary *summary);

extern const struct fact_table summary_table;

/* Of what is in its lists. */
extern const struct fact_table summary_node, summary_core, summary_gpu, summary_process;

#endif
