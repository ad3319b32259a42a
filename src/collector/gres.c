/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts GRES by name and type from GRES and TRES strings. */
#include "collector/gres.h"

#include "model/tres.h"
#include "model/units.h"

static uint32_t add_type(struct gres_reader *reader, struct str name, struct str type)
{
    reader->types[reader->n_types] = (struct gres_type){
        arena_str(&reader->arena, name),
        arena_str(&reader->arena, type),
    };
    return (uint32_t)reader->n_types++;
}

void gres_reader_init(struct gres_reader *reader, const struct section *section, struct str name)
{
    *reader = (struct gres_reader){ .section = section, .name = name };
    if (section)
        reader->lists = heap_alloc(symbols_count(&section->symbols) * sizeof(*reader->lists));
    if (name.n)
        add_type(reader, name, STR(""));
}

void gres_reader_free(struct gres_reader *reader)
{
    arena_clear(&reader->arena);
    free(reader->lists);
}

/* n_types: there is none. */
static size_t find_type(const struct gres_reader *reader, struct str name, struct str type)
{
    size_t i = 0;

    while (i < reader->n_types &&
           !(str_eq(reader->types[i].name, name) && str_eq(reader->types[i].type, type)))
        i++;
    return i;
}

static bool has_name(const struct gres_reader *reader, struct str name)
{
    for (size_t i = 0; i < reader->n_types; i++)
        if (str_eq(reader->types[i].name, name))
            return true;
    return false;
}

/* Past the ceiling there is one more type for each name that is known, and one for other names. */
static uint32_t intern_type(struct gres_reader *reader, struct str name, struct str type)
{
    size_t most = reader->name.n ? GRES_TYPES_MAX + 1 : GRES_TYPES_MAX; /* with types[0] */
    size_t found;

    if (units_absent(type))
        type = STR("");
    found = find_type(reader, name, type);
    if (found == reader->n_types && found >= most) {
        if (!has_name(reader, name))
            name = STR("other");
        type = STR("other");
        found = find_type(reader, name, type);
    }
    return found < reader->n_types ? (uint32_t)found : add_type(reader, name, type);
}

static struct gres_count *find(struct gres_list *list, uint32_t type)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i].type == type)
            return &list->item[i];
    list->item[list->n] = (struct gres_count){ .type = type };
    return &list->item[list->n++];
}

static void add(struct gres_list *list, uint32_t type, uint64_t count)
{
    uint64_t *sum = &find(list, type)->count;

    if (__builtin_add_overflow(*sum, count, sum))
        *sum = MODEL_UNKNOWN_U64;
}

/* What the other types of that name count; *ret_any: there are some. */
static uint64_t sum_parts(const struct gres_reader *reader, const struct gres_list *list,
                          uint32_t whole, bool *ret_any)
{
    uint64_t parts = 0;

    *ret_any = false;
    for (size_t i = 0; i < list->n; i++) {
        if (list->item[i].type == whole ||
            !str_eq(gres_name(reader, list->item[i].type), gres_name(reader, whole)))
            continue;
        *ret_any = true;
        if (__builtin_add_overflow(parts, list->item[i].count, &parts))
            return MODEL_UNKNOWN_U64;
    }
    return parts;
}

/* Takes from a whole, which has no type, what its parts account for. False if nothing is left. */
static bool subtract_parts(const struct gres_reader *reader, const struct gres_list *list,
                           struct gres_count *item)
{
    bool has_parts;
    uint64_t parts;

    if (gres_type_name(reader, item->type).n)
        return true;
    parts = sum_parts(reader, list, item->type, &has_parts);
    if (has_parts && item->count <= parts)
        return false;
    item->count -= parts;
    return true;
}

const struct gres_list *gres_read_text(struct gres_reader *reader, struct str text)
{
    struct gres_count items[GRES_TYPES_ROOM];
    struct gres_list list = { .item = items }, *copy = ARENA_NEW(&reader->arena, struct gres_list);
    bool is_tres = str_find(text, '=') < text.n;
    struct gres_item item;

    for (struct str rest = text; gres_next(&rest, &item, NULL);)
        if (!reader->name.n || str_eq(item.name, reader->name))
            add(&list, intern_type(reader, item.name, item.type), item.count);
    copy->item = ARENA_ARRAY(&reader->arena, struct gres_count, list.n);
    for (size_t i = 0; i < list.n; i++) {
        copy->item[copy->n] = items[i];
        if (!is_tres || subtract_parts(reader, &list, &copy->item[copy->n]))
            copy->n++;
    }
    return copy;
}

const struct gres_list *gres_read(struct gres_reader *reader, symbol text)
{
    const struct gres_list **list = &reader->lists[text];

    if (!*list)
        *list = gres_read_text(reader, section_text(reader->section, text));
    return *list;
}
