/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/changes.h"

#include "record/seen.h"

enum {
    LEAST_SLOTS = 64,
    AHEAD = 12, /* jobs: of a large cluster's table, next to nothing is in a cache when needed */
};

struct run {
    uint32_t id; /* 0: the slot is free */
    uint32_t look;
    int64_t submit_time;
    uint64_t hash; /* of what was kept; 0: nothing yet */
};

struct changes {
    uint64_t seed;
    struct run *runs; /* open addressing, by id */
    size_t n_slots;   /* a power of two */
    size_t n;         /* in slots */
    uint32_t look;    /* the number of the last */
    struct changed_job *found;
    size_t room;
};

static void make_slots(struct changes *changes, size_t n_slots)
{
    changes->runs = heap_alloc(n_slots * sizeof(*changes->runs));
    changes->n_slots = n_slots;
    changes->n = 0;
}

struct changes *changes_new(void)
{
    struct changes *changes = heap_alloc(sizeof(*changes));

    changes->seed = map_hash(STR("changes"));
    make_slots(changes, LEAST_SLOTS);
    return changes;
}

struct changes *changes_free(struct changes *changes)
{
    if (changes) {
        free(changes->runs);
        free(changes->found);
        free(changes);
    }
    return NULL;
}

void changes_forget(struct changes *changes)
{
    free(changes->runs);
    make_slots(changes, LEAST_SLOTS);
}

static size_t first_slot(const struct changes *changes, uint32_t id)
{
    uint64_t hash = (id ^ changes->seed) * UINT64_C(0x9e3779b97f4a7c15);

    return hash >> 32 & (changes->n_slots - 1);
}

/* Where that run is or would go. */
static struct run *find(const struct changes *changes, uint32_t id, int64_t submit_time)
{
    size_t at = first_slot(changes, id);

    while (changes->runs[at].id &&
           (changes->runs[at].id != id || changes->runs[at].submit_time != submit_time))
        at = (at + 1) & (changes->n_slots - 1);
    return &changes->runs[at];
}

/* During a look, what has not come up yet may still do; what the last one had not is gone. */
static bool is_current(const struct changes *changes, const struct run *run)
{
    return run->id && changes->look - run->look <= 1;
}

/* Room for more, by leaving behind what is no longer seen. */
static void rebuild(struct changes *changes)
{
    struct run *old = changes->runs;
    size_t n_old = changes->n_slots, n_current = 0, n_slots = LEAST_SLOTS;

    for (size_t i = 0; i < n_old; i++)
        n_current += is_current(changes, &old[i]);
    while (n_slots < 4 * n_current)
        n_slots *= 2;
    make_slots(changes, n_slots);
    for (size_t i = 0; i < n_old; i++) {
        if (!is_current(changes, &old[i]))
            continue;
        *find(changes, old[i].id, old[i].submit_time) = old[i];
        changes->n++;
    }
    free(old);
}

static struct run *find_or_add(struct changes *changes, const struct job *job)
{
    struct run *run = find(changes, job->id, job->submit_time);

    if (run->id)
        return run;
    if (2 * (changes->n + 1) > changes->n_slots) {
        rebuild(changes);
        run = find(changes, job->id, job->submit_time);
    }
    changes->n++;
    *run =
        (struct run){ .id = job->id, .submit_time = job->submit_time, .look = changes->look - 1 };
    return run;
}

static void add_found(struct changes *changes, size_t most, size_t job, uint64_t hash,
                      struct changes_found *found)
{
    if (found->n == most) {
        found->is_all = false;
        return;
    }
    changes->found = heap_grow(changes->found, found->n, &changes->room, sizeof(*changes->found));
    changes->found[found->n++] = (struct changed_job){ .job = (uint32_t)job, .hash = hash };
}

void changes_find(struct changes *changes, const struct section *jobs, size_t most,
                  struct changes_found *ret)
{
    *ret = (struct changes_found){ .is_all = true };
    changes->look++;
    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct job *job = &jobs->jobs.job[i];
        uint64_t hash;
        struct run *run;

        if (i + AHEAD < jobs->jobs.n)
            __builtin_prefetch(&changes->runs[first_slot(changes, job[AHEAD].id)], 1);
        if (!seen_is_run(job)) {
            ret->skipped++;
            continue;
        }
        run = find_or_add(changes, job);
        if (run->look == changes->look)
            continue;
        run->look = changes->look;
        hash = seen_hash(jobs, job);
        if (run->hash == hash)
            ret->unchanged++;
        else
            add_found(changes, most, i, hash, ret);
    }
    ret->job = changes->found;
}

void changes_keep(struct changes *changes, const struct section *jobs,
                  const struct changes_found *found)
{
    for (size_t i = 0; i < found->n; i++) {
        const struct job *job = &jobs->jobs.job[found->job[i].job];

        find(changes, job->id, job->submit_time)->hash = found->job[i].hash;
    }
}

bool changes_sees(const struct changes *changes, uint32_t id)
{
    for (size_t at = first_slot(changes, id); changes->runs[at].id;
         at = (at + 1) & (changes->n_slots - 1))
        if (changes->runs[at].id == id && changes->runs[at].look == changes->look)
            return true;
    return false;
}
