/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes as sinfo tells them, once for every partition that has them, put together into a section
 * where each stands once. */
#ifndef SONDE_SOURCE_NODE_LIST_H
#define SONDE_SOURCE_NODE_LIST_H

#include "model/section.h"

struct node_list {
    struct section *section;
    size_t room; /* of the section's array of nodes */
    size_t partitions_room;
    struct map nodes;      /* name to index */
    struct map partitions; /* likewise */
    struct arena names;
    struct node_pair {
        uint32_t node, partition;
    } * pairs; /* node is in partition, in the order told */
    size_t n_pairs, pairs_room;
};

void node_list_init(struct node_list *list, struct section *section);
void node_list_free(struct node_list *list); /* what was told stays in the section */

/* The node of that name: told before, or new, with nothing but its name set. Valid until the next
 * one is asked for. */
struct node *node_list_node(struct node_list *list, struct str name, bool *ret_is_new);

/* The partition of that name, likewise. */
struct partition *node_list_partition(struct node_list *list, struct str name, bool *ret_is_new);

/* Says that one is in the other. */
void node_list_join(struct node_list *list, const struct node *node,
                    const struct partition *partition);

/* All have been told. */
void node_list_finish(struct node_list *list);

#endif
