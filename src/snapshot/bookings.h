/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In which reservation a node is. Up to Slurm 22.05 no door tells it with the nodes, and sinfo's
 * text never does; but reservations tell their nodes. */
#ifndef SONDE_SNAPSHOT_BOOKINGS_H
#define SONDE_SNAPSHOT_BOOKINGS_H

#include "model/section.h"

struct bookings;

struct bookings *bookings_new(void);
struct bookings *bookings_free(struct bookings *bookings); /* returns NULL */

/* Takes any fresh section; fills in what is known in one of nodes that does not tell. True if nodes
 * would come out otherwise now. */
bool bookings_note(struct bookings *bookings, struct section *section);

#endif
