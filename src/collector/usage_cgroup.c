/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel counts for a job's cgroup: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/
 * of the kernel. What v1, an older kernel or a controller that is not enabled leaves out is absent.
 */
#include "collector/usage_amounts.h"

enum {
    CPU,
    CPU_USER,
    CPU_SYSTEM,
    CPU_PERIODS,
    CPU_THROTTLED_PERIODS,
    CPU_THROTTLED,
    MEMORY,
    MEMORY_PEAK,
    MEMORY_LIMIT,
    MEMORY_ANONYMOUS,
    MEMORY_FILE,
    MEMORY_MAPPED,
    MEMORY_SHARED,
    MEMORY_SWAP,
    MEMORY_KERNEL,
    PAGE_FAULTS,
    MAJOR_PAGE_FAULTS,
    MEMORY_LIMIT_HITS,
    OOM_KILLS,
    PIDS,
    PIDS_PEAK,
    WAITING,
    STALLED,
    DEVICE_READ_BYTES,
    DEVICE_WRITTEN_BYTES,
    DEVICE_READS,
    DEVICE_WRITES,
};

static const struct family families[] = {
    [CPU] = { "sonde_job_cpu_seconds_total",
              METRIC_COUNTER,
              "CPU time that the job has used on this node.",
              { USAGE_JOB_LABELS } },
    [CPU_USER] = { "sonde_job_cpu_user_seconds_total",
                   METRIC_COUNTER,
                   "CPU time that the job has used in user mode; more coarsely counted than the "
                   "whole.",
                   { USAGE_JOB_LABELS } },
    [CPU_SYSTEM] = { "sonde_job_cpu_system_seconds_total",
                     METRIC_COUNTER,
                     "CPU time that the job has used in system mode; more coarsely counted than "
                     "the whole.",
                     { USAGE_JOB_LABELS } },
    [CPU_PERIODS] = { "sonde_job_cpu_periods_total",
                      METRIC_COUNTER,
                      "Periods of the job's CPU quota in which it wanted to run.",
                      { USAGE_JOB_LABELS } },
    [CPU_THROTTLED_PERIODS] = { "sonde_job_cpu_throttled_periods_total",
                                METRIC_COUNTER,
                                "Periods in which the job had used up its CPU quota.",
                                { USAGE_JOB_LABELS } },
    [CPU_THROTTLED] = { "sonde_job_cpu_throttled_seconds_total",
                        METRIC_COUNTER,
                        "Time for which the job was kept from running, because it had used up its "
                        "CPU quota; on each CPU.",
                        { USAGE_JOB_LABELS } },
    [MEMORY] = { "sonde_job_memory_bytes",
                 METRIC_GAUGE,
                 "Memory that is charged to the job, page cache included.",
                 { USAGE_JOB_LABELS } },
    [MEMORY_PEAK] = { "sonde_job_memory_peak_bytes",
                      METRIC_GAUGE,
                      "The most memory that was ever charged to the job; needs cgroup v1 or Linux "
                      "5.19.",
                      { USAGE_JOB_LABELS } },
    [MEMORY_LIMIT] = { "sonde_job_memory_limit_bytes",
                       METRIC_GAUGE,
                       "Memory that the kernel lets the job have; absent if there is no limit.",
                       { USAGE_JOB_LABELS } },
    [MEMORY_ANONYMOUS] = { "sonde_job_memory_anonymous_bytes",
                           METRIC_GAUGE,
                           "Memory of the job that is not of files: heaps, stacks.",
                           { USAGE_JOB_LABELS } },
    [MEMORY_FILE] = { "sonde_job_memory_file_bytes",
                      METRIC_GAUGE,
                      "Page cache that is charged to the job, shared memory included.",
                      { USAGE_JOB_LABELS } },
    [MEMORY_MAPPED] = { "sonde_job_memory_mapped_bytes",
                        METRIC_GAUGE,
                        "Page cache of the job that its processes have mapped.",
                        { USAGE_JOB_LABELS } },
    [MEMORY_SHARED] = { "sonde_job_memory_shared_bytes",
                        METRIC_GAUGE,
                        "Shared memory and tmpfs of the job: /dev/shm, /tmp where that is one.",
                        { USAGE_JOB_LABELS } },
    [MEMORY_SWAP] = { "sonde_job_memory_swap_bytes",
                      METRIC_GAUGE,
                      "Swap space that the job uses.",
                      { USAGE_JOB_LABELS } },
    [MEMORY_KERNEL] = { "sonde_job_memory_kernel_bytes",
                        METRIC_GAUGE,
                        "Memory that the kernel needs on the job's behalf.",
                        { USAGE_JOB_LABELS } },
    [PAGE_FAULTS] = { "sonde_job_page_faults_total",
                      METRIC_COUNTER,
                      "Page faults of the job, minor and major.",
                      { USAGE_JOB_LABELS } },
    [MAJOR_PAGE_FAULTS] = { "sonde_job_major_page_faults_total",
                            METRIC_COUNTER,
                            "Page faults of the job that had to wait for storage.",
                            { USAGE_JOB_LABELS } },
    [MEMORY_LIMIT_HITS] = { "sonde_job_memory_limit_hits_total",
                            METRIC_COUNTER,
                            "How often the job came up against its memory limit; the kernel then "
                            "takes back page cache first.",
                            { USAGE_JOB_LABELS } },
    [OOM_KILLS] = { "sonde_job_oom_kills_total",
                    METRIC_COUNTER,
                    "Processes of the job that were killed for want of memory.",
                    { USAGE_JOB_LABELS } },
    [PIDS] = { "sonde_job_pids",
               METRIC_GAUGE,
               "Processes and threads of the job, as its pids controller counts them.",
               { USAGE_JOB_LABELS } },
    [PIDS_PEAK] = { "sonde_job_pids_peak",
                    METRIC_GAUGE,
                    "The most processes and threads that the job ever had; needs Linux 6.1.",
                    { USAGE_JOB_LABELS } },
    [WAITING] = { "sonde_job_pressure_waiting_seconds_total",
                  METRIC_COUNTER,
                  "Time for which some of the job's tasks waited for a resource: cpu, memory or "
                  "io; cgroup v2 only.",
                  { USAGE_JOB_LABELS, "resource" } },
    [STALLED] = { "sonde_job_pressure_stalled_seconds_total",
                  METRIC_COUNTER,
                  "Time for which all of the job's tasks waited for a resource at once; cgroup v2 "
                  "only.",
                  { USAGE_JOB_LABELS, "resource" } },
    [DEVICE_READ_BYTES] = { "sonde_job_device_read_bytes_total",
                            METRIC_COUNTER,
                            "Bytes that the job has read from a block device.",
                            { USAGE_JOB_LABELS, "device" } },
    [DEVICE_WRITTEN_BYTES] = { "sonde_job_device_written_bytes_total",
                               METRIC_COUNTER,
                               "Bytes that the job has written to a block device.",
                               { USAGE_JOB_LABELS, "device" } },
    [DEVICE_READS] = { "sonde_job_device_reads_total",
                       METRIC_COUNTER,
                       "Read requests of the job to a block device.",
                       { USAGE_JOB_LABELS, "device" } },
    [DEVICE_WRITES] = { "sonde_job_device_writes_total",
                        METRIC_COUNTER,
                        "Write requests of the job to a block device.",
                        { USAGE_JOB_LABELS, "device" } },
};

#define AMOUNT(id, member) .family = (id), .offset = offsetof(struct job_use, cgroup.member)

static const struct usage_amount amounts[] = {
    { AMOUNT(CPU, cpu_ns), .divisor = PER_NANO },
    { AMOUNT(CPU_USER, cpu_user_ns), .divisor = PER_NANO },
    { AMOUNT(CPU_SYSTEM, cpu_system_ns), .divisor = PER_NANO },
    { AMOUNT(CPU_PERIODS, periods) },
    { AMOUNT(CPU_THROTTLED_PERIODS, throttled_periods) },
    { AMOUNT(CPU_THROTTLED, throttled_ns), .divisor = PER_NANO },
    { AMOUNT(MEMORY, memory_bytes) },
    { AMOUNT(MEMORY_PEAK, memory_peak_bytes), .remains = true },
    { AMOUNT(MEMORY_LIMIT, memory_limit_bytes), .remains = true },
    { AMOUNT(MEMORY_ANONYMOUS, anon_bytes) },
    { AMOUNT(MEMORY_FILE, file_bytes) },
    { AMOUNT(MEMORY_MAPPED, mapped_bytes) },
    { AMOUNT(MEMORY_SHARED, shmem_bytes) },
    { AMOUNT(MEMORY_SWAP, swap_bytes) },
    { AMOUNT(MEMORY_KERNEL, kernel_bytes) },
    { AMOUNT(PAGE_FAULTS, page_faults) },
    { AMOUNT(MAJOR_PAGE_FAULTS, major_page_faults) },
    { AMOUNT(MEMORY_LIMIT_HITS, limit_hits) },
    { AMOUNT(OOM_KILLS, oom_kills) },
    { AMOUNT(PIDS, pids) },
    { AMOUNT(PIDS_PEAK, pids_peak), .remains = true },
};

static const struct {
    struct str resource;
    enum pressure some, full;
} pressures[] = {
    { STR_INIT("cpu"), PRESSURE_CPU_SOME, PRESSURE_CPU_FULL },
    { STR_INIT("memory"), PRESSURE_MEMORY_SOME, PRESSURE_MEMORY_FULL },
    { STR_INIT("io"), PRESSURE_IO_SOME, PRESSURE_IO_FULL },
};

static const struct usage_amount device_amounts[] = {
    { .family = DEVICE_READ_BYTES, .offset = offsetof(struct device_use, read_bytes) },
    { .family = DEVICE_WRITTEN_BYTES, .offset = offsetof(struct device_use, write_bytes) },
    { .family = DEVICE_READS, .offset = offsetof(struct device_use, reads) },
    { .family = DEVICE_WRITES, .offset = offsetof(struct device_use, writes) },
};

static void write_pressures(const struct usage *usage, size_t family, struct metric_writer *writer)
{
    metric_begin(writer, family);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        for (size_t k = 0; k < COUNT(pressures); k++) {
            uint64_t ns =
                job->cgroup.pressure_ns[family == WAITING ? pressures[k].some : pressures[k].full];

            if (ns != MODEL_UNKNOWN_U64)
                metric_double(writer, METRIC_VALUES(USAGE_JOB_VALUES(job), pressures[k].resource),
                              (double)ns / PER_NANO);
        }
    }
}

static void write_devices(const struct job_use *job, const struct usage_amount *amount,
                          struct metric_writer *writer)
{
    for (size_t i = 0; i < job->cgroup.n_devices; i++) {
        const struct device_use *device = &job->cgroup.devices[i];

        usage_amount_write(amount, device,
                           METRIC_VALUES(USAGE_JOB_VALUES(job), str_of(device->name)), writer);
    }
}

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    usage_amounts_write(usage, amounts, COUNT(amounts), usage_amount_of_job, writer);
    write_pressures(usage, WAITING, writer);
    write_pressures(usage, STALLED, writer);
    usage_amounts_write(usage, device_amounts, COUNT(device_amounts), write_devices, writer);
}

const struct usage_collector usage_collector_cgroup = {
    .name = "cgroup",
    .help = "what the kernel counts for each job's cgroup: CPU, memory, pressure, devices",
    .needs = USAGE_CGROUP,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
