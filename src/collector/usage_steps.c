/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of each job, and the tasks of each step: two collectors, both off unless asked for. */
#include "collector/usage_amounts.h"

enum {
    STEP_CPU,
    STEP_MEMORY,
    STEP_MEMORY_PEAK,
    STEP_OOM_KILLS,
    STEP_PROCESSES,
    STEP_THREADS,
    STEP_RESIDENT,
    STEP_READ_BYTES,
    STEP_WRITTEN_BYTES,
};

#define STEP_LABELS USAGE_JOB_LABELS, "step"

static const struct family step_families[] = {
    [STEP_CPU] = { "sonde_job_step_cpu_seconds_total",
                   METRIC_COUNTER,
                   "CPU time that a step of the job has used on this node.",
                   { STEP_LABELS } },
    [STEP_MEMORY] = { "sonde_job_step_memory_bytes",
                      METRIC_GAUGE,
                      "Memory that is charged to a step of the job, page cache included.",
                      { STEP_LABELS } },
    [STEP_MEMORY_PEAK] = { "sonde_job_step_memory_peak_bytes",
                           METRIC_GAUGE,
                           "The most memory that was ever charged to a step of the job.",
                           { STEP_LABELS } },
    [STEP_OOM_KILLS] = { "sonde_job_step_oom_kills_total",
                         METRIC_COUNTER,
                         "Processes of a step of the job that were killed for want of memory.",
                         { STEP_LABELS } },
    [STEP_PROCESSES] = { "sonde_job_step_processes",
                         METRIC_GAUGE,
                         "Processes of a step of the job.",
                         { STEP_LABELS } },
    [STEP_THREADS] = { "sonde_job_step_threads",
                       METRIC_GAUGE,
                       "Threads of the processes of a step of the job.",
                       { STEP_LABELS } },
    [STEP_RESIDENT] = { "sonde_job_step_resident_bytes",
                        METRIC_GAUGE,
                        "Resident memory of the processes of a step of the job.",
                        { STEP_LABELS } },
    [STEP_READ_BYTES] = { "sonde_job_step_read_bytes_total",
                          METRIC_COUNTER,
                          "Bytes that the processes of a step of the job had fetched from storage, "
                          "ended ones included.",
                          { STEP_LABELS } },
    [STEP_WRITTEN_BYTES] = { "sonde_job_step_written_bytes_total",
                             METRIC_COUNTER,
                             "Bytes that the processes of a step of the job caused to be sent to "
                             "storage, ended ones included.",
                             { STEP_LABELS } },
};

#define STEP_AMOUNT(id, member) .family = (id), .offset = offsetof(struct step_use, member)

static const struct usage_amount step_amounts[] = {
    { STEP_AMOUNT(STEP_CPU, cgroup.cpu_ns), .divisor = PER_NANO },
    { STEP_AMOUNT(STEP_MEMORY, cgroup.memory_bytes) },
    { STEP_AMOUNT(STEP_MEMORY_PEAK, cgroup.memory_peak_bytes), .remains = true },
    { STEP_AMOUNT(STEP_OOM_KILLS, cgroup.oom_kills) },
    { STEP_AMOUNT(STEP_PROCESSES, processes) },
    { STEP_AMOUNT(STEP_THREADS, threads) },
    { STEP_AMOUNT(STEP_RESIDENT, resident_bytes) },
    { STEP_AMOUNT(STEP_READ_BYTES, io.read_bytes) },
    { STEP_AMOUNT(STEP_WRITTEN_BYTES, io.write_bytes) },
};

enum {
    TASK_CPU,
    TASK_MEMORY,
    TASK_MEMORY_PEAK,
    TASK_OOM_KILLS,
    TASK_PROCESSES,
};

#define TASK_LABELS USAGE_JOB_LABELS, "step", "task"

static const struct family task_families[] = {
    [TASK_CPU] = { "sonde_job_task_cpu_seconds_total",
                   METRIC_COUNTER,
                   "CPU time that a task of the job has used on this node.",
                   { TASK_LABELS } },
    [TASK_MEMORY] = { "sonde_job_task_memory_bytes",
                      METRIC_GAUGE,
                      "Memory that is charged to a task of the job, page cache included.",
                      { TASK_LABELS } },
    [TASK_MEMORY_PEAK] = { "sonde_job_task_memory_peak_bytes",
                           METRIC_GAUGE,
                           "The most memory that was ever charged to a task of the job.",
                           { TASK_LABELS } },
    [TASK_OOM_KILLS] = { "sonde_job_task_oom_kills_total",
                         METRIC_COUNTER,
                         "Processes of a task of the job that were killed for want of memory.",
                         { TASK_LABELS } },
    [TASK_PROCESSES] = { "sonde_job_task_processes",
                         METRIC_GAUGE,
                         "Processes of a task of the job.",
                         { TASK_LABELS } },
};

#define TASK_AMOUNT(id, member) .family = (id), .offset = offsetof(struct task_use, member)

static const struct usage_amount task_amounts[] = {
    { TASK_AMOUNT(TASK_CPU, cgroup.cpu_ns), .divisor = PER_NANO },
    { TASK_AMOUNT(TASK_MEMORY, cgroup.memory_bytes) },
    { TASK_AMOUNT(TASK_MEMORY_PEAK, cgroup.memory_peak_bytes), .remains = true },
    { TASK_AMOUNT(TASK_OOM_KILLS, cgroup.oom_kills) },
    { TASK_AMOUNT(TASK_PROCESSES, processes) },
};

static void write_steps(const struct job_use *job, const struct usage_amount *amount,
                        struct metric_writer *writer)
{
    for (size_t i = 0; i < job->n_steps; i++) {
        const struct step_use *step = &job->steps[i];

        usage_amount_write(amount, step, METRIC_VALUES(USAGE_JOB_VALUES(job), str_of(step->id)),
                           writer);
    }
}

static void write_tasks(const struct job_use *job, const struct usage_amount *amount,
                        struct metric_writer *writer)
{
    for (size_t i = 0; i < job->n_steps; i++) {
        const struct step_use *step = &job->steps[i];

        for (size_t k = 0; k < step->n_tasks; k++) {
            const struct task_use *task = &step->tasks[k];

            usage_amount_write(
                amount, task,
                METRIC_VALUES(USAGE_JOB_VALUES(job), str_of(step->id), str_of(task->id)), writer);
        }
    }
}

static void collect_steps(const struct usage *usage, struct metric_writer *writer)
{
    usage_amounts_write(usage, step_amounts, COUNT(step_amounts), write_steps, writer);
}

static void collect_tasks(const struct usage *usage, struct metric_writer *writer)
{
    usage_amounts_write(usage, task_amounts, COUNT(task_amounts), write_tasks, writer);
}

const struct usage_collector usage_collector_steps = {
    .name = "steps",
    .help = "CPU, memory, processes and I/O of each step of each job",
    .is_off = true,
    .needs = USAGE_STEPS | USAGE_PROCESSES | USAGE_IO,
    .families = step_families,
    .n_families = COUNT(step_families),
    .collect = collect_steps,
};

const struct usage_collector usage_collector_tasks = {
    .name = "tasks",
    .help = "CPU, memory and processes of each task of each job",
    .is_off = true,
    .needs = USAGE_TASKS | USAGE_PROCESSES,
    .families = task_families,
    .n_families = COUNT(task_families),
    .collect = collect_tasks,
};
