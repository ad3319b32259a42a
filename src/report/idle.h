/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job held and did not use: what checks judge and advice goes by. Unknown is NAN. */
#ifndef SONDE_REPORT_IDLE_H
#define SONDE_REPORT_IDLE_H

#include "report/facts.h"

/* For how long it ran, suspension left out; NAN if it did not. */
double idle_run_seconds(const struct job_facts *facts);

/* Of nodes that it was given, or of which something is known; 0: unknown. */
size_t idle_node_count(const struct job_facts *facts);

/* As allocated, or of which something is known; 0: none. */
double idle_gpu_count(const struct job_facts *facts);

/* Of how many of these it is known how busy they were. */
size_t idle_gpus_measured(const struct job_facts *facts);

/* CPUs by which its use is judged: those that it was given. Where Slurm gave up to twice as many as
 * were asked for, because it gives whole cores and a core has two threads, those asked for. */
double idle_cpus(const struct job_facts *facts);

/* Of a node's CPUs in use on average, 0…1. */
double idle_node_ratio(const struct job_facts *facts, const struct node_facts *node);

/* False if accounting has more CPU time than all nodes told: one was not heard to the end, and what
 * is known of it says nothing. */
bool idle_knows_nodes(const struct job_facts *facts);

/* Nodes of which less than that was in use, of CPUs and GPUs, while others worked. */
size_t idle_nodes(const struct job_facts *facts, double ratio, const struct node_facts **ret_first);

/* A GPU on which no process of the job was seen, nor any work; or one that did less than that. */
bool idle_gpu_is_empty(const struct gpu_facts *gpu);
bool idle_gpu_is_below(const struct gpu_facts *gpu, double ratio);

/* Of memory, on all nodes, and the highest of any node; NAN also if only tasks are known. */
double idle_memory_peak(const struct job_facts *facts);
double idle_node_memory_peak(const struct job_facts *facts);

#endif
