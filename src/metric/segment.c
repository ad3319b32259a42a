/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compresses segments and combines them into one gzip stream. */
#include "metric/segment.h"

#include "base/arena.h"

#include <zlib.h>

/* Level 1: 100,000 samples take 26 ms and shrink to an eighth; more is not worth a core's time. */
static void begin_deflate(z_stream *stream, struct str text, int window_bits, int memory_level)
{
    *stream = (z_stream){ .next_in = (unsigned char *)text.p, .avail_in = (unsigned)text.n };
    if (deflateInit2(stream, 1, Z_DEFLATED, -window_bits, memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
}

/* deflateBound is for Z_FINISH; a full flush adds an empty stored block of 5 bytes at most. */
static size_t deflated_bound(z_stream *stream, size_t text_bytes)
{
    return deflateBound(stream, text_bytes) + 16;
}

/* Compressed text is a tenth of its bound: give the rest back. */
static void trim(struct buf *buf)
{
    buf->p = heap_resize(buf->p, buf->n + 1, 1);
    buf->cap = buf->n + 1;
}

static void deflate_text(struct segment *segment)
{
    z_stream stream;
    size_t most;

    begin_deflate(&stream, buf_str(&segment->text), MAX_WBITS, MAX_MEM_LEVEL);
    most = deflated_bound(&stream, segment->text.n);
    buf_init(&segment->deflated, most);
    stream.next_out = (unsigned char *)buf_room(&segment->deflated, most);
    stream.avail_out = (unsigned)most;
    if (deflate(&stream, Z_FULL_FLUSH) != Z_OK || stream.avail_in)
        abort();
    segment->deflated.n = most - stream.avail_out;
    deflateEnd(&stream);
    trim(&segment->deflated);
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
    segment->text_bytes = text->n;
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

/* With little memory: 64 KB for zlib where its most would be 384 (the result is no larger), and the
 * result in steps, because the bound is as large as the text. */
static void deflate_in_steps(struct str text, struct buf *to)
{
    enum { WINDOW_BITS = 13, MEMORY_LEVEL = 6, STEP = 16 * 1024 };
    z_stream stream;

    begin_deflate(&stream, text, WINDOW_BITS, MEMORY_LEVEL);
    buf_init(to, deflated_bound(&stream, text.n) + STEP);
    do {
        stream.next_out = (unsigned char *)buf_room(to, STEP);
        stream.avail_out = STEP;
        if (!stream.next_out || deflate(&stream, Z_FULL_FLUSH) != Z_OK)
            abort();
        to->n += STEP - stream.avail_out;
    } while (!stream.avail_out);
    deflateEnd(&stream);
    trim(to);
}

struct segment *segment_new_packed(struct str text)
{
    struct segment *segment = heap_alloc(sizeof(*segment));

    atomic_init(&segment->refs, 1);
    segment->text_bytes = text.n;
    if (text.n) {
        segment->crc = (uint32_t)crc32_z(0, (const unsigned char *)text.p, text.n);
        deflate_in_steps(text, &segment->deflated);
    }
    return segment;
}

bool segment_inflate(const struct segment *segment, struct buf *to)
{
    z_stream stream = { .next_in = (unsigned char *)segment->deflated.p,
                        .avail_in = (unsigned)segment->deflated.n };

    if (!segment->text_bytes)
        return true;
    stream.next_out = (unsigned char *)buf_room(to, segment->text_bytes);
    stream.avail_out = (unsigned)segment->text_bytes;
    if (!stream.next_out)
        return false;
    /* Without an end of the stream, a flush is all that inflate can do with it. */
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK || inflate(&stream, Z_SYNC_FLUSH) != Z_OK ||
        stream.avail_out)
        abort();
    inflateEnd(&stream);
    to->n += segment->text_bytes;
    buf_end(to);
    return true;
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

        if (!segment->text_bytes)
            continue;
        crc = (uint32_t)crc32_combine(crc, segment->crc, (z_off_t)segment->text_bytes);
        length += (uint32_t)segment->text_bytes;
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
