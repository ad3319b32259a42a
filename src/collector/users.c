/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs, CPUs and memory of each user by job state. Names as prometheus-slurm-exporter has them. */
#include "collector/collector.h"
#include "collector/tally.h"

enum { STATE_TOTAL, CPU_ALLOC, MEM_ALLOC };

static const struct family families[] = {
    [STATE_TOTAL] = { "slurm_user_state_total",
                      METRIC_GAUGE,
                      "Jobs of a user by state; every task of a job array counts.",
                      { "username", "state" } },
    [CPU_ALLOC] = { "slurm_user_cpu_alloc",
                    METRIC_GAUGE,
                    "CPUs of a user's jobs by state: allocated, or requested while PENDING.",
                    { "username", "state" } },
    [MEM_ALLOC] = { "slurm_user_mem_alloc",
                    METRIC_GAUGE,
                    "Memory of a user's jobs by state in bytes: allocated, or requested while "
                    "PENDING.",
                    { "username", "state" } },
};

static void write_sum(struct metric_writer *writer, const struct tally_sum *sum,
                      const struct str labels[2])
{
    if (sum->is_known && !sum->is_over)
        metric_u64(writer, labels, sum->total);
}

static void write_cell(struct metric_writer *writer, size_t family, const struct tally_cell *cell,
                       const struct str labels[2])
{
    if (family == STATE_TOTAL)
        metric_u64(writer, labels, cell->count);
    else
        write_sum(writer, family == CPU_ALLOC ? &cell->cpus : &cell->memory_bytes, labels);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct tally tally;

    tally_init(&tally, &section->symbols, n_job_state_words);
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        tally_add(&tally, job->user, job_state_index(job->state), job);
    }
    for (size_t family = STATE_TOTAL; family <= MEM_ALLOC; family++) {
        metric_begin(writer, family);
        for (size_t row = 0; row < tally.n_rows; row++) {
            const struct tally_cell *cells = tally.cells + row * tally.n_columns;
            struct str user = section_text(section, tally.symbols[row]);

            for (size_t state = 0; state < n_job_state_words; state++)
                if (cells[state].count)
                    write_cell(writer, family, &cells[state],
                               METRIC_VALUES(user, job_state_words[state]));
        }
    }
    tally_free(&tally);
}

const struct collector collector_users = {
    .name = "users",
    .help = "jobs, CPUs and memory of each user by job state",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
