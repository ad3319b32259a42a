/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the GPUs or shards of one node by type. */
#include "collector/node_gpus.h"

size_t node_gpus_types(struct gpu_reader *reader)
{
    const struct nodes *nodes = &reader->section->nodes;

    for (size_t i = 0; i < nodes->n; i++) {
        gpu_read(reader, nodes->node[i].gres);
        gpu_read(reader, nodes->node[i].gres_used);
    }
    return symbols_count(&reader->types);
}

static struct node_gpu *find(struct node_gpus *gpus, symbol type)
{
    for (size_t i = 0; i < gpus->n; i++)
        if (gpus->item[i].type == type)
            return &gpus->item[i];
    return NULL;
}

/* Where those in use belong: a node whose slurmd has not told the types has GPUs of none, and one
 * kind of GPU needs no type to be known. */
static struct node_gpu *find_used(struct node_gpus *gpus, symbol type)
{
    struct node_gpu *found = find(gpus, type);

    if (!found)
        found = find(gpus, 0);
    if (!found && !type && gpus->n == 1)
        found = gpus->item;
    if (!found) {
        found = &gpus->item[gpus->n++];
        *found = (struct node_gpu){ .type = type, .count = MODEL_UNKNOWN_U64 };
    }
    return found;
}

void node_gpus_read(struct gpu_reader *reader, const struct node *node, struct node_gpus *ret)
{
    const struct gpu_list *all = gpu_read(reader, node->gres);
    const struct gpu_list *used = gpu_read(reader, node->gres_used);

    ret->n = all->n;
    for (size_t i = 0; i < all->n; i++)
        ret->item[i] = (struct node_gpu){
            .type = all->item[i].type,
            .count = all->item[i].count,
            .allocated = node->gres_used ? 0 : MODEL_UNKNOWN_U64,
        };
    for (size_t i = 0; i < used->n; i++) {
        uint64_t *allocated;

        /* every node of a cluster that has GPUs somewhere tells "gpu:0" */
        if (!used->item[i].count)
            continue;
        allocated = &find_used(ret, used->item[i].type)->allocated;
        if (__builtin_add_overflow(*allocated, used->item[i].count, allocated))
            *allocated = MODEL_UNKNOWN_U64;
    }
}

uint64_t node_gpu_free(const struct node_gpu *gpu)
{
    if (gpu->count == MODEL_UNKNOWN_U64 || gpu->allocated == MODEL_UNKNOWN_U64)
        return MODEL_UNKNOWN_U64;
    return gpu->count > gpu->allocated ? gpu->count - gpu->allocated : 0;
}
