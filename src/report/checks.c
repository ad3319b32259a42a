/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of checks, and how it is gone through. docs/report.md has the same table; a test
 * compares them. */
#include "report/checks.h"

#include "report/check_conditions.h"
#include "report/idle.h"

#include <math.h>
#include <stdlib.h>

enum { SENTENCE_MAX = 1000 };

const char *const severity_words[SEVERITIES] = { "off", "note", "warning", "critical" };

const struct check checks[] = {
    { "out_of_memory", "It ended in OUT_OF_MEMORY, or the kernel killed a process of it.", NAN,
      NULL, SEVERITY_CRITICAL, SUBJECT_MEMORY, true, check_out_of_memory },
    { "timeout", "It ended in TIMEOUT.", NAN, NULL, SEVERITY_CRITICAL, SUBJECT_TIME, true,
      check_timeout },
    { "node_failed", "It ended in NODE_FAIL or BOOT_FAIL.", NAN, NULL, SEVERITY_CRITICAL,
      SUBJECT_NODES, true, check_node_failed },

    { "gpu_without_process", "No process of the job was seen on one of its GPUs, nor any work.",
      NAN, NULL, SEVERITY_CRITICAL, SUBJECT_GPU, false, check_gpu_empty },
    { "gpu_idle", "The mean utilization of one of its GPUs is below this.", 1, "%",
      SEVERITY_CRITICAL, SUBJECT_GPU, false, check_gpu_idle },
    { "gpu_very_low", "The mean utilization of all its GPUs is below this.", 15, "%",
      SEVERITY_CRITICAL, SUBJECT_GPU, false, check_gpu_low },
    { "gpu_low", "The mean utilization of all its GPUs is below this.", 25, "%", SEVERITY_WARNING,
      SUBJECT_GPU, false, check_gpu_low },

    { "node_idle", "On one of its nodes less than this of the CPUs was in use, on others more.", 1,
      "%", SEVERITY_CRITICAL, SUBJECT_CPU, false, check_node_idle },
    { "nodes_uneven", "One of its nodes used less than this of what the busiest used.", 50, "%",
      SEVERITY_WARNING, SUBJECT_CPU, false, check_nodes_uneven },
    { "serial_code", "0.85 to this many CPUs were in use on average, of two or more.", 1.01, "CPUs",
      SEVERITY_CRITICAL, SUBJECT_CPU, false, check_serial_code },
    { "cpu_uneven",
      "The mean number of CPUs in use is below this share of the highest, which was good.", 75, "%",
      SEVERITY_WARNING, SUBJECT_CPU, false, check_cpu_uneven },
    { "cpu_very_low", "Less than this of its CPUs was in use on average.", 65, "%",
      SEVERITY_CRITICAL, SUBJECT_CPU, false, check_cpu_low },
    { "cpu_low", "Less than this of its CPUs was in use on average.", 80, "%", SEVERITY_WARNING,
      SUBJECT_CPU, false, check_cpu_low },
    { "core_uneven", "A core had less than this of an even share of the CPU time.", 90, "%",
      SEVERITY_NOTE, SUBJECT_CPU, false, check_core_uneven },
    { "threads_many", "The processes of one name had more threads than this.", 2, "threads per CPU",
      SEVERITY_WARNING, SUBJECT_THREADS, false, check_threads_many },
    { "throttled", "It was held back by a CPU quota for more than this of the CPU time it held.", 5,
      "%", SEVERITY_WARNING, SUBJECT_QUOTA, false, check_throttled },

    { "swap", "It had more than this in swap space.", 100, "MiB", SEVERITY_WARNING, SUBJECT_MEMORY,
      false, check_swap },
    { "memory_full", "It filled this much of its memory, and waited for memory as far as is known.",
      95, "%", SEVERITY_NOTE, SUBJECT_MEMORY, false, check_memory_full },
    { "memory_low", "It used less than this of its memory, and 1 GiB or more was left.", 70, "%",
      SEVERITY_WARNING, SUBJECT_MEMORY, false, check_memory_low },

    { "time_limit_very_far",
      "It completed, after 15 minutes or more, in less than this of its time "
      "limit.",
      10, "%", SEVERITY_WARNING, SUBJECT_TIME, false, check_time_limit_far },
    { "time_limit_far",
      "It completed, after 15 minutes or more, in less than this of its time limit.", 60, "%",
      SEVERITY_NOTE, SUBJECT_TIME, false, check_time_limit_far },

    { "cpus_per_gpu", "It held more CPUs for each GPU than this, and did not use them.", 12, "CPUs",
      SEVERITY_NOTE, SUBJECT_SHARE, false, check_cpus_per_gpu },
    { "memory_per_gpu", "It held more memory for each GPU than this, and did not use it.", 240,
      "GiB", SEVERITY_NOTE, SUBJECT_MEMORY, false, check_memory_per_gpu },
    { "gpus_scattered", "It had several nodes, and fewer GPUs on each than this.", 2, "GPUs",
      SEVERITY_NOTE, SUBJECT_PLACE, false, check_gpu_scattered },
    { "cpus_scattered", "It had several nodes, no GPUs, and fewer CPUs on each than this.", 8,
      "CPUs", SEVERITY_NOTE, SUBJECT_PLACE, false, check_cpu_scattered },

    { "files_small", "It had 1,000 files or more open, and read and wrote less than this for each.",
      5, "MiB", SEVERITY_WARNING, SUBJECT_FILES, false, check_files_small },
    { "io_waiting", "Some of its tasks waited for storage for more than this of its time.", 20, "%",
      SEVERITY_WARNING, SUBJECT_FILES, false, check_io_waiting },
    { "scratch_unused", "It had no file open on scratch, and read and wrote this much or more.", 1,
      "GiB", SEVERITY_OFF, SUBJECT_FILES, false, check_scratch_unused },
};
const size_t n_checks = COUNT(checks);

static bool is_judged(const struct check *check, const struct check_settings *settings,
                      const struct job_facts *facts)
{
    return check->is_of_end || idle_run_seconds(facts) >= (double)settings->least_seconds;
}

static int graver_first(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;

    if (x->severity != y->severity)
        return x->severity > y->severity ? -1 : 1;
    return (x->check > y->check) - (x->check < y->check);
}

void checks_run(const struct check_settings *settings, const struct job_facts *facts,
                struct arena *arena, struct finding **ret, size_t *ret_n)
{
    struct finding *findings = ARENA_ARRAY(arena, struct finding, n_checks);
    bool has_spoken[SUBJECTS] = { 0 };
    struct buf sentence;
    size_t n = 0;

    buf_init(&sentence, SENTENCE_MAX);
    for (size_t i = 0; i < n_checks; i++) {
        const struct check *check = &checks[i];
        const struct check_setting *setting = &settings->check[i];

        buf_reset(&sentence);
        if (setting->severity == SEVERITY_OFF || has_spoken[check->subject] ||
            !is_judged(check, settings, facts) ||
            !check->is_met(facts, setting->threshold, &sentence))
            continue;
        has_spoken[check->subject] = true;
        findings[n++] = (struct finding){ check, setting->severity,
                                          arena_str(arena, buf_str(&sentence)), setting->link };
    }
    buf_free(&sentence);
    qsort(findings, n, sizeof(*findings), graver_first);
    *ret = findings;
    *ret_n = n;
}
