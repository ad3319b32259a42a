/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Remembers the user and account of jobs, also for a while after their end. */
#include "source/owners.h"

enum { FEWEST_SLOTS = 64 };

struct entry {
    uint32_t job_id;
    uint32_t account, user; /* indexes of texts */
    uint32_t user_id;       /* MODEL_UNKNOWN_U32: not told */
    int64_t missing_ns;     /* when Slurm first did not tell of it any more; INT64_MAX: it does */
};

/* Made anew from each section and what is kept of the table before it, so that nothing has to be
 * taken out of one. */
struct table {
    struct entry *entries;
    size_t n, room;
    uint32_t *slots; /* by job id: index + 1 of its entry, 0 = free */
    size_t n_slots;  /* a power of two */
    struct str *texts;
    size_t n_texts, text_room;
    struct arena arena; /* of the texts */
};

struct owners {
    struct table table;

    /* What was taken in last. */
    const struct job *job;
    size_t n_jobs;
    int64_t mono_ns, keep_ns;
};

/* Slurm counts ids up: neighbours stay together, where the next question will be. */
static size_t slot_of(const struct table *table, uint32_t job_id)
{
    size_t mask = table->n_slots - 1;
    size_t at = job_id & mask;

    while (table->slots[at] && table->entries[table->slots[at] - 1].job_id != job_id)
        at = (at + 1) & mask;
    return at;
}

static void grow_slots(struct table *table)
{
    free(table->slots);
    table->n_slots *= 2;
    table->slots = heap_alloc(table->n_slots * sizeof(*table->slots));
    for (size_t i = 0; i < table->n; i++)
        table->slots[slot_of(table, table->entries[i].job_id)] = (uint32_t)(i + 1);
}

/* Nothing happens if the job is there already. */
static struct entry *add_entry(struct table *table, uint32_t job_id)
{
    size_t slot;

    if (2 * (table->n + 1) > table->n_slots)
        grow_slots(table);
    slot = slot_of(table, job_id);
    if (table->slots[slot])
        return NULL;
    table->entries = heap_grow(table->entries, table->n, &table->room, sizeof(*table->entries));
    table->slots[slot] = (uint32_t)(table->n + 1);
    table->entries[table->n] = (struct entry){ .job_id = job_id };
    return &table->entries[table->n++];
}

/* The index of a text, copied when *place, which is 0 for one that has none yet, is first asked
 * for.
 */
static uint32_t text_index(struct table *table, uint32_t *place, struct str text)
{
    if (!*place) {
        table->texts =
            heap_grow(table->texts, table->n_texts, &table->text_room, sizeof(*table->texts));
        table->texts[table->n_texts++] = arena_str(&table->arena, text);
        *place = (uint32_t)table->n_texts;
    }
    return *place - 1;
}

static void take_in(struct table *table, const struct section *section)
{
    uint32_t *places = heap_alloc(symbols_count(&section->symbols) * sizeof(*places));

    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];
        struct entry *entry = job->id ? add_entry(table, job->id) : NULL;

        if (!entry)
            continue;
        entry->account =
            text_index(table, &places[job->account], section_text(section, job->account));
        entry->user = text_index(table, &places[job->user], section_text(section, job->user));
        entry->user_id = job->user_id;
        entry->missing_ns = INT64_MAX;
    }
    free(places);
}

static void keep_recent(struct table *table, const struct table *old, int64_t now_ns,
                        int64_t keep_ns)
{
    uint32_t *places = heap_alloc(old->n_texts * sizeof(*places));

    for (size_t i = 0; i < old->n; i++) {
        const struct entry *known = &old->entries[i];
        int64_t missing_ns = known->missing_ns == INT64_MAX ? now_ns : known->missing_ns;
        struct entry *entry =
            now_ns - missing_ns < keep_ns ? add_entry(table, known->job_id) : NULL;

        if (!entry)
            continue;
        entry->account = text_index(table, &places[known->account], old->texts[known->account]);
        entry->user = text_index(table, &places[known->user], old->texts[known->user]);
        entry->user_id = known->user_id;
        entry->missing_ns = missing_ns;
    }
    free(places);
}

static struct table new_table(size_t n_jobs)
{
    struct table table = { .n_slots = FEWEST_SLOTS };

    while (table.n_slots < 2 * n_jobs)
        table.n_slots *= 2;
    table.slots = heap_alloc(table.n_slots * sizeof(*table.slots));
    return table;
}

static void free_table(struct table *table)
{
    free(table->entries);
    free(table->slots);
    free(table->texts);
    arena_clear(&table->arena);
}

struct owners *owners_new(void)
{
    struct owners *owners = heap_alloc(sizeof(*owners));

    owners->table = new_table(0);
    return owners;
}

struct owners *owners_free(struct owners *owners)
{
    if (owners) {
        free_table(&owners->table);
        free(owners);
    }
    return NULL;
}

void owners_note(struct owners *owners, const struct section *jobs, int64_t keep_ns)
{
    struct table table;

    if (owners->job == jobs->jobs.job && owners->n_jobs == jobs->jobs.n &&
        owners->mono_ns == jobs->mono_ns && owners->keep_ns == keep_ns)
        return;
    table = new_table(jobs->jobs.n);
    take_in(&table, jobs);
    keep_recent(&table, &owners->table, jobs->mono_ns, keep_ns);
    free_table(&owners->table);
    *owners = (struct owners){ .table = table,
                               .job = jobs->jobs.job,
                               .n_jobs = jobs->jobs.n,
                               .mono_ns = jobs->mono_ns,
                               .keep_ns = keep_ns };
}

bool owners_find(const struct owners *owners, uint32_t job_id, struct owner *ret)
{
    const struct table *table = &owners->table;
    uint32_t found = table->slots[slot_of(table, job_id)];
    const struct entry *entry;

    if (!found)
        return false;
    entry = &table->entries[found - 1];
    *ret = (struct owner){ .number = found - 1,
                           .account = table->texts[entry->account],
                           .user = table->texts[entry->user],
                           .account_number = entry->account,
                           .user_number = entry->user,
                           .user_id = entry->user_id };
    return true;
}

size_t owners_texts(const struct owners *owners)
{
    return owners->table.n_texts;
}

size_t owners_count(const struct owners *owners)
{
    return owners->table.n;
}
