/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The families are those of src/collector/usage_*.c; docs/metrics.md has all of them. What drivers
 * tell of a GPU bears no job: it is kept for whoever holds it. */
#include "report/kept_words.h"

#define USE(member)            .offset = offsetof(struct use_facts, member), .plot = -1
#define USE_PLOT(member, kind) .offset = offsetof(struct use_facts, member), .plot = (kind)
#define GPU(member)            .is_of_gpu = true, .offset = offsetof(struct gpu_facts, member), .plot = -1
#define GPU_PLOT(member, kind)                                                                     \
    .is_of_gpu = true, .offset = offsetof(struct gpu_facts, member), .plot = (kind)
#define COUNTER .meaning = KEPT_COUNTER
#define GAUGE   .meaning = KEPT_GAUGE
#define SPREAD  .meaning = KEPT_SPREAD
#define GROWTH  .meaning = KEPT_GROWTH
#define WAITING "sonde_job_pressure_waiting_seconds_total"

/* Files are full of these words: one keeps its meaning, another is added. */
const struct kept_word kept_words[] = {
    { "cpus_allocated", "sonde_job_cpus_allocated", GAUGE, USE(cpus) },
    { "memory_allocated_bytes", "sonde_job_memory_allocated_bytes", GAUGE, USE(memory_bytes) },
    { "gpus_allocated", "sonde_job_gpus_allocated", GAUGE, USE(gpus) },
    { "cpu_seconds", "sonde_job_cpu_seconds_total", COUNTER, USE_PLOT(cpu_seconds, PLOT_CPU) },
    { "user_seconds", "sonde_job_cpu_user_seconds_total", COUNTER, USE(user_seconds) },
    { "system_seconds", "sonde_job_cpu_system_seconds_total", COUNTER, USE(system_seconds) },
    { "throttled_seconds", "sonde_job_cpu_throttled_seconds_total", COUNTER,
      USE(throttled_seconds) },
    { "memory_peak_bytes", "sonde_job_memory_peak_bytes", GAUGE, USE(memory_counted_bytes) },
    /* The highest sample; without cgroups, of processes. */
    { "memory_bytes", "sonde_job_memory_bytes", GAUGE, USE_PLOT(memory_peak_bytes, PLOT_MEMORY) },
    { "resident_bytes", "sonde_job_resident_bytes", GAUGE,
      USE_PLOT(memory_peak_bytes, PLOT_MEMORY) },
    { "swap_bytes", "sonde_job_memory_swap_bytes", GAUGE, USE(swap_peak_bytes) },
    { "read_bytes", "sonde_job_read_bytes_total", COUNTER, USE_PLOT(read_bytes, PLOT_READ) },
    { "written_bytes", "sonde_job_written_bytes_total", COUNTER,
      USE_PLOT(written_bytes, PLOT_WRITTEN) },
    { "read_calls", "sonde_job_read_calls_total", COUNTER, USE(read_calls) },
    { "write_calls", "sonde_job_write_calls_total", COUNTER, USE(write_calls) },
    { "files", "sonde_job_open_files", GAUGE, USE(files_peak) },
    { "processes", "sonde_job_processes", GAUGE, USE(processes_peak) },
    { "threads", "sonde_job_threads", GAUGE, USE(threads_peak) },
    { "oom_kills", "sonde_job_oom_kills_total", COUNTER, USE(oom_kills) },
    { "limit_hits", "sonde_job_memory_limit_hits_total", COUNTER, USE(limit_hits) },
    { "cpu_waiting_seconds", WAITING, "cpu", COUNTER, USE(cpu_waiting_seconds) },
    { "memory_waiting_seconds", WAITING, "memory", COUNTER, USE(memory_waiting_seconds) },
    { "io_waiting_seconds", WAITING, "io", COUNTER, USE(io_waiting_seconds) },

    /* A driver tells of a job's own utilization only while something runs there, of its memory
     * always. */
    { "utilization", "sonde_gpu_utilization_ratio", SPREAD, GPU_PLOT(utilization_ratio, PLOT_GPU) },
    { "job_utilization", "sonde_job_gpu_utilization_ratio", SPREAD,
      GPU_PLOT(utilization_ratio, PLOT_GPU) },
    { "job_memory_used_bytes", "sonde_job_gpu_memory_used_bytes", SPREAD,
      GPU_PLOT(memory_used_bytes, PLOT_GPU_MEMORY) },
    { "memory_used_bytes", "sonde_gpu_memory_used_bytes", SPREAD,
      GPU_PLOT(memory_used_bytes, PLOT_GPU_MEMORY) },
    { "memory_bytes", "sonde_gpu_memory_total_bytes", GAUGE, GPU(memory_bytes) },
    { "power_watts", "sonde_gpu_power_watts", SPREAD, GPU_PLOT(power_watts, PLOT_GPU_POWER) },
    { "temperature_celsius", "sonde_gpu_temperature_celsius", SPREAD, GPU(temperature_celsius) },
    { "energy_joules", "sonde_gpu_energy_joules_total", GROWTH, GPU(energy_joules) },
    { "processes", "sonde_job_gpu_processes", GAUGE, GPU(processes_peak) },
};
const size_t n_kept_words = COUNT(kept_words);

const struct kept_word *kept_word_of_sample(const struct metric_sample *sample)
{
    struct str resource = metric_label(sample, "resource");

    for (size_t i = 0; i < n_kept_words; i++) {
        const struct kept_word *row = &kept_words[i];

        if (str_eq(sample->name, str_of(row->family)) &&
            (!row->resource || str_eq(resource, str_of(row->resource))))
            return row;
    }
    return NULL;
}

const struct kept_word *kept_word_of(struct str word, bool is_of_gpu)
{
    for (size_t i = 0; i < n_kept_words; i++)
        if (kept_words[i].is_of_gpu == is_of_gpu && str_eq(word, str_of(kept_words[i].word)))
            return &kept_words[i];
    return NULL;
}
