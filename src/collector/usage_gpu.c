/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GPUs of this node and what jobs do with them. Slurm's own word on who holds which GPU, which
 * the exporter publishes, has the same job_id, node and gpu: a GPU that is held and idle is the
 * join of the two. A label called `instance` would hide the scrape's own, hence `gpu_instance`. */
#include "collector/known.h"
#include "collector/usage_amounts.h"
#include "source/gpus.h"

enum {
    INFO,
    UTILIZATION,
    MEMORY_ACCESS,
    MEMORY_USED,
    MEMORY_TOTAL,
    POWER,
    POWER_LIMIT,
    ENERGY,
    TEMPERATURE,
    SM_CLOCK,
    MEMORY_CLOCK,
    ECC_ERRORS,
    THROTTLED,
    JOB_INFO,
    JOB_PROCESSES,
    JOB_MEMORY_USED,
    JOB_UTILIZATION,
};

#define LABELS     "node", "gpu", "gpu_instance"
#define JOB_LABELS USAGE_JOB_LABELS, "gpu", "gpu_instance"

static const struct family families[] = {
    [INFO] = { "sonde_gpu_info",
               METRIC_GAUGE,
               "Always 1; the labels tell which GPU has that index. The label gpu_instance is "
               "empty "
               "except for the parts of a GPU that is shared out (MIG).",
               { LABELS, "uuid", "model" } },
    [UTILIZATION] = { "sonde_gpu_utilization_ratio",
                      METRIC_GAUGE,
                      "Part of the driver's last sample period in which something ran on the GPU.",
                      { LABELS } },
    [MEMORY_ACCESS] = { "sonde_gpu_memory_access_ratio",
                        METRIC_GAUGE,
                        "Part of the driver's last sample period in which the GPU's memory was "
                        "read "
                        "or written.",
                        { LABELS } },
    [MEMORY_USED] = { "sonde_gpu_memory_used_bytes",
                      METRIC_GAUGE,
                      "Memory of the GPU that is in use.",
                      { LABELS } },
    [MEMORY_TOTAL] = { "sonde_gpu_memory_total_bytes",
                       METRIC_GAUGE,
                       "Memory of the GPU.",
                       { LABELS } },
    [POWER] = { "sonde_gpu_power_watts", METRIC_GAUGE, "Power that the GPU draws.", { LABELS } },
    [POWER_LIMIT] = { "sonde_gpu_power_limit_watts",
                      METRIC_GAUGE,
                      "Power that the GPU may draw.",
                      { LABELS } },
    [ENERGY] = { "sonde_gpu_energy_joules_total",
                 METRIC_COUNTER,
                 "Energy that the GPU has used since its driver was loaded.",
                 { LABELS } },
    [TEMPERATURE] = { "sonde_gpu_temperature_celsius",
                      METRIC_GAUGE,
                      "Temperature of the GPU.",
                      { LABELS } },
    [SM_CLOCK] = { "sonde_gpu_sm_clock_hertz",
                   METRIC_GAUGE,
                   "Clock of the GPU's processors.",
                   { LABELS } },
    [MEMORY_CLOCK] = { "sonde_gpu_memory_clock_hertz",
                       METRIC_GAUGE,
                       "Clock of the GPU's memory.",
                       { LABELS } },
    [ECC_ERRORS] = { "sonde_gpu_ecc_errors_total",
                     METRIC_COUNTER,
                     "Memory errors of the GPU since its driver was loaded, by type: corrected or "
                     "uncorrected.",
                     { LABELS, "type" } },
    [THROTTLED] = { "sonde_gpu_throttled",
                    METRIC_GAUGE,
                    "1 for each reason for which the GPU's clocks are lower now than they could "
                    "be, "
                    "0 for the others.",
                    { LABELS, "reason" } },
    [JOB_INFO] = { "sonde_job_gpu_info",
                   METRIC_GAUGE,
                   "Always 1, for each GPU that the job holds or uses: joins the job with what is "
                   "told of the GPU.",
                   { JOB_LABELS } },
    [JOB_PROCESSES] = { "sonde_job_gpu_processes",
                        METRIC_GAUGE,
                        "Processes of the job on a GPU: 0 for one that it holds and does not use; "
                        "absent if the driver does not tell.",
                        { JOB_LABELS } },
    [JOB_MEMORY_USED] = { "sonde_job_gpu_memory_used_bytes",
                          METRIC_GAUGE,
                          "Memory of a GPU that the job's processes use.",
                          { JOB_LABELS } },
    [JOB_UTILIZATION] = { "sonde_job_gpu_utilization_ratio",
                          METRIC_GAUGE,
                          "Part of the driver's last sample period in which processes of the job "
                          "ran on a GPU.",
                          { JOB_LABELS } },
};

#define AMOUNT(id, member) .family = (id), .offset = offsetof(struct gpu_use, member)

static const struct usage_amount amounts[] = {
    { AMOUNT(MEMORY_USED, memory_used_bytes) },
    { AMOUNT(MEMORY_TOTAL, memory_total_bytes) },
    { AMOUNT(POWER, power_mw), .divisor = PER_MILLI },
    { AMOUNT(POWER_LIMIT, power_limit_mw), .divisor = PER_MILLI },
    { AMOUNT(ENERGY, energy_mj), .divisor = PER_MILLI },
    { AMOUNT(TEMPERATURE, temperature_celsius) },
    { AMOUNT(SM_CLOCK, sm_clock_mhz), .factor = MEGA },
    { AMOUNT(MEMORY_CLOCK, memory_clock_mhz), .factor = MEGA },
};

static const struct {
    size_t family;
    size_t offset; /* of a double */
} ratios[] = {
    { AMOUNT(UTILIZATION, utilization) },
    { AMOUNT(MEMORY_ACCESS, memory_utilization) },
};

static const struct {
    struct str type;
    struct usage_amount amount;
} ecc_errors[] = {
    { STR_INIT("corrected"), { AMOUNT(ECC_ERRORS, ecc_corrected) } },
    { STR_INIT("uncorrected"), { AMOUNT(ECC_ERRORS, ecc_uncorrected) } },
};

/* A GPU and its labels. */
struct row {
    const struct gpu_use *gpu;
    struct str node;
    struct usage_gpu_text text;
};

#define VALUES(row) (row)->node, (row)->text.index, (row)->text.instance

static void write_infos(const struct row *rows, size_t n, struct metric_writer *writer)
{
    metric_begin(writer, INFO);
    for (size_t i = 0; i < n; i++)
        metric_u64(
            writer,
            METRIC_VALUES(VALUES(&rows[i]), str_of(rows[i].gpu->uuid), str_of(rows[i].gpu->model)),
            1);
}

static void write_ratios(const struct row *rows, size_t n, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(ratios); k++) {
        metric_begin(writer, ratios[k].family);
        for (size_t i = 0; i < n; i++) {
            const void *ratio = (const char *)rows[i].gpu + ratios[k].offset;

            known_write_double(writer, METRIC_VALUES(VALUES(&rows[i])), *(const double *)ratio);
        }
    }
}

static void write_amounts(const struct row *rows, size_t n, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(amounts); k++) {
        metric_begin(writer, amounts[k].family);
        for (size_t i = 0; i < n; i++)
            usage_amount_write(&amounts[k], rows[i].gpu, METRIC_VALUES(VALUES(&rows[i])), writer);
    }
}

static void write_errors(const struct row *rows, size_t n, struct metric_writer *writer)
{
    metric_begin(writer, ECC_ERRORS);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT(ecc_errors); k++)
            usage_amount_write(&ecc_errors[k].amount, rows[i].gpu,
                               METRIC_VALUES(VALUES(&rows[i]), ecc_errors[k].type), writer);
}

static void write_throttles(const struct row *rows, size_t n, struct metric_writer *writer)
{
    metric_begin(writer, THROTTLED);
    for (size_t i = 0; i < n; i++) {
        uint64_t reasons = rows[i].gpu->throttle_reasons;

        for (size_t k = 0; gpu_throttles[k].name && reasons != MODEL_UNKNOWN_U64; k++)
            metric_u64(writer, METRIC_VALUES(VALUES(&rows[i]), str_of(gpu_throttles[k].name)),
                       (reasons & gpu_throttles[k].bit) != 0);
    }
}

static void collect_gpus(const struct usage *usage, struct metric_writer *writer)
{
    struct row *rows = heap_array(usage->n_gpus + 1, sizeof(*rows));

    for (size_t i = 0; i < usage->n_gpus; i++) {
        rows[i].gpu = &usage->gpus[i];
        rows[i].node = str_of(usage->host);
        usage_gpu_text(rows[i].gpu, &rows[i].text);
    }
    write_infos(rows, usage->n_gpus, writer);
    write_ratios(rows, usage->n_gpus, writer);
    write_amounts(rows, usage->n_gpus, writer);
    write_errors(rows, usage->n_gpus, writer);
    write_throttles(rows, usage->n_gpus, writer);
    free(rows);
}

static void write_job_info(const struct job_gpu *gpu, const struct str *labels,
                           struct metric_writer *writer)
{
    (void)gpu;
    metric_u64(writer, labels, 1);
}

static void write_job_processes(const struct job_gpu *gpu, const struct str *labels,
                                struct metric_writer *writer)
{
    known_write(writer, labels, gpu->processes);
}

static void write_job_memory(const struct job_gpu *gpu, const struct str *labels,
                             struct metric_writer *writer)
{
    known_write(writer, labels, gpu->memory_bytes);
}

static void write_job_utilization(const struct job_gpu *gpu, const struct str *labels,
                                  struct metric_writer *writer)
{
    known_write_double(writer, labels, gpu->utilization);
}

static const struct job_family {
    size_t family;
    void (*write)(const struct job_gpu *gpu, const struct str *labels,
                  struct metric_writer *writer);
} job_families[] = {
    { JOB_INFO, write_job_info },
    { JOB_PROCESSES, write_job_processes },
    { JOB_MEMORY_USED, write_job_memory },
    { JOB_UTILIZATION, write_job_utilization },
};

/* A job that has ended holds no GPU: what it held may be another's by now. */
static void collect_jobs(const struct usage *usage, const struct job_family *family,
                         struct metric_writer *writer)
{
    struct usage_gpu_text text;

    metric_begin(writer, family->family);
    for (size_t i = 0; i < usage->n_jobs; i++) {
        const struct job_use *job = usage->jobs[i];

        for (size_t k = 0; k < job->n_gpus && !job->has_ended; k++) {
            usage_job_gpu_text(usage, &job->gpus[k], &text);
            family->write(&job->gpus[k],
                          METRIC_VALUES(USAGE_JOB_VALUES(job), text.index, text.instance), writer);
        }
    }
}

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    collect_gpus(usage, writer);
    for (size_t k = 0; k < COUNT(job_families); k++)
        collect_jobs(usage, &job_families[k], writer);
}

const struct usage_collector usage_collector_gpu = {
    .name = "gpu",
    .help = "the GPUs of this node, and what each job does with those that it holds",
    .needs = USAGE_GPUS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
