/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts GPUs or shards by type from GRES and TRES strings. */
#include "collector/gpu.h"

#include "model/tres.h"
#include "model/units.h"

void gpu_reader_init(struct gpu_reader *reader, const struct section *section, struct str name)
{
    *reader = (struct gpu_reader){
        .section = section,
        .name = name,
        .lists = heap_alloc(symbols_count(&section->symbols) * sizeof(*reader->lists)),
    };
    symbols_init(&reader->types, &reader->arena);
}

void gpu_reader_free(struct gpu_reader *reader)
{
    symbols_free(&reader->types);
    arena_clear(&reader->arena);
    free(reader->lists);
}

static symbol intern_type(struct gpu_reader *reader, struct str type)
{
    if (units_absent(type))
        return 0;
    if (symbols_count(&reader->types) > GPU_TYPES_MAX && !map_get(&reader->types.map, type))
        type = STR("other");
    return symbols_put(&reader->types, type);
}

static struct gpu_count *find(struct gpu_list *list, symbol type)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i].type == type)
            return &list->item[i];
    list->item[list->n] = (struct gpu_count){ .type = type };
    return &list->item[list->n++];
}

static void add(struct gpu_list *list, symbol type, uint64_t count)
{
    uint64_t *sum = &find(list, type)->count;

    if (__builtin_add_overflow(*sum, count, sum))
        *sum = MODEL_UNKNOWN_U64;
}

/* Takes from the whole, which has no type, what the parts account for. */
static void subtract_parts(struct gpu_list *list)
{
    uint64_t parts = 0, left;
    struct gpu_count *whole = NULL;

    for (size_t i = 0; i < list->n; i++) {
        if (!list->item[i].type)
            whole = &list->item[i];
        else if (__builtin_add_overflow(parts, list->item[i].count, &parts))
            parts = MODEL_UNKNOWN_U64;
    }
    if (!whole || list->n == 1)
        return;
    left = whole->count > parts ? whole->count - parts : 0;
    if (left)
        whole->count = left;
    else
        *whole = list->item[--list->n];
}

static struct gpu_list *read_list(struct gpu_reader *reader, struct str text)
{
    /* the types told apart, none, and other */
    struct gpu_count items[GPU_TYPES_MAX + 2];
    struct gpu_list list = { .item = items }, *copy = ARENA_NEW(&reader->arena, struct gpu_list);
    struct gres_item item;

    for (struct str rest = text; gres_next(&rest, &item, NULL);)
        if (str_eq(item.name, reader->name))
            add(&list, intern_type(reader, item.type), item.count);
    if (str_find(text, '=') < text.n)
        subtract_parts(&list);
    copy->n = list.n;
    copy->item = ARENA_ARRAY(&reader->arena, struct gpu_count, list.n);
    if (list.n)
        memcpy(copy->item, items, list.n * sizeof(*items));
    return copy;
}

const struct gpu_list *gpu_read(struct gpu_reader *reader, symbol text)
{
    struct gpu_list **list = &reader->lists[text];

    if (!*list)
        *list = read_list(reader, section_text(reader->section, text));
    return *list;
}
