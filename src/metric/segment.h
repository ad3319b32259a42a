/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A piece of an exposition, rendered once and compressed once, shared by every response that holds
 * it. Compressed pieces are raw deflate ended by a full flush: any number of them under one gzip
 * header (RFC 1952) with a combined checksum are one valid gzip member. */
#ifndef SONDE_METRIC_SEGMENT_H
#define SONDE_METRIC_SEGMENT_H

#include "base/buf.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct segment {
    atomic_uint refs;
    struct buf text; /* empty if only the compressed form is kept */
    struct buf deflated;
    size_t text_bytes; /* of the text, kept or not */
    uint32_t crc;      /* CRC-32 of text */
};

/* Takes the text's memory over and leaves *text empty. */
struct segment *segment_new(struct buf *text);

/* The same, but only packed as deflate has it, not made smaller: for what is made anew for each
 * scrape, on the one thread that answers them. */
struct segment *segment_new_stored(struct buf *text);

/* Keeps only the compressed form, an eighth of the text or less: where many would be kept and few
 * ask for text. */
struct segment *segment_new_packed(struct str text);

/* Appends the text of any segment. False if it would not fit below the ceiling of `to`, which is
 * then left as it was. */
bool segment_inflate(const struct segment *segment, struct buf *to);

struct segment *segment_ref(struct segment *segment);
struct segment *segment_unref(struct segment *segment); /* returns NULL */

enum { GZIP_HEADER = 10, GZIP_TRAILER = 10 };

/* A response made of segments. */
struct segment_list {
    struct segment *const *segment;
    size_t n;
};

/* Fill `iov`, which has room for list->n + 2, and return how many were used. The plain form is of
 * segments that have kept their text. The gzip form also needs room for its trailer, which must
 * live as long as the iovec is used. */
size_t segment_iov(struct segment_list list, struct iovec *iov);
size_t segment_iov_gzip(struct segment_list list, struct iovec *iov,
                        unsigned char trailer[GZIP_TRAILER]);

#endif
