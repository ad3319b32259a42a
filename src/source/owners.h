/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose a job is, also for some time after Slurm has forgotten it: what it did in the last minute
 * still shows in rates. */
#ifndef SONDE_SOURCE_OWNERS_H
#define SONDE_SOURCE_OWNERS_H

#include "model/section.h"

struct owners;

struct owners *owners_new(void);
struct owners *owners_free(struct owners *owners); /* returns NULL */

/* Takes in a section of jobs; those that are not in it any more are forgotten `keep_ns` after the
 * first such section. A job id that has another owner now has that one. A section that was taken in
 * already is not taken in again. */
void owners_note(struct owners *owners, const struct section *jobs, int64_t keep_ns);

struct owner {
    uint32_t number;                      /* of the job, below owners_count */
    struct str account, user;             /* valid until the next owners_note, as all numbers */
    uint32_t account_number, user_number; /* of these texts, below owners_texts */
    uint32_t user_id;                     /* MODEL_UNKNOWN_U32: not told */
};
bool owners_find(const struct owners *owners, uint32_t job_id, struct owner *ret);

size_t owners_count(const struct owners *owners);
size_t owners_texts(const struct owners *owners);

#endif
