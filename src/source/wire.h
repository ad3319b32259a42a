/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections between sonde and its helpers, which are other processes on the same machine: frames of
 * binary records that are made from model/fields. Whoever reads trusts nothing that it reads. */
#ifndef SONDE_SOURCE_WIRE_H
#define SONDE_SOURCE_WIRE_H

#include "source/answer.h"

enum {
    WIRE_VERSION = 1,
    WIRE_FRAME_MAX = 1 << 20,              /* bytes, without the head of 8 */
    WIRE_TEXT_MAX = WIRE_FRAME_MAX - 1024, /* a longer one is not told */
};

struct wire_request {
    enum kind kind;
    int64_t since; /* the last_update of the answer that the asker still has, or 0 */
};

/* The helper's side: these wait until all is written or read. -EPIPE when the other side is gone.
 */
int wire_write_hello(int fd, struct str version, struct err *err); /* first of all; of Slurm */
int wire_read_request(int fd, struct wire_request *ret, struct err *err);
int wire_write_section(int fd, const struct section *section, int64_t last_update,
                       struct str warning, struct err *err);
int wire_write_unchanged(int fd, struct err *err);
int wire_write_error(int fd, int code, struct str sentence, struct err *err);

/* The asker's side. */
void wire_put_request(struct buf *to, struct wire_request request);

enum wire_told {
    WIRE_NOTHING, /* not all has come */
    WIRE_HELLO,
    WIRE_SECTION,
    WIRE_UNCHANGED,
    WIRE_ERROR,
};

/* Reads one answer, or the hello. It fills the section, whose kind was asked for; its `end` fails
 * with the helper's own code and sentence where that is the answer. */
extern const struct answer_class answer_wire;

enum wire_told wire_told(const struct answer *answer);
int64_t wire_last_update(const struct answer *answer); /* of a section */
struct str wire_text(const struct answer *answer);     /* a hello's version, a section's warning */

#endif
