/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pages show of the present: the newest section of each kind of each cluster, and what is
 * summed up from them, once for all who look. Immutable once made, shared by counting references.
 */
#ifndef SONDE_WEB_BOARD_H
#define SONDE_WEB_BOARD_H

#include "base/err.h"
#include "model/section.h"
#include "store/query.h"
#include "web/sums.h"

struct board_cluster {
    struct str name; /* empty: nobody has said */
    bool is_simulated;
    struct section *section[KINDS]; /* NULL: not told, or withdrawn as too old */
    bool is_empty;                  /* nothing was ever read of it; trouble says so */
    struct str trouble;             /* that nothing newer is told; or empty */
    struct str trouble_in_full;     /* … and why, which may name hosts and files: for staff */
    struct cluster_sums sums;
    const uint32_t *node_of; /* by symbol of the nodes: which is called so, + 1; 0: none */
};

struct board {
    atomic_uint refs;
    struct arena arena; /* of texts and sums */
    int64_t now;        /* UTC seconds, when it was made */
    struct board_cluster *cluster;
    size_t n_clusters;
    struct queue_index *index; /* of web/queue_index.h; lives in the arena */
};

/* Clusters without anything, for whoever makes it to fill in; then board_sum, then it is never
 * changed. Sections are taken over, texts live in its arena. */
struct board *board_new(size_t n_clusters, int64_t now);
void board_sum(struct board *board);
struct board *board_ref(struct board *board);
struct board *board_unref(struct board *board); /* returns NULL */

/* NULL: there is no such cluster. An empty name is the only one, if there is but one. */
const struct board_cluster *board_find(const struct board *board, struct str name);

/* Whether a question by these names is about that cluster: by none, it is about all. */
bool board_asks(const struct words *clusters, struct str name);

/* Whether any of these has told that kind of thing: else nobody knows how much of it there is. True
 * of names that no cluster has. */
bool board_has_told(const struct board *board, const struct words *clusters, enum kind kind);

/* The node of that name, or NULL. */
const struct node *board_node(const struct board_cluster *cluster, struct str name);

/* Where boards come from: the refreshers of `sonde up` (cmd/up_board.h), or a store
 * (web/board_store.h). Called on workers, by several at once; may take until the deadline
 * (monotonic, clock_real). The same one again as long as nothing is newer. NULL with a sentence. */
struct board_source {
    struct board *(*take)(void *ctx, int64_t deadline_ns, struct err *err);
    void *ctx;
};

#endif
