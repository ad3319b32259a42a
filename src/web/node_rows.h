/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes of a board, filtered and sorted. */
#ifndef SONDE_WEB_NODE_ROWS_H
#define SONDE_WEB_NODE_ROWS_H

#include "web/show_cluster.h"

/* What can be asked for: the arguments of the address, which are fields of the form. */
enum node_field {
    NODE_OF_STATE, /* a word of sinfo's; a base state or a flag; one of node_choices */
    NODE_OF_PARTITION,
    NODE_OF_GPU, /* a type, or several with commas; "any" */
    NODE_OF_FEATURE,
    NODE_OF_RESERVATION,
    NODE_OF_NAME, /* a host list: "n[1-8],login1" */
    NODE_OF_TEXT, /* anywhere in name or reason, whatever its case */
    NODE_FIELDS,
};

/* What is asked for in the place of a state: the nodes of which the sums of an overview are made.
 */
enum node_choice {
    NODE_FREE_CPUS,
    NODE_FREE_GPUS, /* of the type that is asked for */
    NODE_FREE_MEMORY,
    NODE_STRANDED_GPUS,
    NODE_STRANDED_CPUS,
    NODE_UNUSABLE,
    NODE_CHOICES,
};
extern const struct node_choice_row {
    struct str word;   /* in an address */
    struct str phrase; /* for a person */
} node_choices[NODE_CHOICES];

enum node_sort {
    NODE_BY_NAME, /* as Slurm lists them, if nothing else is said */
    NODE_BY_STATE,
    NODE_BY_CPUS,
    NODE_BY_LOAD,
    NODE_BY_GPUS,
    NODE_BY_MEMORY,
    NODE_BY_REASON,
    NODE_BY_SINCE,
    NODE_SORTS,
};

struct node_entry {
    const struct board_cluster *cluster;
    const struct node *node;
    double gpus, gpus_allocated; /* NAN: not told */
};

struct node_rows {
    struct node_entry *entry;
    size_t n, n_nodes; /* that match; that there are */
};

static inline struct str node_entry_text(const struct node_entry *entry, symbol text)
{
    return section_text(entry->cluster->section[KIND_NODES], text);
}

/* Those that the viewer may see of the clusters that are meant; an empty text asks for all. As
 * hostlist_expand, if the names are no list. */
int node_rows_find(struct site_call *call, const struct str wanted[NODE_FIELDS],
                   struct node_rows *ret);

/* What is unknown comes last, whichever way it is. */
void node_rows_sort(struct node_rows *rows, enum node_sort sort, bool is_descending);

bool node_rows_is_state_word(struct str word); /* of sinfo's */

#endif
