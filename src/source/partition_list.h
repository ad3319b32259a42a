/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The partitions of a section of nodes that has been read, completed by what a second answer tells:
 * the settings of those that have nodes, and those that have none. */
#ifndef SONDE_SOURCE_PARTITION_LIST_H
#define SONDE_SOURCE_PARTITION_LIST_H

#include "model/section.h"

struct partition_list {
    struct section *section;
    struct map names; /* to indexes */
    struct arena arena;
    struct listed_partition {
        struct partition partition;
        bool is_told;
    } * all; /* those of the section first */
    size_t n, room, n_told, n_complete;
};

void partition_list_init(struct partition_list *list, struct section *section);
void partition_list_free(struct partition_list *list);

/* The first counts where one is told twice. */
void partition_list_tell(struct partition_list *list, const struct partition *partition,
                         bool is_complete);

/* All have been told: into the section. It lacks settings no longer, unless one of its partitions
 * was not told of, which has gone in the meantime, or not completely. */
void partition_list_finish(struct partition_list *list);

#endif
