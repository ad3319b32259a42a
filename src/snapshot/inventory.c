/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Remembers which partitions and QOS exist. */
#include "snapshot/inventory.h"

enum { NAMES_MAX = 1000 };

struct names {
    struct arena arena;
    struct map map;
};

struct inventory {
    struct names partitions, qos;
    struct names qos_of_jobs; /* never forgotten: a QOS comes and goes with its jobs */
};

static void clear(struct names *names)
{
    map_free(&names->map);
    arena_clear(&names->arena);
    map_init(&names->map, &names->arena);
}

static void add(struct names *names, struct str name)
{
    if (name.n && names->map.n < NAMES_MAX)
        map_put(&names->map, name);
}

struct inventory *inventory_new(void)
{
    struct inventory *inventory = heap_alloc(sizeof(*inventory));

    clear(&inventory->partitions);
    clear(&inventory->qos);
    clear(&inventory->qos_of_jobs);
    return inventory;
}

struct inventory *inventory_free(struct inventory *inventory)
{
    if (inventory) {
        clear(&inventory->partitions);
        clear(&inventory->qos);
        clear(&inventory->qos_of_jobs);
        free(inventory);
    }
    return NULL;
}

static void note_partitions(struct inventory *inventory, const struct section *section)
{
    clear(&inventory->partitions);
    for (size_t i = 0; i < section->nodes.n_partitions; i++)
        add(&inventory->partitions, section_text(section, section->nodes.partition[i].name));
}

static void note_qos(struct inventory *inventory, const struct section *section)
{
    clear(&inventory->qos);
    for (size_t i = 0; i < section->associations.n_qos; i++)
        add(&inventory->qos, section_text(section, section->associations.qos[i].name));
}

/* Each distinct one is looked up once. */
static void note_qos_of_jobs(struct inventory *inventory, const struct section *section)
{
    bool *seen = heap_alloc(symbols_count(&section->symbols));

    for (size_t i = 0; i < section->jobs.n; i++) {
        symbol qos = section->jobs.job[i].qos;

        if (!seen[qos])
            add(&inventory->qos_of_jobs, section_text(section, qos));
        seen[qos] = true;
    }
    free(seen);
}

static void tell(const struct names *names, struct section *section, symbol **ret, size_t *ret_n)
{
    *ret_n = names->map.n;
    *ret = ARENA_ARRAY(&section->arena, symbol, names->map.n);
    for (size_t i = 0; i < names->map.n; i++)
        (*ret)[i] = symbols_put(&section->symbols, names->map.entries[i].key);
}

static void note_jobs(struct inventory *inventory, struct section *section)
{
    struct jobs *jobs = &section->jobs;

    note_qos_of_jobs(inventory, section);
    tell(&inventory->partitions, section, &jobs->known_partition, &jobs->n_known_partitions);
    tell(inventory->qos.map.n ? &inventory->qos : &inventory->qos_of_jobs, section,
         &jobs->known_qos, &jobs->n_known_qos);
}

void inventory_note(struct inventory *inventory, struct section *section)
{
    if (section->kind == KIND_NODES)
        note_partitions(inventory, section);
    else if (section->kind == KIND_ASSOCIATIONS)
        note_qos(inventory, section);
    else if (section->kind == KIND_JOBS)
        note_jobs(inventory, section);
}
