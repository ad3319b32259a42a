/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates memory in chunks that are freed together. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct arena_block {
    struct arena_block *older;
    size_t bytes;
    alignas(max_align_t) char data[];
};

struct arena_adopted {
    struct arena_adopted *next;
    void *block;
};

_Noreturn static void out_of_memory(void)
{
    static const char sentence[] = "sonde: out of memory\n";

    (void)!write(STDERR_FILENO, sentence, sizeof(sentence) - 1);
    abort();
}

void *heap_alloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);

    if (!p)
        out_of_memory();
    return p;
}

void *heap_array(size_t count, size_t size)
{
    return heap_resize(NULL, count, size);
}

void *heap_resize(void *old, size_t count, size_t size)
{
    void *p = reallocarray(old, count ? count : 1, size);

    if (!p)
        out_of_memory();
    return p;
}

void *heap_grow(void *array, size_t n, size_t *n_room, size_t size)
{
    if (n < *n_room)
        return array;
    *n_room = *n_room ? *n_room * 2 : 64;
    return heap_resize(array, *n_room, size);
}

char *heap_str(struct str s)
{
    char *copy = heap_alloc(s.n + 1);

    if (s.n)
        memcpy(copy, s.p, s.n);
    return copy;
}

static void grow(struct arena *arena, size_t bytes)
{
    size_t wanted = arena->block ? arena->block->bytes * 2 : FIRST_BLOCK;
    struct arena_block *block;

    if (wanted > LARGEST_BLOCK)
        wanted = LARGEST_BLOCK;
    if (wanted < bytes)
        wanted = bytes;
    block = heap_alloc(sizeof(*block) + wanted);
    block->bytes = wanted;
    block->older = arena->block;
    arena->block = block;
    arena->next = block->data;
    arena->end = block->data + wanted;
    arena->total_bytes += wanted;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t gap = -(uintptr_t)arena->next % alignof(max_align_t);
    void *p;

    if (bytes > SIZE_MAX / 2)
        out_of_memory();
    if (!arena->block || (size_t)(arena->end - arena->next) < gap + bytes) {
        grow(arena, bytes);
        gap = 0;
    }
    p = arena->next + gap;
    arena->next += gap + bytes;
    return p;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory();
    return arena_alloc(arena, bytes);
}

struct str arena_str(struct arena *arena, struct str s)
{
    char *copy;

    /* Strings need no alignment, and a model is mostly short strings. */
    if (!arena->block || (size_t)(arena->end - arena->next) < s.n + 1)
        grow(arena, s.n + 1);
    copy = arena->next;
    arena->next += s.n + 1;
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return (struct str){ copy, s.n };
}

void arena_adopt(struct arena *arena, void *block)
{
    struct arena_adopted *adopted = ARENA_NEW(arena, struct arena_adopted);

    adopted->block = block;
    adopted->next = arena->adopted;
    arena->adopted = adopted;
}

void arena_clear(struct arena *arena)
{
    for (struct arena_adopted *adopted = arena->adopted; adopted; adopted = adopted->next)
        free(adopted->block);
    while (arena->block) {
        struct arena_block *older = arena->block->older;

        free(arena->block);
        arena->block = older;
    }
    *arena = (struct arena){ 0 };
}
