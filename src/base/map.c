/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-1-3: Aumasson and Bernstein, "SipHash: a fast short-input PRF". */
#include "base/map.h"

#include <pthread.h>
#include <sys/random.h>

static uint64_t hash_key[2];

static void make_hash_key(void)
{
    /* getrandom gives 16 bytes whole or, before the pool is ready, waits: it can't be cut short. */
    if (getrandom(hash_key, sizeof(hash_key), 0) != sizeof(hash_key))
        abort();
}

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

uint64_t map_hash(struct str key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t last = (uint64_t)key.n << 56;
    uint64_t v[4];
    size_t i = 0;

    pthread_once(&once, make_hash_key);
    v[0] = hash_key[0] ^ 0x736f6d6570736575;
    v[1] = hash_key[1] ^ 0x646f72616e646f6d;
    v[2] = hash_key[0] ^ 0x6c7967656e657261;
    v[3] = hash_key[1] ^ 0x7465646279746573;
    for (; i + 8 <= key.n; i += 8) {
        uint64_t word;

        memcpy(&word, key.p + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (int shift = 0; i < key.n; i++, shift += 8)
        last |= (uint64_t)(unsigned char)key.p[i] << shift;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *map, struct arena *arena)
{
    *map = (struct map){ .arena = arena };
}

void map_free(struct map *map)
{
    free(map->entries);
    free(map->slots);
    *map = (struct map){ 0 };
}

void map_copy(struct map *map, const struct map *of, struct arena *arena)
{
    *map = *of;
    map->arena = arena;
    if (!of->cap)
        return;
    map->entries = heap_array(of->cap, sizeof(*map->entries));
    map->slots = heap_array(of->n_slots, sizeof(*map->slots));
    memcpy(map->entries, of->entries, of->n * sizeof(*map->entries));
    memcpy(map->slots, of->slots, of->n_slots * sizeof(*map->slots));
}

/* The slot that holds the key or, if absent, the free one where it would go. */
static size_t find_slot(const struct map *map, struct str key, uint64_t hash)
{
    size_t mask = map->n_slots - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const struct map_entry *entry;

        if (!map->slots[i])
            return i;
        entry = &map->entries[map->slots[i] - 1];
        if (entry->hash == hash && str_eq(entry->key, key))
            return i;
    }
}

static void grow(struct map *map)
{
    map->n_slots = map->n_slots ? map->n_slots * 2 : 16;
    map->cap = map->n_slots / 2;
    map->entries = heap_resize(map->entries, map->cap, sizeof(*map->entries));
    free(map->slots);
    map->slots = heap_alloc(map->n_slots * sizeof(*map->slots));
    for (size_t i = 0; i < map->n; i++) {
        const struct map_entry *entry = &map->entries[i];

        map->slots[find_slot(map, entry->key, entry->hash)] = (uint32_t)(i + 1);
    }
}

void **map_get(const struct map *map, struct str key)
{
    uint32_t found;

    if (!map->n)
        return NULL;
    found = map->slots[find_slot(map, key, map_hash(key))];
    return found ? &map->entries[found - 1].value : NULL;
}

size_t map_index(struct map *map, struct str key)
{
    uint64_t hash = map_hash(key);
    size_t slot;

    if (map->n == map->cap)
        grow(map);
    slot = find_slot(map, key, hash);
    if (!map->slots[slot]) {
        map->entries[map->n] = (struct map_entry){ arena_str(map->arena, key), NULL, hash };
        map->slots[slot] = (uint32_t)++map->n;
    }
    return map->slots[slot] - 1;
}

void **map_put(struct map *map, struct str key)
{
    size_t index = map_index(map, key); /* which may move the entries */

    return &map->entries[index].value;
}
