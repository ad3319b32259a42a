/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes, and the partitions that they are in. A node stands once, however many partitions it has.
 */
#ifndef SONDE_MODEL_NODE_H
#define SONDE_MODEL_NODE_H

#include "model/job.h"

struct node {
    symbol name;
    struct node_state state;
    uint32_t cpus, cpus_alloc, cpus_idle, cpus_other; /* sinfo's A/I/O/T; other: not usable now */
    double cpu_load;                                  /* NAN: unknown */
    uint64_t memory_bytes, memory_alloc_bytes, memory_free_bytes;
    symbol gres, gres_used; /* see model/tres */
    symbol features, reservation, version;
    symbol reason, reason_user;
    int64_t reason_time;
    uint32_t weight;
    uint32_t first_partition, n_partitions; /* a run of nodes.membership */
};

struct partition {
    symbol name;
    bool is_default, is_up;
    uint32_t time_limit_minutes; /* MODEL_UNKNOWN_U32: unlimited or unknown */
};

struct nodes {
    struct node *node;
    size_t n;
    struct partition *partition;
    size_t n_partitions;
    uint32_t *membership; /* indexes of partition, for each node in turn */
    size_t n_membership;
    bool lacks_settings; /* the source tells nothing of a partition but its name */
};

#endif
