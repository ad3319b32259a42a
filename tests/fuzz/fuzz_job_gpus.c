/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's nodes in the first line, and the detail of its GRES on each in the others: what is told
 * is told of nodes that the list names, by indexes that read back, and only if all of it fits. */
#include "model/hostlist.h"
#include "model/job_gpus.h"

#include "fuzz.h"

static void check_indexes(struct str list)
{
    struct gpu_indexes indexes = { 0 };
    struct buf again;
    size_t n = 0;

    FUZZ_CHECK(gpu_indexes_add(&indexes, list));
    for (unsigned gpu = 0; gpu_indexes_next(&indexes, &gpu); gpu++)
        FUZZ_CHECK(gpu < GPU_INDEXES_MAX && ++n);
    FUZZ_CHECK(n && n == gpu_indexes_count(&indexes));
    buf_init(&again, list.n + 1);
    gpu_indexes_put(&indexes, &again);
    FUZZ_CHECK(str_eq(buf_str(&again), list));
    buf_free(&again);
}

static void check_rows(const struct section *section, const struct job *job, size_t n_details,
                       bool is_told)
{
    const struct jobs *jobs = &section->jobs;
    uint64_t n_nodes;

    FUZZ_CHECK(jobs->n_gpus <= n_details);
    FUZZ_CHECK(is_told || !jobs->n_gpus);
    if (!jobs->n_gpus)
        return;
    FUZZ_CHECK(hostlist_count(section_text(section, job->nodes), &n_nodes, NULL) == 0);
    FUZZ_CHECK(n_nodes == n_details);
    for (size_t i = 0; i < jobs->n_gpus; i++) {
        FUZZ_CHECK(jobs->gpus[i].job_id == job->id);
        FUZZ_CHECK(jobs->gpus[i].node);
        check_indexes(section_text(section, jobs->gpus[i].gpus));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size };
    struct section *section = section_new(KIND_JOBS);
    struct job job = { .id = 7, .state = { JOB_RUNNING, 0 } };
    struct job_gpus_reader reader;
    size_t n_details = 0;
    bool is_told;

    job.nodes = symbols_put(&section->symbols, str_cut(&rest, '\n'));
    job_gpus_init(&reader, section);
    job_gpus_begin(&reader);
    for (; rest.p; n_details++)
        job_gpus_detail(&reader, str_cut(&rest, '\n'));
    is_told = job_gpus_end(&reader, &job);
    check_rows(section, &job, n_details, is_told);
    job_gpus_free(&reader);
    section_unref(section);
    return 0;
}
