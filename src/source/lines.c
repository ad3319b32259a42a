/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits command output into lines. */
#include "source/lines.h"

void lines_init(struct lines *lines, void (*line)(void *ctx, struct str line), void *ctx)
{
    *lines = (struct lines){ .line = line, .ctx = ctx };
    buf_init(&lines->rest, LINES_MAX);
}

void lines_free(struct lines *lines)
{
    buf_free(&lines->rest);
}

/* The line is complete: `tail` is its end, or all of it. */
static void hand_on(struct lines *lines, struct str tail)
{
    if (lines->skipping || lines->rest.n + tail.n > LINES_MAX) {
        lines->skipped++;
    } else if (lines->rest.n) {
        buf_put(&lines->rest, tail);
        lines->line(lines->ctx, buf_str(&lines->rest));
    } else {
        lines->line(lines->ctx, tail);
    }
    lines->skipping = false;
    buf_reset(&lines->rest);
}

void lines_feed(struct lines *lines, struct str piece)
{
    while (piece.n) {
        size_t end = str_find(piece, '\n');

        if (end == piece.n) {
            lines->skipping |= lines->rest.n + piece.n > LINES_MAX;
            if (!lines->skipping)
                buf_put(&lines->rest, piece);
            return;
        }
        hand_on(lines, str_head(piece, end));
        piece = str_skip(piece, end + 1);
    }
}

void lines_end(struct lines *lines)
{
    if (lines->rest.n || lines->skipping)
        hand_on(lines, STR(""));
}
