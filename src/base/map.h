/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash map from strings to pointers or counts that remembers the order of insertion, so that what
 * is printed from it is stable. Keys come from users: the hash is SipHash with a random key. */
#ifndef SONDE_BASE_MAP_H
#define SONDE_BASE_MAP_H

#include "base/arena.h"

#include <stdint.h>

struct map_entry {
    struct str key;
    void *value;
    uint64_t hash;
};

struct map {
    struct arena *arena; /* where keys are copied to; entries live on the heap */
    struct map_entry *entries;
    size_t n, cap;
    uint32_t *slots; /* index + 1 of the entry, 0 = free */
    size_t n_slots;  /* a power of two */
};

void map_init(struct map *map, struct arena *arena);
void map_free(struct map *map);

/* A second map with the same entries, to be added to on its own. Its keys are those of the first,
 * which must outlive it. */
void map_copy(struct map *map, const struct map *of, struct arena *arena);

/* The value's place, or NULL when the key is absent. */
void **map_get(const struct map *map, struct str key);

/* The value's place, made (holding NULL) and the key copied when absent. Valid until the next put.
 */
void **map_put(struct map *map, struct str key);

/* The same, but the entry's place in map->entries, which never changes. */
size_t map_index(struct map *map, struct str key);

/* The seeded hash itself, for tables of other shapes. */
uint64_t map_hash(struct str key);

#endif
