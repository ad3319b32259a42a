/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of commands that are not ours but a site's own, whose format is found out from the first
 * bytes. Shared by the foreign_*.c files. */
#ifndef SONDE_SOURCE_FOREIGN_H
#define SONDE_SOURCE_FOREIGN_H

#include "source/answer.h"
#include "source/json_answers.h"

/* What prometheus-slurm-exporter asks squeue -r and sinfo for: objects by string formatting, so
 * that nothing in them is escaped. Newer ones ask sinfo for padded columns, in the same order. */
#define FOREIGN_SQUEUE                                                                             \
    "{\"a\": \"%a\", \"id\": %A, \"end_time\": \"%e\", \"u\": \"%u\", \"state\": \"%T\", "         \
    "\"p\": \"%P\", \"cpu\": %C, \"mem\": \"%m\", \"array_id\": \"%K\", \"r\": \"%R\"}"
#define FOREIGN_SINFO                                                                              \
    "{\"s\": \"%T\", \"mem\": %m, \"n\": \"%n\", \"l\": \"%O\", \"p\": \"%R\", \"fmem\": \"%e\", " \
    "\"cstate\": \"%C\", \"w\": %w}"

/* An answer in one of two formats: what has come is held until it is known which, and goes to an
 * answer of that class from then on. In lines (struct lined of cli.h) the last newline may be
 * missing: some record their answers by hand. */
struct foreign {
    struct answer answer;
    const struct answer_class *lines, *document;
    struct buf head;
    struct answer *inner;
};

void foreign_begin(struct answer *answer, const struct answer_class *lines,
                   const struct answer_class *document);
int foreign_feed(struct answer *answer, struct str piece, struct err *err);
int foreign_end(struct answer *answer, struct err *err);
void foreign_free(struct answer *answer);

/* A class of such answers. */
#define FOREIGN_CLASS(begin_function)                                                              \
    {                                                                                              \
        .size = sizeof(struct foreign), .begin = begin_function, .feed = foreign_feed,             \
        .end = foreign_end, .free = foreign_free                                                   \
    }

#endif
