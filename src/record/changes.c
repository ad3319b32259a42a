/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds jobs that have changed since they were last recorded. */
#include "record/changes.h"

#include "record/seen.h"

enum {
    LEAST_SLOTS = 64,
    NEIGHBOURS = 16,
    SOME_HASH = 1,
    AHEAD = 12, /* jobs: of a large cluster's table, next to nothing is in a cache when needed */
};

struct run {
    uint32_t id; /* 0: the slot is free */
    uint32_t look;
    int64_t submit_time;
    uint64_t hash; /* of what was kept; 0: nothing yet */
};

/* A task of an array that has not started, which may share its id with others. */
struct waiting_task {
    int64_t submit_time;
    uint32_t id, task, job;
};

struct changes {
    uint64_t seed;
    struct run *runs; /* open addressing, by id */
    size_t n_slots;   /* a power of two */
    size_t n;         /* in slots */
    size_t n_kept;    /* of them, that have a hash */
    uint32_t look;    /* the number of the last */
    struct changed_job *found;
    size_t room;
    struct run_name *gone;
    size_t gone_room;
    size_t n_kept_seen;           /* in this look */
    struct waiting_task *waiting; /* of this look */
    size_t n_waiting, waiting_room;
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
        free(changes->gone);
        free(changes->waiting);
        free(changes);
    }
    return NULL;
}

void changes_forget(struct changes *changes)
{
    free(changes->runs);
    make_slots(changes, LEAST_SLOTS);
    changes->n_kept = 0;
}

/* Jobs with neighbouring ids mostly come one after the other: they are neighbours here, too. */
static size_t first_slot(const struct changes *changes, uint32_t id)
{
    uint64_t hash = (id / NEIGHBOURS ^ changes->seed) * UINT64_C(0x9e3779b97f4a7c15);

    return ((hash >> 32) * NEIGHBOURS + id % NEIGHBOURS) & (changes->n_slots - 1);
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

/* During a look, what has not come up yet may still do; what has gone stays until that is kept. */
static bool is_current(const struct changes *changes, const struct run *run)
{
    return run->id && (run->hash || changes->look - run->look <= 1);
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

static struct run *find_or_add(struct changes *changes, uint32_t id, int64_t submit_time)
{
    struct run *run = find(changes, id, submit_time);

    if (run->id)
        return run;
    if (2 * (changes->n + 1) > changes->n_slots) {
        rebuild(changes);
        run = find(changes, id, submit_time);
    }
    changes->n++;
    *run = (struct run){ .id = id, .submit_time = submit_time, .look = changes->look - 1 };
    return run;
}

static void set_hash(struct changes *changes, struct run *run, uint64_t hash)
{
    changes->n_kept += !run->hash;
    changes->n_kept -= !hash;
    run->hash = hash;
}

void changes_add(struct changes *changes, struct run_name name)
{
    if (name.job_id)
        set_hash(changes, find_or_add(changes, name.job_id, name.submit_time), SOME_HASH);
}

static void add_found(struct changes *changes, size_t most, struct changed_job changed,
                      struct changes_found *found)
{
    if (found->n == most) {
        found->is_all = false;
        return;
    }
    changes->found = heap_grow(changes->found, found->n, &changes->room, sizeof(*changes->found));
    changes->found[found->n++] = changed;
}

static void look_at(struct changes *changes, const struct section *section, const struct job *job,
                    size_t most, struct changed_job changed, struct changes_found *found)
{
    struct run *run = find_or_add(changes, job->id, job->submit_time);

    if (run->look == changes->look)
        return;
    run->look = changes->look;
    changes->n_kept_seen += run->hash != 0;
    changed.hash = seen_hash(section, job);
    if (run->hash == changed.hash)
        found->unchanged++;
    else
        add_found(changes, most, changed, found);
}

/* Where it runs, it has an id of its own. */
static bool is_waiting_task(const struct job *job)
{
    return job->array_job_id && job->array_task_id != MODEL_UNKNOWN_U32 && !job->nodes;
}

static void add_waiting(struct changes *changes, const struct job *job, size_t at)
{
    changes->waiting = heap_grow(changes->waiting, changes->n_waiting, &changes->waiting_room,
                                 sizeof(*changes->waiting));
    changes->waiting[changes->n_waiting++] = (struct waiting_task){
        .id = job->id,
        .submit_time = job->submit_time,
        .task = job->array_task_id,
        .job = (uint32_t)at,
    };
}

static int by_run_and_task(const void *a, const void *b)
{
    const struct waiting_task *x = a, *y = b;

    if (x->id != y->id)
        return x->id > y->id ? 1 : -1;
    if (x->submit_time != y->submit_time)
        return x->submit_time > y->submit_time ? 1 : -1;
    return (x->task > y->task) - (x->task < y->task);
}

static bool is_same_run(const struct waiting_task *a, const struct waiting_task *b)
{
    return a->id == b->id && a->submit_time == b->submit_time;
}

struct job changes_job(const struct section *jobs, const struct changed_job *changed)
{
    struct job job = jobs->jobs.job[changed->job];

    if (changed->tasks) {
        job.tasks = changed->tasks;
        job.array_task_id = MODEL_UNKNOWN_U32;
    }
    return job;
}

/* Each run once, as its first task: the order in which they are told is another at each look. */
static void look_at_waiting(struct changes *changes, const struct section *jobs, size_t most,
                            struct changes_found *found)
{
    const struct waiting_task *task = changes->waiting;

    if (changes->n_waiting)
        qsort(changes->waiting, changes->n_waiting, sizeof(*task), by_run_and_task);
    for (size_t i = 0, n; i < changes->n_waiting; i += n) {
        struct changed_job changed = { .job = task[i].job };
        uint32_t tasks = 1;
        struct job job;

        for (n = 1; i + n < changes->n_waiting && is_same_run(&task[i], &task[i + n]); n++)
            tasks += task[i + n].task != task[i + n - 1].task;
        changed.tasks = tasks > 1 ? tasks : 0;
        job = changes_job(jobs, &changed);
        look_at(changes, jobs, &job, most, changed, found);
    }
}

static void find_gone(struct changes *changes, size_t most, struct changes_found *found)
{
    size_t left = changes->n_kept - changes->n_kept_seen;

    for (size_t i = 0; i < changes->n_slots && left && found->n_gone < most; i++) {
        const struct run *run = &changes->runs[i];

        if (!run->hash || run->look == changes->look)
            continue;
        changes->gone =
            heap_grow(changes->gone, found->n_gone, &changes->gone_room, sizeof(*changes->gone));
        changes->gone[found->n_gone++] = (struct run_name){ run->id, run->submit_time };
        left--;
    }
    found->gone = changes->gone;
}

void changes_find(struct changes *changes, const struct section *jobs, size_t most,
                  struct changes_found *ret)
{
    *ret = (struct changes_found){ .is_all = true };
    changes->look++;
    changes->n_kept_seen = 0;
    changes->n_waiting = 0;
    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct job *job = &jobs->jobs.job[i];

        if (i + AHEAD < jobs->jobs.n)
            __builtin_prefetch(&changes->runs[first_slot(changes, job[AHEAD].id)], 1);
        if (!seen_is_run(job))
            ret->skipped++;
        else if (is_waiting_task(job))
            add_waiting(changes, job, i);
        else
            look_at(changes, jobs, job, most, (struct changed_job){ .job = (uint32_t)i }, ret);
    }
    look_at_waiting(changes, jobs, most, ret);
    find_gone(changes, most, ret);
    ret->job = changes->found;
}

void changes_keep(struct changes *changes, const struct section *jobs,
                  const struct changes_found *found)
{
    for (size_t i = 0; i < found->n; i++) {
        const struct job *job = &jobs->jobs.job[found->job[i].job];

        set_hash(changes, find(changes, job->id, job->submit_time), found->job[i].hash);
    }
    for (size_t i = 0; i < found->n_gone; i++)
        set_hash(changes, find(changes, found->gone[i].job_id, found->gone[i].submit_time), 0);
}

bool changes_sees(const struct changes *changes, uint32_t id)
{
    for (size_t at = first_slot(changes, id); changes->runs[at].id;
         at = (at + 1) & (changes->n_slots - 1))
        if (changes->runs[at].id == id && changes->runs[at].look == changes->look)
            return true;
    return false;
}
