/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words are those of report/kept_words.h, as an agent on each of the nodes would tell them. */
#include "cmd/up_demo_jobs.h"

#include "model/hostlist.h"
#include "model/job_gpus.h"
#include "model/job_times.h"

enum { NODES_MAX = 4096 }; /* of one job */

static const double gpu_memory_bytes = 80e9;

#define USE(member) offsetof(struct sim_use, member)
#define GPU(member) (offsetof(struct sim_use, gpu[0].member) - offsetof(struct sim_use, gpu[0]))

struct use_word {
    const char *word;
    size_t offset;
};

static const struct use_word use_words[] = {
    { "cpu_seconds", USE(cpu_seconds) },
    { "user_seconds", USE(user_seconds) },
    { "system_seconds", USE(system_seconds) },
    { "memory_bytes", USE(memory_bytes) },
    { "memory_peak_bytes", USE(memory_peak_bytes) },
    { "read_bytes", USE(read_bytes) },
    { "written_bytes", USE(written_bytes) },
    { "processes", USE(processes) },
    { "threads", USE(threads) },
    { "files", USE(files) },
};

static const struct use_word gpu_words[] = {
    { "utilization", GPU(utilization) },
    { "memory_used_bytes", GPU(memory_bytes) },
    { "power_watts", GPU(power_watts) },
};

struct samples {
    struct str cluster;
    struct arena *arena;
    struct tick_sample *sample;
    size_t n, room;
    struct buf name; /* of the series, as far as it is said */
};

static double number_at(const void *of, size_t offset)
{
    return *(const double *)(const void *)((const char *)of + offset);
}

/* What the name says so far, and this. */
static void add(struct samples *to, const char *word, double value)
{
    size_t before = to->name.n;

    buf_text(&to->name, word);
    to->sample = heap_grow(to->sample, to->n, &to->room, sizeof(*to->sample));
    to->sample[to->n++] =
        (struct tick_sample){ .name = arena_str(to->arena, buf_str(&to->name)), .value = value };
    to->name.n = before;
}

static void add_gpus(struct samples *to, const struct sim_use *use,
                     const struct gpu_indexes *indexes)
{
    size_t before = to->name.n;
    unsigned index = 0;

    for (size_t i = 0; i < use->n_gpus && gpu_indexes_next(indexes, &index); i++, index++) {
        buf_printf(&to->name, "gpu/%u/", index);
        for (size_t k = 0; k < COUNT(gpu_words); k++)
            add(to, gpu_words[k].word, number_at(&use->gpu[i], gpu_words[k].offset));
        add(to, "memory_bytes", gpu_memory_bytes);
        to->name.n = before;
    }
}

/* Of the section's GPUs, those of this job on this node: they stand in the order of the jobs. */
static struct gpu_indexes gpus_of(const struct section *jobs, const struct job *job,
                                  struct str node, size_t *next)
{
    struct gpu_indexes indexes = { 0 };

    while (*next < jobs->jobs.n_gpus && jobs->jobs.gpus[*next].job_id != job->id)
        ++*next;
    for (size_t i = *next; i < jobs->jobs.n_gpus && jobs->jobs.gpus[i].job_id == job->id; i++)
        if (str_eq(section_text(jobs, jobs->jobs.gpus[i].node), node))
            gpu_indexes_add(&indexes, section_text(jobs, jobs->jobs.gpus[i].gpus));
    return indexes;
}

static void add_node(struct samples *to, const struct job *job, struct str node,
                     const struct sim_use *use)
{
    buf_reset(&to->name);
    buf_printf(&to->name, "job/%.*s/%u/%.*s/", STR_ARG(to->cluster), job->id, STR_ARG(node));
    for (size_t i = 0; i < COUNT(use_words); i++)
        add(to, use_words[i].word, number_at(use, use_words[i].offset));
    add(to, "cpus_allocated", (double)job->cpus / job->node_count);
    add(to, "memory_allocated_bytes", (double)job->memory_bytes / job->node_count);
}

static bool has_nodes(const struct section *jobs, const struct job *job, struct arena *arena,
                      struct hostlist *ret)
{
    return job->node_count && job->nodes &&
           hostlist_expand(section_text(jobs, job->nodes), arena, NODES_MAX, ret, NULL) == 0;
}

void up_demo_samples(const struct sim *sim, struct str cluster, const struct section *jobs,
                     int64_t time, struct arena *arena, struct tick_sample **ret, size_t *ret_n)
{
    struct samples samples = { .cluster = cluster, .arena = arena };
    size_t next_gpus = 0;

    buf_init(&samples.name, TICKS_NAME_MAX);
    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct job *job = &jobs->jobs.job[i];
        struct hostlist nodes;

        if (job->state.base != JOB_RUNNING || !has_nodes(jobs, job, arena, &nodes))
            continue;
        for (size_t k = 0; k < nodes.n; k++) {
            struct sim_use use;
            struct gpu_indexes gpus = { 0 };

            sim_use(sim, job, section_text(jobs, job->tres), k, time, &use);
            add_node(&samples, job, nodes.hosts[k], &use);
            if (use.n_gpus)
                gpus = gpus_of(jobs, job, nodes.hosts[k], &next_gpus);
            add_gpus(&samples, &use, &gpus);
        }
    }
    buf_free(&samples.name);
    arena_adopt(arena, samples.sample);
    *ret = samples.sample;
    *ret_n = samples.n;
}

/* Added up over its nodes. */
static void put_use(const struct sim *sim, const struct section *jobs, const struct job *job,
                    int64_t time, struct arena *arena, struct job_record *record)
{
    struct hostlist nodes;

    if (!has_nodes(jobs, job, arena, &nodes))
        return;
    record->cpu_seconds = record->user_seconds = record->system_seconds = 0;
    record->memory_peak_bytes = record->read_bytes = record->write_bytes = 0;
    for (size_t k = 0; k < nodes.n; k++) {
        struct sim_use use;

        sim_use(sim, job, section_text(jobs, job->tres), k, time, &use);
        record->cpu_seconds += use.cpu_seconds;
        record->user_seconds += use.user_seconds;
        record->system_seconds += use.system_seconds;
        record->read_bytes += (uint64_t)use.read_bytes;
        record->write_bytes += (uint64_t)use.written_bytes;
        if ((uint64_t)use.memory_peak_bytes > record->memory_peak_bytes)
            record->memory_peak_bytes = (uint64_t)use.memory_peak_bytes;
    }
}

void up_demo_ended(const struct sim *sim, const struct section *jobs, int64_t time,
                   struct arena *arena, struct job_record **ret, size_t *ret_n)
{
    struct job_record *records = ARENA_ARRAY(arena, struct job_record, jobs->jobs.n);
    size_t n = 0;

    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct job *job = &jobs->jobs.job[i];
        struct seen_job *seen;

        if (!seen_is_run(job) || !job_ended(job))
            continue;
        seen = ARENA_NEW(arena, struct seen_job);
        seen_job(jobs, job, time, seen);
        records[n] = seen->record;
        put_use(sim, jobs, job, time, arena, &records[n++]);
    }
    *ret = records;
    *ret_n = n;
}
