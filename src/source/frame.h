/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cuts the answer of a text command into records. Every field ends with a token that was made at
 * random for this one invocation, so that no job name, comment or reason can pretend to be the end
 * of a field: a user's text is never structure. A record is a fixed number of fields and a newline.
 */
#ifndef SONDE_SOURCE_FRAME_H
#define SONDE_SOURCE_FRAME_H

#include "base/buf.h"
#include "base/err.h"

enum {
    FRAME_TOKEN = 18, /* "@", 16 random hexadecimal digits, "@" */
    FRAME_FIELDS_MAX = 96,
    FRAME_PIECE_MAX = 1 << 20,  /* of the pieces that are fed */
    FRAME_RECORD_MAX = 1 << 20, /* a longer record is passed over */
};

struct frame {
    char token[FRAME_TOKEN + 1];
    size_t n_fields;
    void (*record)(void *ctx, const struct str *fields);
    void *ctx;
    struct buf rest; /* the beginning of a record whose end has not come yet */
    bool skipping;   /* … which is too long: only its fields are counted */
    size_t fields_skipped;
    size_t records_skipped;
};

void frame_make_token(char token[FRAME_TOKEN + 1]);

/* Makes the token. */
void frame_init(struct frame *frame, size_t n_fields,
                void (*record)(void *ctx, const struct str *fields), void *ctx);
void frame_free(struct frame *frame);

/* Takes the next piece of the answer and hands on the records that are complete. Fields are valid
 * only during that call. One record that is too long does not spoil the others. -EBADMSG when what
 * comes cannot be what was asked for. */
int frame_feed(struct frame *frame, struct str piece, struct err *err);

/* The answer has ended: -EBADMSG if it did so in the middle of a record. */
int frame_finish(struct frame *frame, struct err *err);

#endif
