/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sacct(1) prints, turned into records of runs piece by piece: a record of a job, framed by
 * source/frame, then those of its steps, whose use is told as the job's. */
#ifndef SONDE_SOURCE_SACCT_ANSWER_H
#define SONDE_SOURCE_SACCT_ANSWER_H

#include "model/record.h"
#include "source/frame.h"

enum { SACCT_NAME_MAX = 32 };

/* What is asked for, in this order. */
struct sacct_fields {
    size_t n;
    struct sacct_field {
        char name[SACCT_NAME_MAX];
        uint8_t place;   /* in the record; past the last: it is an extra */
        bool is_anyones; /* somebody has written it: "none" and "unknown" are what they say */
        bool is_wait;    /* told of jobs that have begun */
    } field[FRAME_FIELDS_MAX];
};

/* Of what sacct --helpformat prints, all that is told of jobs and does not follow from the rest: a
 * newer Slurm's new fields too. -EBADMSG if one is missing without which nothing can be told. */
int sacct_fields_read(struct str help, struct sacct_fields *ret, struct err *err);

/* Nobody can know which field stands where. */
void sacct_fields_shuffle(struct sacct_fields *fields);
void sacct_fields_put(const struct sacct_fields *fields, struct buf *to); /* "JobID,State,…" */

struct sacct_answer_config {
    const struct sacct_fields *fields; /* must outlive it */
    int64_t as_of;
    bool only_ineligible; /* no others than jobs that never could have run */

    /* As in struct sacct_question. */
    int (*record)(void *ctx, const struct job_record *record, struct err *err);
    void *ctx;
};

struct sacct_counts {
    uint64_t records, skipped;
    char skipped_example[100];
};

struct sacct_answer;
struct sacct_answer *sacct_answer_new(const struct sacct_answer_config *config);
struct sacct_answer *sacct_answer_free(struct sacct_answer *answer); /* returns NULL */

/* With which each field ends. */
const char *sacct_answer_token(const struct sacct_answer *answer);

/* -EBADMSG when what comes cannot be what was asked for; or what `record` said. */
int sacct_answer_feed(struct sacct_answer *answer, struct str piece, struct err *err);

/* All has come: hands on the last. */
int sacct_answer_end(struct sacct_answer *answer, struct err *err);

/* Adds what was told, and what was left out. */
void sacct_answer_count(const struct sacct_answer *answer, struct sacct_counts *counts);

#endif
