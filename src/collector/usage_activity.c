/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job's processes do, taken together: proc(5). Without their names, which have a collector
 * of their own. */
#include "collector/usage_amounts.h"

enum {
    PROCESSES,
    THREADS,
    RESIDENT,
    DESCRIPTORS,
    FILES,
    READ_BYTES,
    WRITTEN_BYTES,
    REQUESTED_READ_BYTES,
    REQUESTED_WRITTEN_BYTES,
    READ_CALLS,
    WRITE_CALLS,
};

static const struct family families[] = {
    [PROCESSES] = { "sonde_job_processes",
                    METRIC_GAUGE,
                    "Processes of the job.",
                    { USAGE_JOB_LABELS } },
    [THREADS] = { "sonde_job_threads",
                  METRIC_GAUGE,
                  "Threads of the job's processes.",
                  { USAGE_JOB_LABELS } },
    [RESIDENT] = { "sonde_job_resident_bytes",
                   METRIC_GAUGE,
                   "Resident memory of the job's processes; what several share counts for each.",
                   { USAGE_JOB_LABELS } },
    [DESCRIPTORS] = { "sonde_job_open_descriptors",
                      METRIC_GAUGE,
                      "File descriptors of any kind that the job's processes have open.",
                      { USAGE_JOB_LABELS } },
    [FILES] = { "sonde_job_open_files",
                METRIC_GAUGE,
                "Different regular files that the job's processes have open, by name.",
                { USAGE_JOB_LABELS } },
    [READ_BYTES] = { "sonde_job_read_bytes_total",
                     METRIC_COUNTER,
                     "Bytes that the job's processes had fetched from storage, ended ones "
                     "included.",
                     { USAGE_JOB_LABELS } },
    [WRITTEN_BYTES] = { "sonde_job_written_bytes_total",
                        METRIC_COUNTER,
                        "Bytes that the job's processes caused to be sent to storage, ended ones "
                        "included.",
                        { USAGE_JOB_LABELS } },
    [REQUESTED_READ_BYTES] = { "sonde_job_requested_read_bytes_total",
                               METRIC_COUNTER,
                               "Bytes that the job's processes got from read calls, from page "
                               "cache, pipes and terminals too, ended ones included.",
                               { USAGE_JOB_LABELS } },
    [REQUESTED_WRITTEN_BYTES] = { "sonde_job_requested_written_bytes_total",
                                  METRIC_COUNTER,
                                  "Bytes that the job's processes handed to write calls, to page "
                                  "cache, pipes and terminals too, ended ones included.",
                                  { USAGE_JOB_LABELS } },
    [READ_CALLS] = { "sonde_job_read_calls_total",
                     METRIC_COUNTER,
                     "Read system calls of the job's processes, ended ones included.",
                     { USAGE_JOB_LABELS } },
    [WRITE_CALLS] = { "sonde_job_write_calls_total",
                      METRIC_COUNTER,
                      "Write system calls of the job's processes, ended ones included.",
                      { USAGE_JOB_LABELS } },
};

#define AMOUNT(id, member) .family = (id), .offset = offsetof(struct job_use, member)

static const struct usage_amount amounts[] = {
    { AMOUNT(PROCESSES, processes) },
    { AMOUNT(THREADS, threads) },
    { AMOUNT(RESIDENT, resident_bytes) },
    { AMOUNT(DESCRIPTORS, descriptors) },
    { AMOUNT(FILES, files) },
    { AMOUNT(READ_BYTES, io.read_bytes) },
    { AMOUNT(WRITTEN_BYTES, io.write_bytes) },
    { AMOUNT(REQUESTED_READ_BYTES, io.read_chars) },
    { AMOUNT(REQUESTED_WRITTEN_BYTES, io.write_chars) },
    { AMOUNT(READ_CALLS, io.reads) },
    { AMOUNT(WRITE_CALLS, io.writes) },
};

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    usage_amounts_write(usage, amounts, COUNT(amounts), usage_amount_of_job, writer);
}

const struct usage_collector usage_collector_activity = {
    .name = "activity",
    .help = "what the processes of each job do, taken together: number, files, I/O",
    .needs = USAGE_PROCESSES | USAGE_FILES | USAGE_IO,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
