/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts of a run as they come in: its record, and a place for each node, GPU and process name. */
#include "report/use_members.h"

#include "base/map.h"

#include <math.h>

const struct use_member use_members[USE_MEMBERS] = {
#define ROW(member, sum) { #member, offsetof(struct use_facts, member), sum },
#include "report/use_members.inc"
#undef ROW
};

const struct use_facts use_facts_unknown = {
#define ROW(member, sum) .member = NAN,
#include "report/use_members.inc"
#undef ROW
};

const char *const facts_teller_words[FACTS_TELLERS] = {
    [TOLD_BY_QUEUE] = "queue",
    [TOLD_BY_STORE] = "store",
    [TOLD_BY_SACCT] = "sacct",
};

void use_raise(struct use_facts *use, const struct use_facts *by)
{
    for (size_t i = 0; i < USE_MEMBERS; i++) {
        double *place = use_place(use, &use_members[i]);

        *place = fmax(*place, use_value(by, &use_members[i]));
    }
}

void job_facts_clear(struct job_facts *facts)
{
    *facts = (struct job_facts){
        .total = use_facts_unknown,
        .lustre = { NAN, NAN, NAN, NAN },
        .earlier = { 0, NAN, NAN, NAN },
        .cpu_seconds_held = NAN,
        .cpu_ratio = NAN,
        .mean_cpus = NAN,
        .memory_ratio = NAN,
        .time_ratio = NAN,
        .gpu_ratio = NAN,
        .gpu_memory_ratio = NAN,
        .cores_used = NAN,
    };
    job_record_clear(&facts->row.record);
    facts->row.gpus = facts->row.billing = MODEL_UNKNOWN_U64;
    facts->row.elapsed_seconds = facts->row.wait_seconds = -1;
    facts->row.cpu_efficiency = NAN;
}

/* An array of things that begin with their name, of one or two parts. It has room for half as many
 * as its index has slots. */
struct listing {
    char *item;
    size_t n, size, n_parts;
    struct facts_index *index;
};

static uint64_t hash_of(const struct str *parts, size_t n_parts)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < n_parts; i++)
        hash = hash * 31 + map_hash(parts[i]);
    return hash;
}

static const struct str *parts_at(const struct listing *listing, size_t i)
{
    return (const struct str *)(const void *)(listing->item + i * listing->size);
}

static bool is_named(const struct listing *listing, size_t i, const struct str *parts)
{
    for (size_t k = 0; k < listing->n_parts; k++)
        if (!str_eq(parts_at(listing, i)[k], parts[k]))
            return false;
    return true;
}

/* The slot of that name, or the free one where it belongs. */
static uint32_t *find_slot(const struct listing *listing, const struct str *parts)
{
    size_t mask = listing->index->n_slots - 1;
    size_t at = hash_of(parts, listing->n_parts) & mask;
    uint32_t *slot = listing->index->slot;

    while (slot[at] && !is_named(listing, slot[at] - 1, parts))
        at = (at + 1) & mask;
    return &slot[at];
}

static void make_room(struct listing *listing, struct arena *arena)
{
    size_t n_slots = 16;
    char *item;

    while (n_slots < 4 * (listing->n + 1))
        n_slots *= 2;
    item = arena_array(arena, n_slots / 2, listing->size);
    if (listing->n)
        memcpy(item, listing->item, listing->n * listing->size);
    listing->item = item;
    *listing->index = (struct facts_index){ ARENA_ARRAY(arena, uint32_t, n_slots), n_slots };
    for (size_t i = 0; i < listing->n; i++)
        *find_slot(listing, parts_at(listing, i)) = (uint32_t)i + 1;
}

/* Its place in the array; a new one has its name only. */
static size_t find_or_add(struct listing *listing, struct arena *arena, const struct str *parts)
{
    uint32_t *slot;
    struct str *name;

    if (listing->index->n_slots < 2 * (listing->n + 1))
        make_room(listing, arena);
    slot = find_slot(listing, parts);
    if (*slot)
        return *slot - 1;
    *slot = (uint32_t)++listing->n;
    name = (struct str *)(void *)(listing->item + (listing->n - 1) * listing->size);
    for (size_t i = 0; i < listing->n_parts; i++)
        name[i] = arena_str(arena, parts[i]);
    return listing->n - 1;
}

struct node_facts *facts_node(struct job_facts *facts, struct arena *arena, struct str name)
{
    struct listing listing = { (char *)facts->node, facts->n_nodes, sizeof(*facts->node), 1,
                               &facts->node_index };
    size_t at = find_or_add(&listing, arena, &name);

    facts->node = (struct node_facts *)(void *)listing.item;
    if (listing.n > facts->n_nodes)
        facts->node[at].use = use_facts_unknown;
    facts->n_nodes = listing.n;
    return &facts->node[at];
}

struct gpu_facts *facts_gpu(struct job_facts *facts, struct arena *arena, struct str node,
                            struct str gpu)
{
    static const struct spread unknown = { NAN, NAN, NAN };
    struct listing listing = { (char *)facts->gpu, facts->n_gpus, sizeof(*facts->gpu), 2,
                               &facts->gpu_index };
    size_t at = find_or_add(&listing, arena, (const struct str[]){ node, gpu });
    struct gpu_facts *found;

    facts->gpu = (struct gpu_facts *)(void *)listing.item;
    found = &facts->gpu[at];
    if (listing.n > facts->n_gpus) {
        found->utilization_ratio = found->memory_used_bytes = unknown;
        found->power_watts = found->temperature_celsius = unknown;
        found->memory_bytes = found->energy_joules = found->processes_peak = NAN;
    }
    facts->n_gpus = listing.n;
    return found;
}

struct process_facts *facts_process(struct job_facts *facts, struct arena *arena, struct str name)
{
    struct listing listing = { (char *)facts->process, facts->n_processes, sizeof(*facts->process),
                               1, &facts->process_index };
    size_t at = find_or_add(&listing, arena, &name);
    struct process_facts *found;

    facts->process = (struct process_facts *)(void *)listing.item;
    found = &facts->process[at];
    if (listing.n > facts->n_processes)
        found->instances_peak = found->threads_peak = found->cpu_seconds = NAN;
    facts->n_processes = listing.n;
    return found;
}

static void keep_texts(struct job_row *row, struct arena *arena)
{
    struct job_record *record = &row->record;
    struct str *const texts[] = {
        &row->key.cluster, &row->gpu_types, &record->user,           &record->account,
        &record->qos,      &record->name,   &record->reservation,    &record->partition,
        &record->reason,   &record->nodes,  &record->tres_requested, &record->tres,
    };
    struct record_extra *extra = ARENA_ARRAY(arena, struct record_extra, record->n_extra);

    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i] = arena_str(arena, *texts[i]);
    for (size_t i = 0; i < record->n_extra; i++)
        extra[i] = (struct record_extra){ arena_str(arena, record->extra[i].name),
                                          arena_str(arena, record->extra[i].value) };
    record->extra = extra;
}

static double known(uint64_t value)
{
    return value == MODEL_UNKNOWN_U64 ? NAN : (double)value;
}

void facts_take_row(struct job_facts *facts, struct arena *arena, const struct job_row *row,
                    int64_t now)
{
    struct job_record *record = &facts->row.record;
    bool has_ended = job_record_has_ended(&row->record);

    facts->row = *row;
    keep_texts(&facts->row, arena);
    facts->now = facts->origin.asked_time = now;
    facts->is_running = !has_ended && job_holds_resources(record->state);
    facts->origin.has_accounting = has_ended && record->origin == RECORD_ACCOUNTED;
    /* Slurm tells of one that runs when it would end at the latest. */
    if (facts->is_running)
        record->end_time = 0;
    facts->total.cpus = record->cpus == MODEL_UNKNOWN_U32 ? NAN : (double)record->cpus;
    facts->total.memory_bytes = known(record->memory_bytes);
    facts->total.gpus = known(row->gpus);
}
