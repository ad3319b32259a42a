/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metric/segment.h"

#include "base/arena.h"

#include <zlib.h>

/* Level 1: 100,000 samples take 26 ms and shrink to an eighth; more is not worth a core's time. */
static void deflate_text(struct segment *segment)
{
    z_stream stream = { 0 };
    size_t most;

    if (deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    /* deflateBound is for Z_FINISH; a full flush adds an empty stored block of 5 bytes at most. */
    most = deflateBound(&stream, segment->text.n) + 16;
    buf_init(&segment->deflated, most);
    stream.next_in = (unsigned char *)segment->text.p;
    stream.avail_in = (unsigned)segment->text.n;
    stream.next_out = (unsigned char *)buf_room(&segment->deflated, most);
    stream.avail_out = (unsigned)most;
    if (deflate(&stream, Z_FULL_FLUSH) != Z_OK || stream.avail_in)
        abort();
    segment->deflated.n = most - stream.avail_out;
    deflateEnd(&stream);
    /* Compressed text is a tenth of its bound: give the rest back. */
    segment->deflated.p = heap_resize(segment->deflated.p, segment->deflated.n + 1, 1);
    segment->deflated.cap = segment->deflated.n + 1;
}

/* RFC 1951, 3.2.4: a byte that says so, the length and its complement, the bytes. */
static void store_text(struct segment *segment)
{
    enum { BLOCK = 65535, HEADER = 5 };

    buf_init(&segment->deflated, segment->text.n + (segment->text.n / BLOCK + 1) * HEADER);
    for (struct str rest = buf_str(&segment->text), block; rest.n; rest = str_skip(rest, block.n)) {
        char header[HEADER] = { 0 };

        block = str_head(rest, BLOCK);
        header[1] = (char)block.n;
        header[2] = (char)(block.n >> 8);
        header[3] = (char)~header[1];
        header[4] = (char)~header[2];
        buf_put(&segment->deflated, (struct str){ header, sizeof(header) });
        buf_put(&segment->deflated, block);
    }
}

static struct segment *make(struct buf *text, void (*pack)(struct segment *segment))
{
    struct segment *segment = heap_alloc(sizeof(*segment));

    atomic_init(&segment->refs, 1);
    segment->text = *text;
    buf_init(text, text->max);
    if (segment->text.n) {
        segment->text.p = heap_resize(segment->text.p, segment->text.n + 1, 1);
        segment->text.cap = segment->text.n + 1;
        segment->crc = (uint32_t)crc32_z(0, (unsigned char *)segment->text.p, segment->text.n);
        pack(segment);
    }
    return segment;
}

struct segment *segment_new(struct buf *text)
{
    return make(text, deflate_text);
}

struct segment *segment_new_stored(struct buf *text)
{
    return make(text, store_text);
}

struct segment *segment_ref(struct segment *segment)
{
    atomic_fetch_add_explicit(&segment->refs, 1, memory_order_relaxed);
    return segment;
}

struct segment *segment_unref(struct segment *segment)
{
    if (segment && atomic_fetch_sub_explicit(&segment->refs, 1, memory_order_acq_rel) == 1) {
        buf_free(&segment->text);
        buf_free(&segment->deflated);
        free(segment);
    }
    return NULL;
}

size_t segment_iov(struct segment_list list, struct iovec *iov)
{
    size_t n = 0;

    for (size_t i = 0; i < list.n; i++)
        if (list.segment[i]->text.n)
            iov[n++] = (struct iovec){ list.segment[i]->text.p, list.segment[i]->text.n };
    return n;
}

static void put_le32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

size_t segment_iov_gzip(struct segment_list list, struct iovec *iov,
                        unsigned char trailer[GZIP_TRAILER])
{
    /* magic, deflate, no flags, no time, fastest, unknown system */
    static unsigned char header[GZIP_HEADER] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255 };
    uint32_t crc = 0, length = 0;
    size_t n = 0;

    iov[n++] = (struct iovec){ header, sizeof(header) };
    for (size_t i = 0; i < list.n; i++) {
        struct segment *segment = list.segment[i];

        if (!segment->text.n)
            continue;
        crc = (uint32_t)crc32_combine(crc, segment->crc, (z_off_t)segment->text.n);
        length += (uint32_t)segment->text.n;
        iov[n++] = (struct iovec){ segment->deflated.p, segment->deflated.n };
    }
    /* an empty final block of fixed codes ends the deflate stream */
    trailer[0] = 3;
    trailer[1] = 0;
    put_le32(trailer + 2, crc);
    put_le32(trailer + 6, length);
    iov[n++] = (struct iovec){ trailer, GZIP_TRAILER };
    return n;
}
