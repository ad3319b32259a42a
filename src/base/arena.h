/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that is freed all at once: what one sweep of a source builds lives in one arena.
 * Inputs have ceilings, so an arena needs none of its own; running out of memory ends the process
 * with a sentence (docs/decisions/memory.md). */
#ifndef SONDE_BASE_ARENA_H
#define SONDE_BASE_ARENA_H

#include "base/str.h"

struct arena_block;
struct arena_adopted;

struct arena {
    struct arena_block *block; /* the one being filled, linked to the full ones */
    char *next, *end;
    struct arena_adopted *adopted;
    size_t total_bytes;
};

/* A zeroed struct arena is an empty arena. */
void arena_clear(struct arena *arena);

/* Zeroed memory, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t bytes);
struct str arena_str(struct arena *arena, struct str s); /* copied, and ended by a NUL */

/* Frees a heap block together with the arena: for an array that grew while it was filled. */
void arena_adopt(struct arena *arena, void *block);

#define ARENA_NEW(arena, type)          ((type *)arena_alloc(arena, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_array(arena, count, sizeof(type)))
void *arena_array(struct arena *arena, size_t count, size_t size);

/* The heap, for what outlives an arena. These never return NULL. */
void *heap_alloc(size_t bytes);              /* zeroed */
void *heap_array(size_t count, size_t size); /* not zeroed, nor what is added by the next */
void *heap_resize(void *old, size_t count, size_t size);
char *heap_str(struct str s);

/* Room for one more in an array of *n_room items of which n are used: as it is, or twice as large.
 */
void *heap_grow(void *array, size_t n, size_t *n_room, size_t size);

#endif
