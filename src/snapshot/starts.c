/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds jobs that have started, and counts how long they were pending. */
#include "snapshot/starts.h"

#include "base/clock.h"

enum {
    MARGIN_SECONDS = 600, /* a start may be told of that much later than another */
    PARTITIONS_MAX = 1000,
};

struct starts {
    bool has_looked;
    int64_t horizon; /* starts after it are remembered */
    uint64_t *known; /* of the last look, open addressing; 0 = free */
    size_t n_slots;  /* a power of two */
    struct arena arena;
    struct map partitions; /* name to its place in `waits` */
    struct wait *waits;
    size_t room;
};

struct starts *starts_new(void)
{
    struct starts *starts = heap_alloc(sizeof(*starts));

    map_init(&starts->partitions, &starts->arena);
    return starts;
}

struct starts *starts_free(struct starts *starts)
{
    if (starts) {
        map_free(&starts->partitions);
        arena_clear(&starts->arena);
        free(starts->known);
        free(starts->waits);
        free(starts);
    }
    return NULL;
}

/* A job that was cancelled while it waited has a start time too, but no nodes. One whose nodes have
 * yet to boot gets another start time when they are up. */
static bool has_started(const struct job *job)
{
    return job->start_time > 0 && job->state.base != JOB_PENDING &&
           !(job->state.flags & (JOB_CONFIGURING | JOB_POWER_UP_NODE)) &&
           (job->nodes || job_holds_resources(job->state));
}

/* A requeued job starts again under its old number. */
static uint64_t key_of(const struct job *job)
{
    return (uint64_t)job->id << 32 | (uint32_t)job->start_time;
}

static uint64_t *find(uint64_t *slots, size_t n_slots, uint64_t key)
{
    size_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (n_slots - 1);

    while (slots[at] && slots[at] != key)
        at = (at + 1) & (n_slots - 1);
    return &slots[at];
}

static int64_t newest_start(const struct section *section)
{
    int64_t newest = 0, latest = section->wall_ns / NS_PER_SEC + MARGIN_SECONDS;

    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        if (has_started(job) && job->start_time > newest && job->start_time <= latest)
            newest = job->start_time;
    }
    return newest;
}

static struct wait *wait_of(struct starts *starts, struct str partition)
{
    size_t before = starts->partitions.n, index;

    if (before == PARTITIONS_MAX && !map_get(&starts->partitions, partition))
        return NULL;
    index = map_index(&starts->partitions, partition);
    if (index == before) {
        starts->waits = heap_grow(starts->waits, before, &starts->room, sizeof(*starts->waits));
        starts->waits[index] = (struct wait){ 0 };
    }
    return &starts->waits[index];
}

static void count_wait(struct starts *starts, const struct section *section, const struct job *job)
{
    struct wait *wait = wait_of(starts, section_text(section, job->partition));
    double seconds = (double)wait_seconds(job->submit_time, job->eligible_time, job->start_time);

    if (!wait || seconds < 0)
        return;
    wait->buckets[wait_bucket(seconds)]++;
    wait->sum += seconds;
}

static void count_new_ones(struct starts *starts, const struct section *section)
{
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        if (has_started(job) && job->start_time > starts->horizon &&
            !*find(starts->known, starts->n_slots, key_of(job)))
            count_wait(starts, section, job);
    }
}

static bool is_recent(const struct starts *starts, const struct job *job)
{
    return has_started(job) && job->start_time > starts->horizon;
}

static void remember(struct starts *starts, const struct section *section)
{
    size_t recent = 0;

    for (size_t i = 0; i < section->jobs.n; i++)
        recent += is_recent(starts, &section->jobs.job[i]);
    free(starts->known);
    for (starts->n_slots = 64; starts->n_slots < 2 * recent; starts->n_slots *= 2)
        ;
    starts->known = heap_alloc(starts->n_slots * sizeof(*starts->known));
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        if (is_recent(starts, job))
            *find(starts->known, starts->n_slots, key_of(job)) = key_of(job);
    }
}

static void tell(const struct starts *starts, struct section *section)
{
    size_t n = starts->partitions.n;

    section->jobs.n_waits = n;
    section->jobs.wait = ARENA_ARRAY(&section->arena, struct wait, n);
    for (size_t i = 0; i < n; i++) {
        section->jobs.wait[i] = starts->waits[i];
        section->jobs.wait[i].partition =
            symbols_put(&section->symbols, starts->partitions.entries[i].key);
    }
}

void starts_note(struct starts *starts, struct section *section)
{
    int64_t horizon = newest_start(section) - MARGIN_SECONDS;

    /* Before its first start, so that this one is an increase. */
    for (size_t i = 0; i < section->jobs.n_known_partitions; i++)
        wait_of(starts, section_text(section, section->jobs.known_partition[i]));
    /* What ran before the first look started nobody knows how long ago. */
    if (starts->has_looked)
        count_new_ones(starts, section);
    starts->has_looked = true;
    if (horizon > starts->horizon)
        starts->horizon = horizon;
    remember(starts, section);
    tell(starts, section);
}
