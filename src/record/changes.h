/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells which jobs of a cluster are not as they were when they were last kept. A run is remembered
 * by no more than a hash of what was kept of it, until it is no longer seen. */
#ifndef SONDE_RECORD_CHANGES_H
#define SONDE_RECORD_CHANGES_H

#include "model/section.h"
#include "store/store.h"

struct changes;

struct changes *changes_new(void);
struct changes *changes_free(struct changes *changes); /* returns NULL */

/* As if nothing had ever been kept. */
void changes_forget(struct changes *changes);

struct changed_job {
    uint32_t job;    /* of the section */
    uint32_t tasks;  /* of an array, that are told one by one and are this run; else 0 */
    bool is_refused; /* the store takes everything but this */
    uint64_t hash;
};

struct changes_found {
    struct changed_job *job; /* new or changed; valid until the next changes_find */
    size_t n;
    bool is_all;        /* there are no more than these */
    uint64_t unchanged; /* runs that are as they were */
    uint64_t skipped;   /* jobs that cannot be told from others: their submit time is not known */
    struct run_name *gone; /* runs that were kept and are no longer seen, `most` of them */
    size_t n_gone;
};

/* A run that was kept before, whatever was kept of it. */
void changes_add(struct changes *changes, struct run_name name);

/* At most `most` of those that have changed. Of a run that stands in the section twice, only the
 * first counts; but tasks of an array that wait together may be told one by one, under one id, and
 * are one run (of each of them squeue --array tells its own reason: it is that of the first). */
void changes_find(struct changes *changes, const struct section *jobs, size_t most,
                  struct changes_found *ret);

/* The job as which a run is to be kept. */
struct job changes_job(const struct section *jobs, const struct changed_job *changed);

/* What was found last in that section has been kept. Without this it will be found again. */
void changes_keep(struct changes *changes, const struct section *jobs,
                  const struct changes_found *found);

/* Whether a run of that id stands in the section that was last looked at. */
bool changes_sees(const struct changes *changes, uint32_t id);

#endif
