/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job of which nothing bad can be said, to be made worse by a test: one node, four CPUs, 8 GiB,
 * an hour of 90 minutes. */
#ifndef SONDE_TESTS_MADE_JOB_H
#define SONDE_TESTS_MADE_JOB_H

#include "report/facts.h"

enum { MADE_SECONDS = 3600, MADE_CPUS = 4, MADE_LIMIT_MINUTES = 90 };
static const double made_gib = 0x1p30;

/* CPUs and memory of each node, as agents tell them; nothing is known yet of what was used. */
static inline struct node_facts *made_node(struct job_facts *job, struct arena *arena,
                                           const char *name, double cpus, double memory_bytes)
{
    struct node_facts *node = facts_node(job, arena, str_of(name));

    node->use.cpus = cpus;
    node->use.memory_bytes = memory_bytes;
    return node;
}

/* As a run that Slurm has told of. */
static inline void made_row(struct job_facts *job, struct arena *arena, uint32_t nodes,
                            uint32_t cpus, double memory_bytes, uint64_t gpus)
{
    struct job_row row;

    job_facts_clear(job);
    row = job->row;
    row.record.id = 4711;
    row.record.origin = RECORD_ACCOUNTED;
    row.record.submit_time = row.record.eligible_time = row.record.start_time = 1790000000;
    row.record.end_time = row.record.start_time + MADE_SECONDS;
    row.record.state = (struct job_state){ JOB_COMPLETED, 0 };
    row.record.node_count = nodes;
    row.record.cpus = cpus;
    row.record.memory_bytes = (uint64_t)memory_bytes;
    row.record.time_limit_minutes = MADE_LIMIT_MINUTES;
    row.elapsed_seconds = MADE_SECONDS;
    row.gpus = gpus;
    facts_take_row(job, arena, &row, row.record.end_time);
}

static inline void made_use(struct node_facts *node, double cpus_in_use, double memory_peak_bytes)
{
    node->use.cpu_seconds = cpus_in_use * MADE_SECONDS;
    node->use.memory_peak_bytes = memory_peak_bytes;
}

static inline void made_job(struct job_facts *job, struct arena *arena)
{
    struct node_facts *node;
    struct process_facts *process;

    made_row(job, arena, 1, MADE_CPUS, 8 * made_gib, 0);
    node = made_node(job, arena, "c1", MADE_CPUS, 8 * made_gib);
    made_use(node, 3.8, 6.5 * made_gib);
    node->use.busiest_cpus = 4;
    node->use.throttled_seconds = node->use.swap_peak_bytes = node->use.oom_kills = 0;
    node->use.memory_waiting_seconds = node->use.io_waiting_seconds = 1;
    node->use.read_bytes = 20 * made_gib;
    node->use.written_bytes = 5 * made_gib;
    node->use.files_peak = 30;
    node->use.uses_scratch = 1;
    process = facts_process(job, arena, STR("solver"));
    process->threads_peak = 4;
    process->cpu_seconds = 3.8 * MADE_SECONDS;
}

#endif
