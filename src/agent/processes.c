/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the processes of all jobs, by process id. */
#include "agent/processes.h"

#include "base/arena.h"

enum { LEAST = 64 };

static const uint32_t none = UINT32_MAX;

/* Places in one array, chained by the hash of the process id. */
struct processes {
    struct process *place; /* pid 0: free, and `next` is the next free one */
    size_t n_places, n, max;
    uint32_t *bucket;
    size_t n_buckets; /* a power of two */
    uint32_t free;
};

/* With some to spare; not many, for this is a large part of the agent's memory. */
static size_t enough_for(size_t n)
{
    return n + n / 16 + LEAST;
}

static size_t bucket_of(const struct processes *processes, pid_t pid)
{
    return (uint32_t)pid * UINT32_C(2654435761) & (processes->n_buckets - 1);
}

static void chain(struct processes *processes, uint32_t i)
{
    uint32_t *bucket = &processes->bucket[bucket_of(processes, processes->place[i].pid)];

    processes->place[i].next = *bucket;
    *bucket = i;
}

static void add_free_place(struct processes *processes, uint32_t i)
{
    processes->place[i] = (struct process){ .next = processes->free };
    processes->free = i;
}

/* Makes room for `n_places`, at least as many as are taken. */
static void resize(struct processes *processes, size_t n_places)
{
    struct process *old = processes->place;
    size_t n_old = processes->n_places;
    uint32_t next = 0;

    processes->place = heap_array(n_places, sizeof(*processes->place));
    processes->n_places = n_places;
    processes->n_buckets = LEAST;
    while (processes->n_buckets < n_places)
        processes->n_buckets *= 2;
    processes->bucket =
        heap_resize(processes->bucket, processes->n_buckets, sizeof(*processes->bucket));
    memset(processes->bucket, 0xff, processes->n_buckets * sizeof(*processes->bucket));
    processes->free = none;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].pid) {
            processes->place[next] = old[i];
            chain(processes, next++);
        }
    for (size_t i = n_places; i > next; i--)
        add_free_place(processes, (uint32_t)i - 1);
    free(old);
}

struct processes *processes_new(size_t max)
{
    struct processes *processes = heap_alloc(sizeof(*processes));

    processes->max = max;
    resize(processes, LEAST);
    return processes;
}

struct processes *processes_free(struct processes *processes)
{
    if (processes) {
        free(processes->place);
        free(processes->bucket);
        free(processes);
    }
    return NULL;
}

struct process *processes_find(const struct processes *processes, pid_t pid)
{
    uint32_t i = processes->bucket[bucket_of(processes, pid)];

    while (i != none && processes->place[i].pid != pid)
        i = processes->place[i].next;
    return i == none ? NULL : &processes->place[i];
}

struct process *processes_add(struct processes *processes, pid_t pid)
{
    struct process *process = processes_find(processes, pid);
    uint32_t i;

    if (process)
        processes_remove(processes, process);
    if (processes->n >= processes->max)
        return NULL;
    if (processes->free == none)
        resize(processes, enough_for(processes->n));
    i = processes->free;
    process = &processes->place[i];
    processes->free = process->next;
    *process = (struct process){ .pid = pid, .pidfd = -1 };
    chain(processes, i);
    processes->n++;
    return process;
}

void processes_remove(struct processes *processes, struct process *process)
{
    uint32_t i = (uint32_t)(process - processes->place);
    uint32_t *at = &processes->bucket[bucket_of(processes, process->pid)];

    while (*at != i)
        at = &processes->place[*at].next;
    *at = process->next;
    add_free_place(processes, i);
    processes->n--;
}

void processes_each(struct processes *processes, void (*visit)(void *ctx, struct process *process),
                    void *ctx)
{
    for (size_t i = 0; i < processes->n_places; i++)
        if (processes->place[i].pid)
            visit(ctx, &processes->place[i]);
}

size_t processes_count(const struct processes *processes)
{
    return processes->n;
}

void processes_trim(struct processes *processes)
{
    if (processes->n_places / 2 > enough_for(processes->n))
        resize(processes, enough_for(processes->n));
}
