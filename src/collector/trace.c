/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs that tell of their own processes (POST /trace). Names as prometheus-slurm-exporter has them.
 */
#include "base/num.h"
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/once.h"

enum {
    CPU_USAGE,
    MEM_USAGE,
    READ_BYTES,
    WRITE_BYTES,
    THREADCOUNT,
    PID,
    CPU_ALLOC,
    MEM_ALLOC,
};

static const struct family families[] = {
    [CPU_USAGE] = { "slurm_proc_cpu_usage",
                    METRIC_GAUGE,
                    "CPU that a traced job's processes use, in percent of one core.",
                    { "jobid", "username" } },
    [MEM_USAGE] = { "slurm_proc_mem_usage",
                    METRIC_GAUGE,
                    "Memory that a traced job's processes use, in bytes.",
                    { "jobid", "username" } },
    [READ_BYTES] = { "slurm_proc_read_bytes",
                     METRIC_GAUGE,
                     "Bytes that a traced job's processes have read.",
                     { "jobid", "username" } },
    [WRITE_BYTES] = { "slurm_proc_write_bytes",
                      METRIC_GAUGE,
                      "Bytes that a traced job's processes have written.",
                      { "jobid", "username" } },
    [THREADCOUNT] = { "slurm_proc_threadcount",
                      METRIC_GAUGE,
                      "Threads of a traced job's processes.",
                      { "jobid", "username" } },
    [PID] = { "slurm_proc_pid",
              METRIC_GAUGE,
              "Process id of a traced job on a host, the lowest if there are several.",
              { "jobid", "hostname" } },
    [CPU_ALLOC] = { "slurm_job_cpu_alloc",
                    METRIC_GAUGE,
                    "CPUs that Slurm has allocated to a traced job.",
                    { "jobid" } },
    [MEM_ALLOC] = { "slurm_job_mem_alloc",
                    METRIC_GAUGE,
                    "Memory that Slurm has allocated to a traced job, in bytes.",
                    { "jobid" } },
};

static const struct {
    size_t family;
    size_t offset; /* of a double in struct traced_job */
} usages[] = {
    { CPU_USAGE, offsetof(struct traced_job, cpu_percent) },
    { MEM_USAGE, offsetof(struct traced_job, memory_bytes) },
    { READ_BYTES, offsetof(struct traced_job, read_bytes) },
    { WRITE_BYTES, offsetof(struct traced_job, write_bytes) },
    { THREADCOUNT, offsetof(struct traced_job, threads) },
};

/* A job, and its number as text. */
struct row {
    const struct traced_job *job;
    char digits[NUM_U64_MAX];
    struct str id;
};

/* Each job once. */
static size_t pick(const struct traces *traces, struct row *rows)
{
    struct once once;
    size_t n = 0;

    once_init(&once);
    for (size_t i = 0; i < traces->n; i++) {
        struct row *row = &rows[n];

        if (!once_numbers(&once, traces->job[i].id))
            continue;
        row->job = &traces->job[i];
        row->id = (struct str){ row->digits, num_put_u64(row->digits, row->job->id) };
        n++;
    }
    once_free(&once);
    return n;
}

static void write_usages(const struct section *section, const struct row *rows, size_t n,
                         struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(usages); k++) {
        metric_begin(writer, usages[k].family);
        for (size_t i = 0; i < n; i++) {
            const void *usage = (const char *)rows[i].job + usages[k].offset;

            known_write_double(writer,
                               METRIC_VALUES(rows[i].id, section_text(section, rows[i].job->user)),
                               *(const double *)usage);
        }
    }
}

static void write_hosts(const struct section *section, const struct row *rows, size_t n,
                        struct metric_writer *writer)
{
    metric_begin(writer, PID);
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < rows[i].job->n_hosts; k++) {
            const struct traced_host *host = &section->traces.host[rows[i].job->first_host + k];

            if (host->pid > 0)
                metric_u64(writer, METRIC_VALUES(rows[i].id, section_text(section, host->name)),
                           (uint64_t)host->pid);
        }
    }
}

static void write_allocations(const struct row *rows, size_t n, struct metric_writer *writer)
{
    metric_begin(writer, CPU_ALLOC);
    for (size_t i = 0; i < n; i++)
        known_write(writer, &rows[i].id, known_u32(rows[i].job->allocated_cpus));
    metric_begin(writer, MEM_ALLOC);
    for (size_t i = 0; i < n; i++)
        known_write(writer, &rows[i].id, rows[i].job->allocated_memory_bytes);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct row *rows = heap_array(section->traces.n + 1, sizeof(*rows));
    size_t n = pick(&section->traces, rows);

    write_usages(section, rows, n, writer);
    write_hosts(section, rows, n, writer);
    write_allocations(rows, n, writer);
    free(rows);
}

const struct collector collector_trace = {
    .name = "trace",
    .help = "what traced jobs say of their own processes",
    .kind = KIND_TRACES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
