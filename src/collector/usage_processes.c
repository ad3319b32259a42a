/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of each job by name. A job chooses these names: they are any bytes, and there are
 * no more of them than the sampler lets through. */
#include "collector/usage_amounts.h"

enum { INSTANCES, THREADS, RESIDENT, CPU };

#define LABELS USAGE_JOB_LABELS, "process"

static const struct family families[] = {
    [INSTANCES] = { "sonde_job_process_instances",
                    METRIC_GAUGE,
                    "Processes of the job that have one name. Past a ceiling the rest is called "
                    "other.",
                    { LABELS } },
    [THREADS] = { "sonde_job_process_threads",
                  METRIC_GAUGE,
                  "Threads of the job's processes of that name.",
                  { LABELS } },
    [RESIDENT] = { "sonde_job_process_resident_bytes",
                   METRIC_GAUGE,
                   "Resident memory of the job's processes of that name; what several share counts "
                   "for each.",
                   { LABELS } },
    [CPU] = { "sonde_job_process_cpu_seconds_total",
              METRIC_COUNTER,
              "CPU time that the job's processes of that name have used, ended ones included.",
              { LABELS } },
};

#define AMOUNT(id, member) .family = (id), .offset = offsetof(struct name_use, member)

static const struct usage_amount amounts[] = {
    { AMOUNT(INSTANCES, processes) },
    { AMOUNT(THREADS, threads) },
    { AMOUNT(RESIDENT, resident_bytes) },
    { AMOUNT(CPU, cpu_ns), .divisor = PER_NANO },
};

/* Of a name whose processes have all ended only the counter goes on. */
static void write_names(const struct job_use *job, const struct usage_amount *amount,
                        struct metric_writer *writer)
{
    bool remains = usage_amount_remains(amount, writer);

    for (size_t i = 0; i < job->n_names; i++) {
        const struct name_use *name = &job->names[i];

        if (remains || name->processes)
            usage_amount_write(amount, name,
                               METRIC_VALUES(USAGE_JOB_VALUES(job), str_of(name->name)), writer);
    }
}

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    usage_amounts_write(usage, amounts, COUNT(amounts), write_names, writer);
    for (size_t i = 0; i < usage->n_jobs; i++)
        writer->folded += usage->jobs[i]->n_names_folded;
}

const struct usage_collector usage_collector_processes = {
    .name = "processes",
    .help = "the processes of each job by name; without it no process name is published",
    .needs = USAGE_PROCESSES | USAGE_NAMES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
