/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the cli source, shared by the cli_*.c files only: answers whose fields end with a
 * token, and every class of answer that the table in cli.c names. */
#ifndef SONDE_SOURCE_CLI_H
#define SONDE_SOURCE_CLI_H

#include "source/answer.h"
#include "source/frame.h"

/* An answer in a frame begins with this. */
struct framed {
    struct answer answer;
    struct frame frame;
};

/* "JobID:TOKEN,ArrayJobID:TOKEN,…" */
void framed_put_format(const struct answer *answer, const char *const *fields, size_t n,
                       struct buf *to);
int framed_feed(struct answer *answer, struct str piece, struct err *err);
int framed_end(struct answer *answer, struct err *err);

extern const struct answer_class answer_squeue; /* KIND_JOBS */
extern const struct answer_class answer_sinfo;  /* KIND_NODES */

#endif
