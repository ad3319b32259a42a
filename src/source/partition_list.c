/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completes the partitions of a section from a second answer. */
#include "source/partition_list.h"

/* Its place in the list, at the end if it is new. */
static struct listed_partition *place_of(struct partition_list *list, symbol name)
{
    size_t index = map_index(&list->names, section_text(list->section, name));

    if (index == list->n) {
        list->all =
            section_grow(list->section, list->all, list->n, &list->room, sizeof(*list->all));
        list->all[list->n++] = (struct listed_partition){ .partition = { .name = name } };
    }
    return &list->all[index];
}

void partition_list_init(struct partition_list *list, struct section *section)
{
    const struct nodes *nodes = &section->nodes;

    *list = (struct partition_list){ .section = section };
    map_init(&list->names, &list->arena);
    for (size_t i = 0; i < nodes->n_partitions; i++)
        place_of(list, nodes->partition[i].name)->partition = nodes->partition[i];
}

void partition_list_free(struct partition_list *list)
{
    map_free(&list->names);
    arena_clear(&list->arena);
    free(list->all);
}

void partition_list_tell(struct partition_list *list, const struct partition *partition,
                         bool is_complete)
{
    struct listed_partition *place = place_of(list, partition->name);

    if (place->is_told)
        return;
    place->partition = *partition;
    place->is_told = true;
    list->n_told++;
    list->n_complete += is_complete;
}

/* What stood there keeps its index: nodes say by it where they are. */
void partition_list_finish(struct partition_list *list)
{
    struct nodes *nodes = &list->section->nodes;
    struct partition *partitions = ARENA_ARRAY(&list->section->arena, struct partition, list->n);

    for (size_t i = 0; i < list->n; i++)
        partitions[i] = list->all[i].partition;
    nodes->partition = partitions;
    nodes->n_partitions = list->n;
    if (list->n_complete == list->n)
        nodes->lacks_settings = false;
}
