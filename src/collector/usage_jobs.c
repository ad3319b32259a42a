/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The families of petricore's jobs_exporter: its names, labels, types and units. Where its numbers
 * were wrong they are right here: docs/compatibility.md. */
#include "collector/known.h"
#include "collector/usage_amounts.h"

enum {
    SPAWNED_PROCESSES,
    OPENED_FILES,
    THREAD_COUNT,
    SYSTEM_TIME,
    USER_TIME,
    USES_SCRATCH,
    CPU_TIME_CORE,
    CPU_TIME_TOTAL,
    READ_MB,
    WRITE_MB,
    READ_COUNT,
    WRITE_COUNT,
    RSS,
    CPU_PERCENT,
    CPU_PERCENT_PER_CORE,
    GPUS_USED,
};

#define LABELS "slurm_job", "instance"

static const struct family families[] = {
    [SPAWNED_PROCESSES] = { "jobs_spawned_processes",
                            METRIC_GAUGE,
                            "Processes of a job on this node.",
                            { LABELS } },
    [OPENED_FILES] = { "jobs_opened_files",
                       METRIC_GAUGE,
                       "Different regular files that a job's processes have open.",
                       { LABELS } },
    [THREAD_COUNT] = { "jobs_thread_count",
                       METRIC_GAUGE,
                       "Threads of a job's processes that have one name. Absent without the "
                       "collector processes: names are published only with it.",
                       { LABELS, "proc_name" } },
    [SYSTEM_TIME] = { "jobs_system_time",
                      METRIC_GAUGE,
                      "Seconds of CPU time that a job has spent in system mode.",
                      { LABELS } },
    [USER_TIME] = { "jobs_user_time",
                    METRIC_GAUGE,
                    "Seconds of CPU time that a job has spent in user mode.",
                    { LABELS } },
    [USES_SCRATCH] = { "jobs_uses_scratch",
                       METRIC_GAUGE,
                       "1 once a job has had a file of the scratch file system open, until then 0.",
                       { LABELS } },
    [CPU_TIME_CORE] = { "jobs_cpu_time_core",
                        METRIC_GAUGE,
                        "Seconds of CPU time that a job has spent on each of its cores. Absent "
                        "with cgroup v2, where the kernel does not count them.",
                        { LABELS, "core" } },
    [CPU_TIME_TOTAL] = { "jobs_cpu_time_total",
                         METRIC_GAUGE,
                         "Seconds of CPU time that a job has spent on all cores.",
                         { LABELS } },
    [READ_MB] = { "jobs_read_mb",
                  METRIC_GAUGE,
                  "MiB that a job's processes have read from storage, ended ones included.",
                  { LABELS } },
    [WRITE_MB] = { "jobs_write_mb",
                   METRIC_GAUGE,
                   "MiB that a job's processes have written to storage, ended ones included.",
                   { LABELS } },
    [READ_COUNT] = { "jobs_read_count",
                     METRIC_GAUGE,
                     "System calls by which a job's processes have read, ended ones included.",
                     { LABELS } },
    [WRITE_COUNT] = { "jobs_write_count",
                      METRIC_GAUGE,
                      "System calls by which a job's processes have written, ended ones included.",
                      { LABELS } },
    [RSS] = { "jobs_rss",
              METRIC_GAUGE,
              "Resident memory of a job's processes in MiB; what several share counts for each.",
              { LABELS } },
    [CPU_PERCENT] = { "jobs_cpu_percent",
                      METRIC_GAUGE,
                      "CPU use of a job between the last two samples: 100 is one core.",
                      { LABELS } },
    [CPU_PERCENT_PER_CORE] = { "jobs_cpu_percent_per_core",
                               METRIC_GAUGE,
                               "CPU use of a job between the last two samples, divided by the "
                               "cores that it was allocated.",
                               { LABELS } },
    [GPUS_USED] = { "jobs_gpus_used",
                    METRIC_GAUGE,
                    "Always 1, for each GPU of a job.",
                    { LABELS, "gpuid" } },
};

#define AMOUNT(id, member) .family = (id), .offset = offsetof(struct job_use, member)

static const struct usage_amount amounts[] = {
    { AMOUNT(SPAWNED_PROCESSES, processes) },
    { AMOUNT(OPENED_FILES, files) },
    { AMOUNT(SYSTEM_TIME, cgroup.cpu_system_ns), .divisor = PER_NANO, .remains = true },
    { AMOUNT(USER_TIME, cgroup.cpu_user_ns), .divisor = PER_NANO, .remains = true },
    { AMOUNT(USES_SCRATCH, uses_scratch), .remains = true },
    { AMOUNT(CPU_TIME_TOTAL, cgroup.cpu_ns), .divisor = PER_NANO, .remains = true },
    { AMOUNT(READ_MB, io.read_bytes), .divisor = PER_MIB, .remains = true },
    { AMOUNT(WRITE_MB, io.write_bytes), .divisor = PER_MIB, .remains = true },
    { AMOUNT(READ_COUNT, io.reads), .remains = true },
    { AMOUNT(WRITE_COUNT, io.writes), .remains = true },
    { AMOUNT(RSS, resident_bytes), .divisor = PER_MIB },
};

static void write_percents(const struct usage *usage, struct metric_writer *writer)
{
    metric_begin(writer, CPU_PERCENT);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        if (!job->has_ended)
            known_write_double(writer, METRIC_VALUES(USAGE_JOB_VALUES(job)), job->cpu_ratio * 100);
    }
    metric_begin(writer, CPU_PERCENT_PER_CORE);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];
        uint64_t cores = job->allocated_cpus;

        if (!job->has_ended && cores != MODEL_UNKNOWN_U64 && cores > 0)
            known_write_double(writer, METRIC_VALUES(USAGE_JOB_VALUES(job)),
                               job->cpu_ratio * 100 / (double)cores);
    }
}

static void write_threads(const struct usage *usage, struct metric_writer *writer)
{
    metric_begin(writer, THREAD_COUNT);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        if (job->has_ended)
            continue;
        for (size_t k = 0; k < job->n_names; k++)
            if (job->names[k].processes)
                known_write(writer,
                            METRIC_VALUES(USAGE_JOB_VALUES(job), str_of(job->names[k].name)),
                            job->names[k].threads);
        writer->folded += job->n_names_folded;
    }
}

/* A job without a cpuset may run on any core: then those that it has run on. */
static bool is_core_of(const struct cgroup_use *cgroup, size_t core)
{
    if (cgroup->core_set)
        return cgroup->core_set[core / 64] >> core % 64 & 1;
    return cgroup->core_ns[core] > 0;
}

static void write_cores(const struct usage *usage, struct metric_writer *writer)
{
    char digits[NUM_U64_MAX];

    metric_begin(writer, CPU_TIME_CORE);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];
        const struct cgroup_use *cgroup = &job->cgroup;

        for (size_t core = 0; cgroup->core_ns && core < cgroup->n_cores; core++)
            if (is_core_of(cgroup, core))
                metric_double(writer,
                              METRIC_VALUES(USAGE_JOB_VALUES(job),
                                            (struct str){ digits, num_put_u64(digits, core) }),
                              (double)cgroup->core_ns[core] / PER_NANO);
    }
}

/* Several instances of one GPU (MIG) are one GPU here. */
static bool is_first_of_gpu(const struct usage *usage, const struct job_use *job, size_t at)
{
    struct usage_gpu_text text, earlier;

    usage_job_gpu_text(usage, &job->gpus[at], &text);
    for (size_t i = 0; i < at; i++) {
        usage_job_gpu_text(usage, &job->gpus[i], &earlier);
        if (str_eq(earlier.index, text.index))
            return false;
    }
    return true;
}

static void write_gpus(const struct usage *usage, struct metric_writer *writer)
{
    struct usage_gpu_text text;

    metric_begin(writer, GPUS_USED);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        for (size_t k = 0; k < job->n_gpus && !job->has_ended; k++) {
            if (!is_first_of_gpu(usage, job, k))
                continue;
            usage_job_gpu_text(usage, &job->gpus[k], &text);
            metric_u64(writer, METRIC_VALUES(USAGE_JOB_VALUES(job), text.index), 1);
        }
    }
}

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    usage_amounts_write(usage, amounts, COUNT(amounts), usage_amount_of_job, writer);
    write_percents(usage, writer);
    write_threads(usage, writer);
    write_cores(usage, writer);
    write_gpus(usage, writer);
}

const struct usage_collector usage_collector_jobs = {
    .name = "jobs",
    .help = "what each job uses, under the names of jobs_exporter",
    .needs = USAGE_CORES | USAGE_PROCESSES | USAGE_FILES | USAGE_IO | USAGE_GPUS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
