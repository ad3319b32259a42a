/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the jobs of a cluster hold or ask for: by state, by why they wait, by partition, user and
 * account. */
#include "base/list.h"
#include "collector/gres.h"
#include "collector/reasons.h"
#include "collector/tally.h"
#include "web/sums_parts.h"

#include <math.h>
#include <stdlib.h>

/* What there is to be said of a job's resources. */
enum stake {
    HOLDS,
    WAITS,   /* for what it asks */
    NOTHING, /* it has ended */
    UNKNOWN, /* its state is hidden: it may hold all or nothing */
};

struct pile {
    struct tally_cell cell;
    struct known_sum gpus;
};

/* Piles by group, those that hold and those that wait. */
struct heap {
    struct groups groups;
    struct group_piles {
        struct pile holding, pending;
    } * piles;
    size_t n, room;
};

enum heap_of { OF_PARTITION, OF_USER, OF_ACCOUNT, HEAPS };

static const struct {
    size_t key; /* where in a struct job the symbol stands */
    groups_cut *cut;
} heap_rows[HEAPS] = {
    [OF_PARTITION] = { offsetof(struct job, partition), groups_cut_at_commas },
    [OF_USER] = { offsetof(struct job, user), NULL },
    [OF_ACCOUNT] = { offsetof(struct job, account), NULL },
};

struct table {
    struct gres_reader reader;
    struct pile *states; /* by job_state_index */
    struct reasons reasons;
    struct pile *by_reason; /* by group of the reasons */
    size_t n_reasons, reason_room;
    struct heap heaps[HEAPS];
};

static enum stake stake_of(const struct job *job)
{
    if (job_holds_resources(job->state))
        return HOLDS;
    if (job_requests_resources(job->state))
        return WAITS;
    return job->state.base == JOB_BASE_UNKNOWN ? UNKNOWN : NOTHING;
}

/* Of one of its tasks; MODEL_UNKNOWN_U64: not told. What a TRES string does not name, it has none
 * of. */
static uint64_t gpus_of(struct gres_reader *reader, symbol tres)
{
    const struct gres_list *list = gres_read(reader, tres);
    uint64_t sum = 0;

    if (!tres)
        return MODEL_UNKNOWN_U64;
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i].count == MODEL_UNKNOWN_U64 ||
            __builtin_add_overflow(sum, list->item[i].count, &sum))
            return MODEL_UNKNOWN_U64;
    return sum;
}

static void add_gpus(struct known_sum *sum, uint64_t gpus, uint32_t tasks)
{
    if (gpus != MODEL_UNKNOWN_U64 && __builtin_mul_overflow(gpus, tasks, &gpus))
        sum->is_over = true;
    else
        known_sum_add(sum, gpus);
}

static void add_to(struct pile *pile, const struct job *job, enum stake stake, uint64_t gpus)
{
    tally_add(&pile->cell, job);
    if (stake == HOLDS || stake == WAITS)
        add_gpus(&pile->gpus, gpus, job->tasks);
    if (stake == NOTHING) {
        known_sum_add(&pile->cell.cpus, 0);
        known_sum_add(&pile->cell.memory_bytes, 0);
        known_sum_add(&pile->gpus, 0);
    }
}

static struct group_piles *piles_of(struct heap *heap, uint32_t group)
{
    while (heap->n <= group) {
        heap->piles = heap_grow(heap->piles, heap->n, &heap->room, sizeof(*heap->piles));
        heap->piles[heap->n++] = (struct group_piles){ 0 };
    }
    return &heap->piles[group];
}

static void add_to_heap(struct heap *heap, symbol key, const struct job *job, enum stake stake,
                        uint64_t gpus)
{
    struct group_list list = groups_of(&heap->groups, key);

    for (size_t i = 0; i < list.n; i++) {
        struct group_piles *piles = piles_of(heap, list.group[i]);

        add_to(stake == HOLDS ? &piles->holding : &piles->pending, job, stake, gpus);
    }
}

static void add_reason(struct table *table, const struct job *job, uint64_t gpus)
{
    uint32_t group = groups_first(&table->reasons.groups, job->reason);

    while (table->n_reasons <= group) {
        table->by_reason = heap_grow(table->by_reason, table->n_reasons, &table->reason_room,
                                     sizeof(*table->by_reason));
        table->by_reason[table->n_reasons++] = (struct pile){ 0 };
    }
    add_to(&table->by_reason[group], job, WAITS, gpus);
}

static void add_job(struct table *table, const struct job *job)
{
    uint64_t gpus = gpus_of(&table->reader, job->tres);
    enum stake stake = stake_of(job);
    bool is_pending = reasons_is_pending(job);

    add_to(&table->states[job_state_index(job->state)], job, stake, gpus);
    if (is_pending)
        add_reason(table, job, gpus);
    for (size_t i = 0; i < HEAPS && (stake == HOLDS || is_pending); i++) {
        symbol key;

        memcpy(&key, (const char *)job + heap_rows[i].key, sizeof(key));
        add_to_heap(&table->heaps[i], key, job, stake, gpus);
    }
}

static struct sums_jobs jobs_of(const struct pile *pile)
{
    return (struct sums_jobs){
        .jobs = (double)pile->cell.jobs,
        .cpus = sums_known(&pile->cell.cpus, pile->cell.jobs),
        .gpus = sums_known(&pile->gpus, pile->cell.jobs),
        .memory_bytes = sums_known(&pile->cell.memory_bytes, pile->cell.jobs),
    };
}

static int most_jobs_first(const void *a, const void *b)
{
    const struct sums_by_word *x = a, *y = b;

    if (x->jobs.jobs != y->jobs.jobs)
        return x->jobs.jobs > y->jobs.jobs ? -1 : 1;
    return top_by_name(x->word, y->word);
}

static void give_states(const struct table *table, struct cluster_sums *sums, struct arena *arena)
{
    sums->job_state = ARENA_ARRAY(arena, struct sums_by_word, n_job_state_words);
    for (size_t i = 0; i < n_job_state_words; i++)
        if (table->states[i].cell.jobs)
            sums->job_state[sums->n_job_states++] =
                (struct sums_by_word){ job_state_words[i], jobs_of(&table->states[i]) };
    qsort(sums->job_state, sums->n_job_states, sizeof(*sums->job_state), most_jobs_first);
}

static void give_reasons(const struct table *table, struct cluster_sums *sums, struct arena *arena)
{
    sums->reason = ARENA_ARRAY(arena, struct sums_by_word, table->n_reasons);
    for (size_t i = 0; i < table->n_reasons; i++)
        if (table->by_reason[i].cell.jobs)
            sums->reason[sums->n_reasons++] =
                (struct sums_by_word){ arena_str(arena, groups_name(&table->reasons.groups, i)),
                                       jobs_of(&table->by_reason[i]) };
    qsort(sums->reason, sums->n_reasons, sizeof(*sums->reason), most_jobs_first);
}

static double known_or_0(double amount)
{
    return isnan(amount) ? 0 : amount;
}

static int most_held_first(const void *a, const void *b)
{
    const struct sums_group *x = a, *y = b;
    double more = known_or_0(y->holding.cpus) - known_or_0(x->holding.cpus);

    if (more == 0)
        more = known_or_0(y->pending.cpus) - known_or_0(x->pending.cpus);
    return more != 0 ? (more > 0) - (more < 0) : top_by_name(x->name, y->name);
}

/* Whose name nobody told is nobody to be shown. */
static void give_groups(const struct heap *heap, struct sums_group **ret, size_t *ret_n,
                        struct arena *arena)
{
    struct sums_group *groups = ARENA_ARRAY(arena, struct sums_group, heap->n);
    size_t n = 0;

    for (size_t i = 0; i < heap->n; i++) {
        struct str name = groups_name(&heap->groups, i);

        if (name.n && (heap->piles[i].holding.cell.jobs || heap->piles[i].pending.cell.jobs))
            groups[n++] =
                (struct sums_group){ arena_str(arena, name), jobs_of(&heap->piles[i].holding),
                                     jobs_of(&heap->piles[i].pending) };
    }
    qsort(groups, n, sizeof(*groups), most_held_first);
    *ret = groups;
    *ret_n = n;
}

/* A partition without jobs is there all the same. */
static void give_partitions(const struct heap *heap, struct cluster_sums *sums)
{
    static const struct group_piles none;

    for (size_t i = 0; i < sums->n_partitions; i++) {
        struct sums_group *jobs = &sums->partition[i].jobs;
        void **place = map_get(&heap->groups.names, jobs->name);
        const struct map_entry *entry = place ? PART_OF(place, struct map_entry, value) : NULL;
        size_t group = entry ? (size_t)(entry - heap->groups.names.entries) : heap->n;
        const struct group_piles *piles = group < heap->n ? &heap->piles[group] : &none;

        jobs->holding = jobs_of(&piles->holding);
        jobs->pending = jobs_of(&piles->pending);
    }
}

static void table_init(struct table *table, const struct section *jobs)
{
    *table = (struct table){ .states = heap_alloc(n_job_state_words * sizeof(*table->states)) };
    gres_reader_init(&table->reader, jobs, STR("gpu"));
    reasons_init(&table->reasons, jobs);
    for (size_t i = 0; i < HEAPS; i++)
        groups_init(&table->heaps[i].groups, jobs, heap_rows[i].cut);
}

static void table_free(struct table *table)
{
    for (size_t i = 0; i < HEAPS; i++) {
        groups_free(&table->heaps[i].groups);
        free(table->heaps[i].piles);
    }
    reasons_free(&table->reasons);
    gres_reader_free(&table->reader);
    free(table->by_reason);
    free(table->states);
}

void sums_add_jobs(struct cluster_sums *sums, const struct section *jobs, struct arena *arena)
{
    struct table table;

    table_init(&table, jobs);
    for (size_t i = 0; i < jobs->jobs.n; i++)
        add_job(&table, &jobs->jobs.job[i]);
    give_states(&table, sums, arena);
    give_reasons(&table, sums, arena);
    give_partitions(&table.heaps[OF_PARTITION], sums);
    give_groups(&table.heaps[OF_USER], &sums->user, &sums->n_users, arena);
    give_groups(&table.heaps[OF_ACCOUNT], &sums->account, &sums->n_accounts, arena);
    table_free(&table);
}
