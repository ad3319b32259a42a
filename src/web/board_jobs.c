/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the queue from a store as sections of jobs. */
#include "web/board_jobs.h"

#include <stdlib.h>

struct reading {
    const struct look_row *clusters;
    size_t n;
    struct section **sections;
    size_t *room; /* of the jobs of each */
};

/* Under the names that the recorder has for them: record/seen.c. */
static const struct {
    struct str name;
    size_t offset; /* in struct job */
} extras[] = {
    { STR_INIT("Licenses"), offsetof(struct job, licenses) },
    { STR_INIT("Constraints"), offsetof(struct job, features) },
    { STR_INIT("AllocNode"), offsetof(struct job, alloc_node) },
};

static void put_extras(struct section *section, const struct job_record *record, struct job *job)
{
    for (size_t i = 0; i < record->n_extra; i++)
        for (size_t k = 0; k < COUNT(extras); k++)
            if (str_eq(record->extra[i].name, extras[k].name))
                *(symbol *)(void *)((char *)job + extras[k].offset) =
                    symbols_put(&section->symbols, record->extra[i].value);
}

static void put_texts(struct section *section, const struct job_record *record, struct job *job)
{
    struct symbols *symbols = &section->symbols;

    job->user = symbols_put(symbols, record->user);
    job->account = symbols_put(symbols, record->account);
    job->qos = symbols_put(symbols, record->qos);
    job->name = symbols_put(symbols, record->name);
    job->reservation = symbols_put(symbols, record->reservation);
    job->partition = symbols_put(symbols, record->partition);
    job->reason = symbols_put(symbols, record->reason);
    job->nodes = symbols_put(symbols, record->nodes);
    job->tres = symbols_put(symbols, record->tres);
}

static struct job job_of(const struct job_record *record)
{
    return (struct job){
        .id = record->id,
        .array_job_id = record->array_job_id,
        .array_task_id = record->array_task_id,
        .tasks = record->tasks,
        .het_job_id = record->het_job_id,
        .het_offset = record->het_offset,
        .user_id = record->user_id,
        .restarts = record->restarts,
        .state = record->state,
        .cpus = record->cpus,
        .node_count = record->node_count,
        .memory_bytes = record->memory_bytes,
        .time_limit_minutes = record->time_limit_minutes,
        .priority = record->priority,
        .submit_time = record->submit_time,
        .eligible_time = record->eligible_time,
        .start_time = record->start_time,
        .end_time = record->end_time,
    };
}

/* Clusters are few. */
static size_t find_cluster(const struct reading *reading, struct str name)
{
    size_t i = 0;

    while (i < reading->n && !str_eq(reading->clusters[i].cluster, name))
        i++;
    return i;
}

static int take_row(void *ctx, const struct job_row *row)
{
    struct reading *reading = ctx;
    size_t i = find_cluster(reading, row->key.cluster);
    struct section *section;
    struct jobs *jobs;
    struct job *job;

    if (i == reading->n || row->last_seen)
        return 0;
    section = reading->sections[i];
    jobs = &section->jobs;
    jobs->job = heap_grow(jobs->job, jobs->n, &reading->room[i], sizeof(*jobs->job));
    job = &jobs->job[jobs->n++];
    *job = job_of(&row->record);
    put_texts(section, &row->record, job);
    put_extras(section, &row->record, job);
    return 0;
}

int board_jobs_read(struct store_reader *reader, const struct look_row *clusters, size_t n,
                    int64_t ended_since, int64_t now, struct section **ret, struct err *err)
{
    struct reading reading = { clusters, n, ret, heap_alloc((n + 1) * sizeof(*reading.room)) };
    struct job_filter filter;
    int code;

    job_filter_clear(&filter);
    filter.from = ended_since;
    for (size_t i = 0; i < n; i++)
        ret[i] = section_new(KIND_JOBS);
    code = store_jobs(reader, &filter, &(struct job_order){ .wants_extra = true }, now, take_row,
                      &reading, err);
    for (size_t i = 0; i < n; i++)
        if (ret[i]->jobs.job)
            arena_adopt(&ret[i]->arena, ret[i]->jobs.job);
    free(reading.room);
    return code;
}
