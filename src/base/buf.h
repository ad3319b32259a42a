/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A string builder that is born with its ceiling. Past it, nothing more is written and `over` stays
 * set: write everything, then ask once. */
#ifndef SONDE_BASE_BUF_H
#define SONDE_BASE_BUF_H

#include "base/str.h"

#include <stdint.h>

struct buf {
    char *p; /* always ended by a NUL, not counted in n */
    size_t n, cap, max;
    bool over;
};

void buf_init(struct buf *buf, size_t max);
void buf_free(struct buf *buf);
void buf_reset(struct buf *buf); /* empty again; memory and ceiling stay */

void buf_put(struct buf *buf, struct str s);
void buf_byte(struct buf *buf, char c);
void buf_text(struct buf *buf, const char *text);
void buf_cut(struct buf *buf, struct str s, size_t most); /* whole characters, and … if cut */
void buf_u64(struct buf *buf, uint64_t value);
void buf_i64(struct buf *buf, int64_t value);
void buf_double(struct buf *buf, double value); /* shortest form that reads back, as base/num */
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for at least `bytes` more at the end, to be written at buf->p + buf->n by the caller, who
 * then adds to buf->n and calls buf_end. NULL (and `over`) if that would pass the ceiling. */
char *buf_grow(struct buf *buf, size_t bytes);
static inline char *buf_room(struct buf *buf, size_t bytes)
{
    /* cap is at most max + 1: what fits in it is within the ceiling */
    return bytes < buf->cap - buf->n && !buf->over ? buf->p + buf->n : buf_grow(buf, bytes);
}

static inline void buf_end(struct buf *buf)
{
    buf->p[buf->n] = '\0';
}

/* Escaped for the language in question; the only places that know how. */
void buf_json(struct buf *buf, struct str s); /* with quotes; invalid UTF-8 becomes U+FFFD */
void buf_html(struct buf *buf, struct str s); /* for text and for quoted attributes */
void buf_url(struct buf *buf, struct str s);  /* for a value in a query, or one part of a path */

static inline struct str buf_str(const struct buf *buf)
{
    return (struct str){ buf->p ? buf->p : "", buf->n };
}

#endif
