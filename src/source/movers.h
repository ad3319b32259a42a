/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which job ids of a Lustre target have moved most lately: one pass over all of them, in memory
 * that has a ceiling however many there are. Movement is pages of 4 KiB and operations, and what
 * was long ago counts less and less. An id that was kept in the last look has an advantage, so that
 * series do not come and go. */
#ifndef SONDE_SOURCE_MOVERS_H
#define SONDE_SOURCE_MOVERS_H

#include "model/lustre_use.h"
#include "source/job_stats.h"

enum { MOVERS_REMEMBERED = 3 << 16 }; /* ids of all targets, in 6 MB */

struct movers;

/* `max_ids` are kept of one target; of all targets no more than have samples of `max_text_bytes`
 * (lustre_sample_bytes), whatever their ids and operations are called. `max_remembered` is three
 * quarters of a power of two; if the targets have more ids than that, some have no past. */
struct movers *movers_new(size_t max_ids, size_t max_text_bytes, size_t max_remembered);
struct movers *movers_free(struct movers *movers); /* returns NULL */

/* A look at all targets fills `to`, which must last until its end: with those that are kept, by
 * target and id, and how many were left out or merged. */
void movers_begin_look(struct movers *movers, struct lustre_use *to);
void movers_end_look(struct movers *movers);

/* What was seen of a target is forgotten unless movers_end_target comes before the next begins. A
 * target comes once in a look. */
void movers_begin_target(struct movers *movers, struct str name, bool is_mdt);
void movers_see(struct movers *movers, const struct job_stats_entry *entry);
void movers_end_target(struct movers *movers);

#endif
