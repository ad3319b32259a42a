/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a command said, turned into a section piece by piece. Each format of each kind is one
 * answer_class: a row of a table of cli_routes.c names the command and the class that reads it. */
#ifndef SONDE_SOURCE_ANSWER_H
#define SONDE_SOURCE_ANSWER_H

#include "base/buf.h"
#include "base/err.h"
#include "model/section.h"

struct answer;

struct answer_class {
    size_t size; /* of the struct that begins with a struct answer; zeroed before `begin` */
    void (*begin)(struct answer *answer);

    /* The format to ask for, where the command must be told one. May be NULL. */
    void (*put_format)(const struct answer *answer, struct buf *to);

    /* -EBADMSG when what comes cannot be what was asked for. One bad record is left out instead. */
    int (*feed)(struct answer *answer, struct str piece, struct err *err);
    int (*end)(struct answer *answer, struct err *err); /* all has come; the section is complete */

    /* Also after a failure. What stands on the heap is adopted by the section's arena. */
    void (*free)(struct answer *answer);
};

struct answer {
    const struct answer_class *class;
    struct section *section;
    size_t max_bytes;
};

/* At most `max_bytes` of memory are kept of it (section_bytes), however long it is. */
struct answer *answer_new(const struct answer_class *class, struct section *section,
                          size_t max_bytes);

/* Reads the next piece. A struct answer is the `ctx`, so that this is a sink of base/spawn. -EFBIG
 * past the ceiling, which is checked once a piece. */
int answer_feed(void *ctx, struct str piece, struct err *err);
struct answer *answer_free(struct answer *answer); /* returns NULL */

/* Counts a record that cannot be read; the first one is remembered by its beginning. */
void answer_leave_out(struct answer *answer, struct str record);

/* A field as a symbol: 0 for what Slurm prints where there is nothing. */
symbol answer_text(struct answer *answer, struct str field);

/* The same for something that somebody has named: a user may be called none, a partition unknown.
 */
symbol answer_name(struct answer *answer, struct str field);
bool answer_is_nameless(struct str field);

/* A user: his name or, where Slurm's commands call somebody whom no directory knows "nobody", or
 * nothing, his number. */
symbol answer_user(struct answer *answer, struct str name, uint32_t id);

/* Fields as numbers; what cannot be read is unknown. */
uint32_t answer_u32(struct str field, uint32_t otherwise);
uint64_t answer_u64(struct str field); /* or MODEL_UNKNOWN_U64 */
uint32_t answer_count(struct str field);

/* The tasks of an array, "1-50%2". Of a list that Slurm has cut short, "1,3,5,...", those that it
 * names, and at least one. */
bool answer_array_tasks(struct str field, uint32_t *ret_tasks);
int64_t answer_timestamp(struct str field);
uint32_t answer_limit_minutes(struct str field);
uint64_t answer_mebibytes(struct str field);
void answer_cpus(struct str field, struct node *node); /* sinfo's A/I/O/T */

#endif
