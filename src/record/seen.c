/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts sections of jobs and nodes to records. */
#include "record/seen.h"

#include "model/job_times.h"

enum { LONGEST_TEXT = 1 << 20 }; /* a node's partitions, or its state */

static const struct {
    size_t of_job, of_record;
} texts[] = {
    { offsetof(struct job, user), offsetof(struct job_record, user) },
    { offsetof(struct job, account), offsetof(struct job_record, account) },
    { offsetof(struct job, qos), offsetof(struct job_record, qos) },
    { offsetof(struct job, name), offsetof(struct job_record, name) },
    { offsetof(struct job, reservation), offsetof(struct job_record, reservation) },
    { offsetof(struct job, partition), offsetof(struct job_record, partition) },
    { offsetof(struct job, reason), offsetof(struct job_record, reason) },
    { offsetof(struct job, nodes), offsetof(struct job_record, nodes) },
    { offsetof(struct job, tres), offsetof(struct job_record, tres) },
};

/* Under the names that sacct(1) has for them; what it does not have, as scontrol(1) calls it. */
static const struct {
    size_t of_job;
    struct str name;
} extras[SEEN_EXTRAS] = {
    { offsetof(struct job, licenses), STR_INIT("Licenses") },
    { offsetof(struct job, features), STR_INIT("Constraints") },
    { offsetof(struct job, alloc_node), STR_INIT("AllocNode") },
};

static symbol symbol_at(const struct job *job, size_t offset)
{
    return *(const symbol *)(const void *)((const char *)job + offset);
}

bool seen_is_run(const struct job *job)
{
    return job->id && job->submit_time > 0;
}

static void put_extras(const struct section *section, const struct job *job, struct seen_job *ret)
{
    ret->record.extra = ret->extra;
    for (size_t i = 0; i < SEEN_EXTRAS; i++) {
        symbol s = symbol_at(job, extras[i].of_job);

        if (s)
            ret->extra[ret->record.n_extra++] =
                (struct record_extra){ extras[i].name, section_text(section, s) };
    }
}

void seen_job(const struct section *section, const struct job *job, int64_t as_of,
              struct seen_job *ret)
{
    struct job_record *record = &ret->record;

    job_record_clear(record);
    record->id = job->id;
    record->submit_time = job->submit_time;
    record->origin = RECORD_SEEN;
    record->as_of = as_of;
    record->array_job_id = job->array_job_id;
    record->array_task_id = job->array_task_id;
    record->tasks = job->tasks;
    record->het_job_id = job->het_job_id;
    record->het_offset = job->het_offset;
    record->user_id = job->user_id;
    record->restarts = job->restarts;
    record->state = job->state;
    for (size_t i = 0; i < COUNT(texts); i++)
        *(struct str *)(void *)((char *)record + texts[i].of_record) =
            section_text(section, symbol_at(job, texts[i].of_job));
    record->cpus = job->cpus;
    record->node_count = job->node_count;
    record->memory_bytes = job->memory_bytes;
    record->time_limit_minutes = job->time_limit_minutes;
    record->priority = job->priority;
    record->eligible_time = job->eligible_time;
    record->start_time = job_began(job);
    record->end_time = job_ended(job);
    put_extras(section, job, ret);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t pair(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 32 | b;
}

uint64_t seen_hash(const struct section *section, const struct job *job)
{
    const uint64_t numbers[] = {
        pair(job->array_job_id, job->array_task_id),
        pair(job->tasks, job->het_job_id),
        pair(job->het_offset, job->user_id),
        pair(job->restarts, job->state.base),
        pair(job->state.flags, job->cpus),
        pair(job->node_count, job->time_limit_minutes),
        job->memory_bytes,
        (uint64_t)job->eligible_time,
        (uint64_t)job_began(job),
        (uint64_t)job_ended(job),
    };
    const struct map_entry *symbols = section->symbols.map.entries; /* each with its own */
    uint64_t of_texts = 0, hash = pair(job->id, (uint32_t)job->submit_time);

    /* Hashes need no more mixing, only a place each: a sum, no step of which waits for another. */
    for (size_t i = 0; i < COUNT(texts); i++)
        of_texts += symbols[symbol_at(job, texts[i].of_job)].hash * (2 * i + 1);
    for (size_t i = 0; i < SEEN_EXTRAS; i++)
        of_texts += symbols[symbol_at(job, extras[i].of_job)].hash * (2 * (COUNT(texts) + i) + 1);
    for (size_t i = 0; i < COUNT(numbers); i++)
        hash = mix(hash, numbers[i]);
    hash = mix(hash, of_texts);
    return hash ? hash : 1;
}

/* Whatever was written into the buffer, which is empty again. */
static struct str move_text(struct buf *text, struct arena *arena)
{
    struct str kept = arena_str(arena, buf_str(text));

    buf_reset(text);
    return kept;
}

static void put_partitions(struct buf *to, const struct section *section, const struct node *node)
{
    const struct nodes *nodes = &section->nodes;

    for (uint32_t i = 0; i < node->n_partitions; i++) {
        uint32_t partition = nodes->membership[node->first_partition + i];

        if (i)
            buf_byte(to, ',');
        buf_put(to, section_text(section, nodes->partition[partition].name));
    }
}

static struct node_record node_record(const struct section *section, const struct node *node)
{
    return (struct node_record){
        .name = section_text(section, node->name),
        .features = section_text(section, node->features),
        .gres = section_text(section, node->gres),
        .gres_used = section_text(section, node->gres_used),
        .reservation = section_text(section, node->reservation),
        .reason = section_text(section, node->reason),
        .reason_user = section_text(section, node->reason_user),
        .version = section_text(section, node->version),
        .reason_time = node->reason_time,
        .cpus = node->cpus,
        .cpus_alloc = node->cpus_alloc,
        .cpus_idle = node->cpus_idle,
        .cpus_other = node->cpus_other,
        .cpu_load = node->cpu_load,
        .memory_bytes = node->memory_bytes,
        .memory_alloc_bytes = node->memory_alloc_bytes,
        .memory_free_bytes = node->memory_free_bytes,
    };
}

struct node_record *seen_nodes(const struct section *section, struct arena *arena)
{
    const struct nodes *nodes = &section->nodes;
    struct node_record *records = ARENA_ARRAY(arena, struct node_record, nodes->n);
    struct buf text;

    buf_init(&text, LONGEST_TEXT);
    for (size_t i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->node[i];

        records[i] = node_record(section, node);
        node_state_put(&text, node->state);
        records[i].state = move_text(&text, arena);
        put_partitions(&text, section, node);
        records[i].partitions = move_text(&text, arena);
    }
    buf_free(&text);
    return records;
}
