/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GRES of one node by name and type, and how many of each are allocated. */
#ifndef SONDE_COLLECTOR_NODE_GRES_H
#define SONDE_COLLECTOR_NODE_GRES_H

#include "collector/gres.h"

struct node_gres {
    struct node_gres_item {
        uint32_t type;             /* of gres_reader.types */
        uint64_t count, allocated; /* MODEL_UNKNOWN_U64: not told */
    } item[GRES_TYPES_ROOM];
    size_t n;
};

/* Reads the strings of all nodes of the reader's section, and returns how many types they name:
 * those of gres_reader.types. */
size_t node_gres_types(struct gres_reader *reader);

void node_gres_read(struct gres_reader *reader, const struct node *node, struct node_gres *ret);

/* Likewise from the strings themselves; without the second it is unknown what is allocated. */
void node_gres_read_text(struct gres_reader *reader, struct str gres, struct str used,
                         struct node_gres *ret);

/* How many of them are free. */
uint64_t node_gres_free(const struct node_gres_item *item);

#endif
