/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which partitions and QOS there are, so that zero can be said of those without a job: partitions
 * are told with the nodes, QOS with the associations or, where there are none, by the jobs. */
#ifndef SONDE_SNAPSHOT_INVENTORY_H
#define SONDE_SNAPSHOT_INVENTORY_H

#include "model/section.h"

struct inventory;

struct inventory *inventory_new(void);
struct inventory *inventory_free(struct inventory *inventory); /* returns NULL */

/* Takes any fresh section; fills in what is known in one of jobs. */
void inventory_note(struct inventory *inventory, struct section *section);

#endif
