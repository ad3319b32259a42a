/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates, shares and frees sections. */
#include "model/section.h"

const struct str private_data_words[PRIVATE_DATA] = {
    [PRIVATE_ACCOUNTS] = STR_INIT("accounts"),
    [PRIVATE_EVENTS] = STR_INIT("events"),
    [PRIVATE_JOBS] = STR_INIT("jobs"),
    [PRIVATE_NODES] = STR_INIT("nodes"),
    [PRIVATE_PARTITIONS] = STR_INIT("partitions"),
    [PRIVATE_RESERVATIONS] = STR_INIT("reservations"),
    [PRIVATE_USAGE] = STR_INIT("usage"),
    [PRIVATE_USERS] = STR_INIT("users"),
};

struct section *section_new(enum kind kind)
{
    struct section *section = heap_alloc(sizeof(*section));

    atomic_init(&section->refs, 1);
    section->kind = kind;
    symbols_init(&section->symbols, &section->arena);
    return section;
}

struct section *section_ref(struct section *section)
{
    atomic_fetch_add_explicit(&section->refs, 1, memory_order_relaxed);
    return section;
}

struct section *section_unref(struct section *section)
{
    if (section && atomic_fetch_sub_explicit(&section->refs, 1, memory_order_acq_rel) == 1) {
        symbols_free(&section->symbols);
        arena_clear(&section->arena);
        section_unref(section->same_as);
        free(section);
    }
    return NULL;
}

struct section *section_again(struct section *section)
{
    struct section *again = heap_alloc(sizeof(*again));

    *again = *section;
    atomic_init(&again->refs, 1);
    again->same_as = section_ref(section);
    again->arena = (struct arena){ 0 };
    again->grown_bytes = 0;
    map_copy(&again->symbols.map, &section->symbols.map, &again->arena);
    again->bytes_read = 0;
    again->skipped = 0;
    return again;
}

void *section_grow(struct section *section, void *array, size_t n, size_t *n_room, size_t size)
{
    size_t before = *n_room;

    array = heap_grow(array, n, n_room, size);
    section->grown_bytes += (*n_room - before) * size;
    return array;
}

size_t section_bytes(const struct section *section)
{
    const struct map *texts = &section->symbols.map;

    return section->arena.total_bytes + section->grown_bytes +
           texts->cap * sizeof(*texts->entries) + texts->n_slots * sizeof(*texts->slots);
}

const char *kind_name(enum kind kind)
{
    static const char *const names[KINDS] = {
        [KIND_JOBS] = "jobs",
        [KIND_NODES] = "nodes",
        [KIND_RESERVATIONS] = "reservations",
        [KIND_LICENSES] = "licenses",
        [KIND_DIAG] = "diag",
        [KIND_SHARES] = "shares",
        [KIND_ASSOCIATIONS] = "associations",
        [KIND_CONFIG] = "config",
        [KIND_TRACES] = "traces",
        [KIND_LUSTRE] = "lustre",
        [KIND_ENDED] = "ended",
        [KIND_ALLOCATIONS] = "allocations",
    };

    return names[kind];
}

void section_set_node_releases(struct section *section)
{
    for (size_t i = 0; i < section->nodes.n; i++) {
        struct node *node = &section->nodes.node[i];

        node_state_set_release(&node->state, section_text(section, node->version));
    }
}
