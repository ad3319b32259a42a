/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The conditions of the table of checks, by subject. Each is false for what is unknown, and has
 * written its sentence if it is true. */
#ifndef SONDE_REPORT_CHECK_CONDITIONS_H
#define SONDE_REPORT_CHECK_CONDITIONS_H

#include "report/facts.h"

typedef bool check_condition(const struct job_facts *facts, double threshold, struct buf *sentence);

check_condition check_node_idle, check_nodes_uneven, check_serial_code, check_cpu_uneven,
    check_cpu_low, check_core_uneven, check_threads_many, check_throttled, check_cpu_scattered;

check_condition check_out_of_memory, check_swap, check_memory_full, check_memory_low;

check_condition check_gpu_empty, check_gpu_idle, check_gpu_low, check_gpu_scattered,
    check_cpus_per_gpu, check_memory_per_gpu;

check_condition check_timeout, check_time_limit_far, check_node_failed, check_files_small,
    check_io_waiting, check_scratch_unused;

#endif
