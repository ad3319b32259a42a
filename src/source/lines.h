/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cuts an answer into lines, for the commands that print what only administrators can write. */
#ifndef SONDE_SOURCE_LINES_H
#define SONDE_SOURCE_LINES_H

#include "base/buf.h"
#include "base/err.h"

enum { LINES_MAX = 1 << 20 }; /* a longer line is passed over */

struct lines {
    void (*line)(void *ctx, struct str line); /* without its newline; valid only during the call */
    void *ctx;
    struct buf rest; /* the beginning of a line whose end has not come yet */
    bool skipping;   /* … which is too long */
    size_t skipped;  /* lines that were too long */
};

void lines_init(struct lines *lines, void (*line)(void *ctx, struct str line), void *ctx);
void lines_free(struct lines *lines);

void lines_feed(struct lines *lines, struct str piece);
void lines_end(struct lines *lines); /* hands on a last line without a newline */

#endif
