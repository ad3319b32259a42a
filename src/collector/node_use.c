/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collector/node_use.h"

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

void node_use_gpus(const struct node *node, const struct node_gpu *gpu, uint64_t ret[NODE_USES])
{
    ret[USE_ALLOCATED] = gpu->allocated;
    share_out(node, node_gpu_free(gpu), ret);
}

struct str node_reservation(const struct section *section, const struct node *node)
{
    if (node->reservation)
        return section_text(section, node->reservation);
    return node->state.flags & NODE_RESERVED ? STR("unknown") : STR("None");
}
