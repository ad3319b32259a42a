/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the GRES of one node by name and type. */
#include "collector/node_gres.h"

size_t node_gres_types(struct gres_reader *reader)
{
    const struct nodes *nodes = &reader->section->nodes;

    for (size_t i = 0; i < nodes->n; i++) {
        gres_read(reader, nodes->node[i].gres);
        gres_read(reader, nodes->node[i].gres_used);
    }
    return reader->n_types;
}

static struct node_gres_item *find(struct node_gres *gres, uint32_t type)
{
    for (size_t i = 0; i < gres->n; i++)
        if (gres->item[i].type == type)
            return &gres->item[i];
    return NULL;
}

/* The only one of that name, or the one of them that has no type. */
static struct node_gres_item *find_name(const struct gres_reader *reader, struct node_gres *gres,
                                        uint32_t type)
{
    struct node_gres_item *only = NULL;
    size_t n = 0;

    for (size_t i = 0; i < gres->n; i++) {
        if (!str_eq(gres_name(reader, gres->item[i].type), gres_name(reader, type)))
            continue;
        only = &gres->item[i];
        n++;
        if (!gres_type_name(reader, only->type).n)
            return only;
    }
    return n == 1 && !gres_type_name(reader, type).n ? only : NULL;
}

/* Where those in use belong: a node whose slurmd has not told the types has GRES of none, and if
 * it has one type only, a use without a type is of that. */
static struct node_gres_item *find_used(const struct gres_reader *reader, struct node_gres *gres,
                                        uint32_t type)
{
    struct node_gres_item *found = find(gres, type);

    if (!found)
        found = find_name(reader, gres, type);
    if (!found) {
        found = &gres->item[gres->n++];
        *found = (struct node_gres_item){ .type = type, .count = MODEL_UNKNOWN_U64 };
    }
    return found;
}

static void join(const struct gres_reader *reader, const struct gres_list *all,
                 const struct gres_list *used, bool is_use_known, struct node_gres *ret)
{
    ret->n = all->n;
    for (size_t i = 0; i < all->n; i++)
        ret->item[i] = (struct node_gres_item){
            .type = all->item[i].type,
            .count = all->item[i].count,
            .allocated = is_use_known ? 0 : MODEL_UNKNOWN_U64,
        };
    for (size_t i = 0; i < used->n; i++) {
        uint64_t *allocated;

        /* "gpu:0": nodes without GPUs have it too, if others have some */
        if (!used->item[i].count)
            continue;
        allocated = &find_used(reader, ret, used->item[i].type)->allocated;
        if (__builtin_add_overflow(*allocated, used->item[i].count, allocated))
            *allocated = MODEL_UNKNOWN_U64;
    }
}

void node_gres_read(struct gres_reader *reader, const struct node *node, struct node_gres *ret)
{
    join(reader, gres_read(reader, node->gres), gres_read(reader, node->gres_used),
         node->gres_used != 0, ret);
}

void node_gres_read_text(struct gres_reader *reader, struct str gres, struct str used,
                         struct node_gres *ret)
{
    join(reader, gres_read_text(reader, gres), gres_read_text(reader, used), used.n > 0, ret);
}

uint64_t node_gres_free(const struct node_gres_item *item)
{
    if (item->count == MODEL_UNKNOWN_U64 || item->allocated == MODEL_UNKNOWN_U64)
        return MODEL_UNKNOWN_U64;
    return item->count > item->allocated ? item->count - item->allocated : 0;
}
