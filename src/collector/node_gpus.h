/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GPUs (or shards) of one node by type, and how many of each are allocated. */
#ifndef SONDE_COLLECTOR_NODE_GPUS_H
#define SONDE_COLLECTOR_NODE_GPUS_H

#include "collector/gpu.h"

struct node_gpus {
    struct node_gpu {
        symbol type;
        uint64_t count, allocated; /* MODEL_UNKNOWN_U64: not told */
    } item[GPU_TYPES_MAX + 2];     /* the types told apart, none, and other */
    size_t n;
};

/* Reads the strings of all nodes of the reader's section, and returns how many types they name:
 * those of gpu_reader.types, 0 included. */
size_t node_gpus_types(struct gpu_reader *reader);

void node_gpus_read(struct gpu_reader *reader, const struct node *node, struct node_gpus *ret);

/* How many of them are free. */
uint64_t node_gpu_free(const struct node_gpu *gpu);

#endif
