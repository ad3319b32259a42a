/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits a node's resources into allocated, idle and unusable. */
#include "collector/node_use.h"

enum { LEAST_JOB_MEMORY = 1 << 20 }; /* bytes; Slurm allocates whole MiB */

const struct str node_use_words[NODE_USES] = {
    [USE_ALLOCATED] = STR_INIT("allocated"),
    [USE_IDLE] = STR_INIT("idle"),
    [USE_UNUSABLE] = STR_INIT("unusable"),
};

static void share_out(const struct node *node, uint64_t n_free, uint64_t ret[NODE_USES])
{
    bool takes_jobs = node_takes_jobs(node->state);

    ret[USE_IDLE] = takes_jobs || n_free == MODEL_UNKNOWN_U64 ? n_free : 0;
    ret[USE_UNUSABLE] = !takes_jobs || n_free == MODEL_UNKNOWN_U64 ? n_free : 0;
}

/* sinfo counts as other what a node that is down or drains does not use, and as idle what one in
 * maintenance does not. */
void node_use_cpus(const struct node *node, uint64_t ret[NODE_USES])
{
    bool is_known = node->cpus != MODEL_UNKNOWN_U32 && node->cpus_alloc != MODEL_UNKNOWN_U32;
    uint32_t n_free = node->cpus > node->cpus_alloc ? node->cpus - node->cpus_alloc : 0;
    uint32_t other = node->cpus_other != MODEL_UNKNOWN_U32 ? node->cpus_other : 0;

    ret[USE_ALLOCATED] =
        node->cpus_alloc != MODEL_UNKNOWN_U32 ? node->cpus_alloc : MODEL_UNKNOWN_U64;
    share_out(node, is_known ? n_free : MODEL_UNKNOWN_U64, ret);
    if (is_known && ret[USE_IDLE]) {
        ret[USE_UNUSABLE] = other < n_free ? other : n_free;
        ret[USE_IDLE] = n_free - ret[USE_UNUSABLE];
    }
}

static uint64_t free_memory(const struct node *node)
{
    uint64_t all = node->memory_bytes, allocated = node->memory_alloc_bytes;

    if (all == MODEL_UNKNOWN_U64 || allocated == MODEL_UNKNOWN_U64)
        return MODEL_UNKNOWN_U64;
    return all > allocated ? all - allocated : 0;
}

void node_use_memory(const struct node *node, uint64_t ret[NODE_USES])
{
    ret[USE_ALLOCATED] = node->memory_alloc_bytes;
    share_out(node, free_memory(node), ret);
}

void node_use_gres(const struct node *node, const struct node_gres_item *gpu,
                   uint64_t ret[NODE_USES])
{
    ret[USE_ALLOCATED] = gpu->allocated;
    share_out(node, node_gres_free(gpu), ret);
}

bool node_has_gpus(const struct node_gres *gpus)
{
    for (size_t i = 0; i < gpus->n; i++)
        if (gpus->item[i].count)
            return true;
    return false;
}

uint64_t node_stranded_gpus(const struct node *node, uint64_t idle_gpus, uint64_t idle_cpus)
{
    bool lacks_memory = free_memory(node) < LEAST_JOB_MEMORY;

    return idle_gpus == MODEL_UNKNOWN_U64 || idle_cpus == 0 || lacks_memory ? idle_gpus : 0;
}

uint64_t node_stranded_cpus(const struct node_gres *gpus, uint64_t idle_cpus)
{
    bool is_known = true;

    for (size_t i = 0; i < gpus->n; i++) {
        uint64_t n_free = node_gres_free(&gpus->item[i]);

        if (n_free && n_free != MODEL_UNKNOWN_U64)
            return 0;
        is_known &= n_free != MODEL_UNKNOWN_U64;
    }
    return is_known ? idle_cpus : MODEL_UNKNOWN_U64;
}

struct str node_reservation(const struct section *section, const struct node *node)
{
    if (node->reservation)
        return section_text(section, node->reservation);
    return node->state.flags & NODE_RESERVED ? STR("unknown") : STR("None");
}
