/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins sinfo's lines, one for each partition of a node, into nodes. */
#include "source/node_list.h"

void node_list_init(struct node_list *list, struct section *section)
{
    *list = (struct node_list){ .section = section };
    map_init(&list->nodes, &list->names);
    map_init(&list->partitions, &list->names);
}

void node_list_free(struct node_list *list)
{
    arena_adopt(&list->section->arena, list->section->nodes.node);
    arena_adopt(&list->section->arena, list->section->nodes.partition);
    map_free(&list->nodes);
    map_free(&list->partitions);
    arena_clear(&list->names);
    free(list->pairs);
}

struct node *node_list_node(struct node_list *list, struct str name, bool *ret_is_new)
{
    struct nodes *nodes = &list->section->nodes;
    size_t index = map_index(&list->nodes, name);

    *ret_is_new = index == nodes->n;
    if (*ret_is_new) {
        nodes->node =
            section_grow(list->section, nodes->node, nodes->n, &list->room, sizeof(*nodes->node));
        nodes->node[nodes->n++] =
            (struct node){ .name = symbols_put(&list->section->symbols, name) };
    }
    return &nodes->node[index];
}

struct partition *node_list_partition(struct node_list *list, struct str name, bool *ret_is_new)
{
    struct nodes *nodes = &list->section->nodes;
    size_t index = map_index(&list->partitions, name);

    *ret_is_new = index == nodes->n_partitions;
    if (*ret_is_new) {
        nodes->partition = section_grow(list->section, nodes->partition, nodes->n_partitions,
                                        &list->partitions_room, sizeof(*nodes->partition));
        nodes->partition[nodes->n_partitions++] =
            (struct partition){ .name = symbols_put(&list->section->symbols, name) };
    }
    return &nodes->partition[index];
}

void node_list_join(struct node_list *list, const struct node *node,
                    const struct partition *partition)
{
    const struct nodes *nodes = &list->section->nodes;

    list->pairs = section_grow(list->section, list->pairs, list->n_pairs, &list->pairs_room,
                               sizeof(*list->pairs));
    list->pairs[list->n_pairs++] = (struct node_pair){ (uint32_t)(node - nodes->node),
                                                       (uint32_t)(partition - nodes->partition) };
}

/* What was told twice counts once. */
static void leave_out_repeats(struct nodes *nodes)
{
    uint32_t *seen = heap_alloc(nodes->n_partitions * sizeof(*seen)); /* last node in each, + 1 */

    for (size_t i = 0; i < nodes->n; i++) {
        struct node *node = &nodes->node[i];
        uint32_t *run = &nodes->membership[node->first_partition], kept = 0;

        for (uint32_t k = 0; k < node->n_partitions; k++) {
            if (seen[run[k]] == i + 1)
                continue;
            seen[run[k]] = (uint32_t)i + 1;
            run[kept++] = run[k];
        }
        node->n_partitions = kept;
    }
    free(seen);
}

/* Turns the pairs into a run of partitions for each node (a counting sort). */
void node_list_finish(struct node_list *list)
{
    struct nodes *nodes = &list->section->nodes;
    uint32_t next = 0;

    nodes->membership = ARENA_ARRAY(&list->section->arena, uint32_t, list->n_pairs);
    nodes->n_membership = list->n_pairs;
    for (size_t i = 0; i < list->n_pairs; i++)
        nodes->node[list->pairs[i].node].n_partitions++;
    for (size_t i = 0; i < nodes->n; i++) {
        nodes->node[i].first_partition = next;
        next += nodes->node[i].n_partitions;
        nodes->node[i].n_partitions = 0;
    }
    for (size_t i = 0; i < list->n_pairs; i++) {
        struct node *node = &nodes->node[list->pairs[i].node];

        nodes->membership[node->first_partition + node->n_partitions++] = list->pairs[i].partition;
    }
    leave_out_repeats(nodes);
    section_set_node_releases(list->section);
}
