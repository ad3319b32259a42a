/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sections of jobs and nodes say, as the records that are kept of it. */
#ifndef SONDE_RECORD_SEEN_H
#define SONDE_RECORD_SEEN_H

#include "model/record.h"
#include "model/section.h"

enum { SEEN_EXTRAS = 3 };

struct seen_job {
    struct job_record record; /* its texts are the section's */
    struct record_extra extra[SEEN_EXTRAS];
};

/* It names a run. Where a source tells no more of jobs than whose they are, none does. */
bool seen_is_run(const struct job *job);

/* As it was at that time. */
void seen_job(const struct section *section, const struct job *job, int64_t as_of,
              struct seen_job *ret);

/* Of all that is recorded of it but its priority, which for most jobs that wait is another every
 * few minutes; never 0. Equal in another section of this process if all of that is. */
uint64_t seen_hash(const struct section *section, const struct job *job);

/* One for each node of the section, in the arena or the section. */
struct node_record *seen_nodes(const struct section *section, struct arena *arena);

#endif
