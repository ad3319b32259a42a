/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Continues Slurm's counters over their resets. */
#include "snapshot/counters.h"

enum {
    ENTRIES_MAX = 20000, /* of one list: message types, users */
    KEY_MAX = 256,       /* bytes that tell them apart */
};

struct counter {
    bool is_known;
    uint64_t last, total;
};

/* Which members of a struct diag count up. */
static const struct {
    size_t offset;
    bool outlives_reset; /* starts again with slurmctld only */
} members[] = {
    { offsetof(struct diag, jobs_submitted), false },
    { offsetof(struct diag, jobs_started), false },
    { offsetof(struct diag, jobs_completed), false },
    { offsetof(struct diag, jobs_canceled), false },
    { offsetof(struct diag, jobs_failed), false },
    { offsetof(struct diag, main.count), false },
    { offsetof(struct diag, main.total_usec), false },
    { offsetof(struct diag, main.total_depth), false },
    { offsetof(struct diag, backfill.count), false },
    { offsetof(struct diag, backfill.total_usec), false },
    { offsetof(struct diag, backfill.total_depth), false },
    { offsetof(struct diag, backfill.total_queue), false },
    { offsetof(struct diag, backfilled_jobs), true },
    { offsetof(struct diag, backfilled_jobs_since_reset), false },
    { offsetof(struct diag, backfilled_het_components), false },
    { offsetof(struct diag, backfill_total_depth_tried), false },
    { offsetof(struct diag, backfill_total_table), false },
};

/* One list of statistics: each entry has a name and a number, and counts up to three things. */
enum { LIST_TYPES, LIST_USERS, LIST_MAIN_EXITS, LIST_BACKFILL_EXITS, LISTS };
enum { PER_ENTRY = 3 };

struct list {
    struct map map; /* key to its place in `entries` */
    struct entry {
        struct str name;
        uint32_t id;
        struct counter counter[PER_ENTRY];
    } * entries;
    size_t room;
};

struct counters {
    struct arena arena;
    int64_t reset_time;
    struct counter member[COUNT(members)];
    struct list list[LISTS];
};

struct counters *counters_new(void)
{
    struct counters *counters = heap_alloc(sizeof(*counters));

    for (int i = 0; i < LISTS; i++)
        map_init(&counters->list[i].map, &counters->arena);
    return counters;
}

struct counters *counters_free(struct counters *counters)
{
    if (counters) {
        for (int i = 0; i < LISTS; i++) {
            map_free(&counters->list[i].map);
            free(counters->list[i].entries);
        }
        arena_clear(&counters->arena);
        free(counters);
    }
    return NULL;
}

/* What midnight resets is counted from our first look on: if it began with what Slurm has counted
 * today, every restart of sonde would look like a day's work. The rest begins with Slurm's count.
 */
static uint64_t count_on(struct counter *counter, uint64_t now, bool outlives_midnight,
                         bool has_restarted)
{
    if (now != MODEL_UNKNOWN_U64) {
        uint64_t since = has_restarted || now < counter->last ? 0 : counter->last;
        uint64_t first = outlives_midnight ? now : 0;

        counter->total += counter->is_known ? now - since : first;
        counter->last = now;
        counter->is_known = true;
    }
    return counter->is_known ? counter->total : MODEL_UNKNOWN_U64;
}

/* Several users that the directory does not know have one name: the number tells them apart.
 * NULL when there are too many to remember. */
static struct entry *entry_of(struct counters *counters, struct list *list, struct str name,
                              uint32_t id)
{
    size_t before = list->map.n, index;
    char key[KEY_MAX];
    struct str whole = { key, 0 };

    name = str_head(name, sizeof(key) - sizeof(id));
    memcpy(key, &id, sizeof(id));
    memcpy(key + sizeof(id), name.p, name.n);
    whole.n = sizeof(id) + name.n;
    if (before == ENTRIES_MAX && !map_get(&list->map, whole))
        return NULL;
    index = map_index(&list->map, whole);
    if (index == before) {
        list->entries = heap_grow(list->entries, before, &list->room, sizeof(*list->entries));
        list->entries[index] =
            (struct entry){ .name = arena_str(&counters->arena, name), .id = id };
    }
    return &list->entries[index];
}

/* Midnight resets the exits. The RPCs go on until slurmctld ends or somebody resets them, and then
 * the counts fall. */
static void restart_list(struct list *list)
{
    for (size_t i = 0; i < list->map.n; i++)
        for (size_t k = 0; k < PER_ENTRY; k++)
            list->entries[i].counter[k].last = 0;
}

static void note_rpcs(struct counters *counters, struct section *section, struct list *list,
                      const struct rpc *rpc, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct entry *entry =
            entry_of(counters, list, section_text(section, rpc[i].name), rpc[i].id);

        if (!entry)
            continue;
        count_on(&entry->counter[0], rpc[i].count, true, false);
        count_on(&entry->counter[1], rpc[i].total_usec, true, false);
        count_on(&entry->counter[2], rpc[i].dropped, true, false);
    }
}

static uint64_t total_of(const struct counter *counter)
{
    return counter->is_known ? counter->total : MODEL_UNKNOWN_U64;
}

static void tell_rpcs(struct section *section, const struct list *list, struct rpc **ret,
                      size_t *ret_n)
{
    *ret_n = list->map.n;
    *ret = ARENA_ARRAY(&section->arena, struct rpc, list->map.n);
    for (size_t i = 0; i < list->map.n; i++)
        (*ret)[i] = (struct rpc){
            .name = symbols_put(&section->symbols, list->entries[i].name),
            .id = list->entries[i].id,
            .count = total_of(&list->entries[i].counter[0]),
            .total_usec = total_of(&list->entries[i].counter[1]),
            .dropped = total_of(&list->entries[i].counter[2]),
            .queued = MODEL_UNKNOWN_U64,
            .last_cycle = MODEL_UNKNOWN_U64,
            .max_cycle = MODEL_UNKNOWN_U64,
        };
}

static void note_exits(struct counters *counters, struct section *section, struct list *list,
                       struct cycle *cycle)
{
    for (size_t i = 0; i < cycle->n_exits; i++) {
        struct entry *entry =
            entry_of(counters, list, section_text(section, cycle->exit[i].reason), 0);

        if (entry)
            count_on(&entry->counter[0], cycle->exit[i].count, false, false);
    }
    cycle->n_exits = list->map.n;
    cycle->exit = ARENA_ARRAY(&section->arena, struct cycle_exit, list->map.n);
    for (size_t i = 0; i < list->map.n; i++)
        cycle->exit[i] = (struct cycle_exit){
            .reason = symbols_put(&section->symbols, list->entries[i].name),
            .count = total_of(&list->entries[i].counter[0]),
        };
}

void counters_note(struct counters *counters, struct section *section)
{
    const struct diag *diag = &section->diag;
    bool has_restarted = diag->reset_time != counters->reset_time;
    struct diag *running = ARENA_NEW(&section->arena, struct diag);
    struct list *list = counters->list;

    *running = *diag;
    for (size_t i = 0; i < COUNT(members); i++) {
        uint64_t *value = (uint64_t *)((char *)running + members[i].offset);

        *value = count_on(&counters->member[i], *value, members[i].outlives_reset,
                          has_restarted && !members[i].outlives_reset);
    }
    if (has_restarted) {
        restart_list(&list[LIST_MAIN_EXITS]);
        restart_list(&list[LIST_BACKFILL_EXITS]);
    }
    note_rpcs(counters, section, &list[LIST_TYPES], diag->rpc_by_type, diag->n_rpc_by_type);
    tell_rpcs(section, &list[LIST_TYPES], &running->rpc_by_type, &running->n_rpc_by_type);
    note_rpcs(counters, section, &list[LIST_USERS], diag->rpc_by_user, diag->n_rpc_by_user);
    tell_rpcs(section, &list[LIST_USERS], &running->rpc_by_user, &running->n_rpc_by_user);
    note_exits(counters, section, &list[LIST_MAIN_EXITS], &running->main);
    note_exits(counters, section, &list[LIST_BACKFILL_EXITS], &running->backfill);
    counters->reset_time = diag->reset_time;
    section->diag.running = running;
}
