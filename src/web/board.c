/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds, shares and frees boards. */
#include "web/board.h"

#include "base/list.h"
#include "web/queue_index.h"

#include <stdlib.h>

struct board *board_new(size_t n_clusters, int64_t now)
{
    struct board *board = heap_alloc(sizeof(*board));

    atomic_init(&board->refs, 1);
    board->now = now;
    board->cluster = ARENA_ARRAY(&board->arena, struct board_cluster, n_clusters);
    board->n_clusters = n_clusters;
    return board;
}

static void index_nodes(struct board_cluster *cluster, struct arena *arena)
{
    const struct section *nodes = cluster->section[KIND_NODES];
    uint32_t *node_of;

    if (!nodes)
        return;
    node_of = ARENA_ARRAY(arena, uint32_t, symbols_count(&nodes->symbols));
    for (size_t i = nodes->nodes.n; i-- > 0;) /* the first, should one stand twice */
        node_of[nodes->nodes.node[i].name] = (uint32_t)i + 1;
    node_of[0] = 0;
    cluster->node_of = node_of;
}

void board_sum(struct board *board)
{
    for (size_t i = 0; i < board->n_clusters; i++) {
        struct board_cluster *cluster = &board->cluster[i];

        cluster_sums_make(&cluster->sums, cluster->section[KIND_NODES], cluster->section[KIND_JOBS],
                          &board->arena);
        index_nodes(cluster, &board->arena);
    }
    board->index = queue_index_make(board, &board->arena);
}

struct board *board_ref(struct board *board)
{
    atomic_fetch_add_explicit(&board->refs, 1, memory_order_relaxed);
    return board;
}

struct board *board_unref(struct board *board)
{
    if (!board || atomic_fetch_sub_explicit(&board->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    for (size_t i = 0; i < board->n_clusters; i++)
        for (int kind = 0; kind < KINDS; kind++)
            section_unref(board->cluster[i].section[kind]);
    arena_clear(&board->arena);
    free(board);
    return NULL;
}

const struct board_cluster *board_find(const struct board *board, struct str name)
{
    if (!name.n)
        return board->n_clusters == 1 ? board->cluster : NULL;
    for (size_t i = 0; i < board->n_clusters; i++)
        if (str_eq(board->cluster[i].name, name))
            return &board->cluster[i];
    return NULL;
}

const struct node *board_node(const struct board_cluster *cluster, struct str name)
{
    const struct section *nodes = cluster->section[KIND_NODES];
    void **place = nodes && cluster->node_of ? map_get(&nodes->symbols.map, name) : NULL;
    size_t s, node;

    if (!place)
        return NULL;
    s = (size_t)(PART_OF(place, struct map_entry, value) - nodes->symbols.map.entries);
    node = cluster->node_of[s];
    return node ? &nodes->nodes.node[node - 1] : NULL;
}

bool board_asks(const struct words *clusters, struct str name)
{
    for (size_t i = 0; i < clusters->n; i++)
        if (str_eq(clusters->word[i], name))
            return true;
    return clusters->n == 0;
}

bool board_has_told(const struct board *board, const struct words *clusters, enum kind kind)
{
    bool is_asked = false;

    for (size_t i = 0; i < board->n_clusters; i++) {
        if (!board_asks(clusters, board->cluster[i].name))
            continue;
        if (board->cluster[i].section[kind])
            return true;
        is_asked = true;
    }
    return !is_asked;
}
