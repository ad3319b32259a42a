/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers the names that jobs are added up by. */
#include "collector/groups.h"

void groups_init(struct groups *groups, const struct section *section, groups_cut *cut)
{
    *groups = (struct groups){
        .section = section,
        .cut = cut,
        .list_of = heap_alloc(symbols_count(&section->symbols) * sizeof(*groups->list_of)),
    };
    map_init(&groups->names, &groups->arena);
}

void groups_free(struct groups *groups)
{
    map_free(&groups->names);
    arena_clear(&groups->arena);
    free(groups->list_of);
    free(groups->lists);
    free(groups->last_list);
}

static void append(struct groups *groups, uint32_t number)
{
    groups->lists =
        heap_grow(groups->lists, groups->n_lists, &groups->lists_room, sizeof(*groups->lists));
    groups->lists[groups->n_lists++] = number;
}

static uint32_t group_named(struct groups *groups, struct str name)
{
    size_t n = groups->names.n, group = map_index(&groups->names, name);

    if (group == n) {
        groups->last_list =
            heap_grow(groups->last_list, n, &groups->last_list_room, sizeof(*groups->last_list));
        groups->last_list[group] = 0;
    }
    return (uint32_t)group;
}

void groups_put(struct groups *groups, struct str name)
{
    uint32_t group;

    if (groups->lists[groups->list] == GROUPS_OF_A_TEXT)
        return;
    group = group_named(groups, name);
    if (groups->last_list[group] == groups->list + 1)
        return;
    groups->last_list[group] = (uint32_t)groups->list + 1;
    append(groups, group);
    groups->lists[groups->list]++;
}

void groups_meet(struct groups *groups, symbol text)
{
    struct str whole = section_text(groups->section, text);

    groups->list = groups->n_lists;
    groups->list_of[text] = (uint32_t)groups->list + 1;
    append(groups, 0);
    if (groups->cut)
        groups->cut(groups, whole);
    else
        groups_put(groups, whole);
    if (!groups->lists[groups->list])
        groups_put(groups, STR(""));
}

void groups_cut_at_commas(struct groups *groups, struct str text)
{
    for (struct str rest = text; rest.p;) {
        struct str name = str_cut(&rest, ',');

        if (name.n)
            groups_put(groups, name);
    }
}
