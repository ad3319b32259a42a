/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of metric/segment: compressed pieces of an exposition. */
#include "test.h"

#include "base/arena.h"
#include "metric/segment.h"

#include <inttypes.h>
#include <zlib.h>

static struct segment *segment_of(struct str text)
{
    struct buf buf;
    struct segment *segment;

    buf_init(&buf, 10 << 20);
    buf_put(&buf, text);
    segment = segment_new(&buf);
    assert_null(buf.p);
    return segment;
}

static struct buf join(const struct iovec *iov, size_t n)
{
    struct buf joined;

    buf_init(&joined, 20 << 20);
    for (size_t i = 0; i < n; i++)
        buf_put(&joined, (struct str){ iov[i].iov_base, iov[i].iov_len });
    return joined;
}

/* As one gzip member with nothing behind it, the checksum verified. */
static struct buf gunzip(struct str packed)
{
    z_stream stream = { .next_in = (unsigned char *)packed.p, .avail_in = (unsigned)packed.n };
    struct buf text;

    buf_init(&text, 20 << 20);
    assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
    stream.next_out = (unsigned char *)buf_room(&text, 16 << 20);
    stream.avail_out = 16 << 20;
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    text.n = stream.total_out;
    inflateEnd(&stream);
    return text;
}

TEST(stored_ones_of_any_length_stand_among_the_others)
{
    static const size_t lengths[] = { 1, 100, 65535, 65536, 200000 };

    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct segment *segments[3] = { segment_of(STR("before\n")), NULL,
                                        segment_of(STR("after\n")) };
        struct segment_list list = { segments, 3 };
        unsigned char trailer[GZIP_TRAILER];
        struct buf stored, text, packed, unpacked;
        struct iovec iov[5];

        buf_init(&stored, 1 << 20);
        for (size_t k = 0; k < lengths[i]; k++)
            buf_byte(&stored, (char)('a' + k % 26));
        segments[1] = segment_new_stored(&stored);
        text = join(iov, segment_iov(list, iov));
        packed = join(iov, segment_iov_gzip(list, iov, trailer));
        unpacked = gunzip(buf_str(&packed));
        assert_int_equal(text.n, lengths[i] + 13);
        assert_true(str_eq(buf_str(&unpacked), buf_str(&text)));
        for (size_t k = 0; k < 3; k++)
            segment_unref(segments[k]);
        buf_free(&text);
        buf_free(&packed);
        buf_free(&unpacked);
    }
}

TEST(segments_are_one_text_and_one_gzip_member)
{
    struct segment *segments[] = {
        segment_of(STR("# TYPE a gauge\na 1\n")),
        segment_of(STR("")),
        segment_of(STR("# TYPE b gauge\nb 2\n")),
    };
    struct segment_list list = { segments, 3 };
    struct iovec iov[5];
    unsigned char trailer[GZIP_TRAILER];
    struct buf text = join(iov, segment_iov(list, iov));
    struct buf packed = join(iov, segment_iov_gzip(list, iov, trailer));
    struct buf unpacked = gunzip(buf_str(&packed));

    assert_str(buf_str(&text), "# TYPE a gauge\na 1\n# TYPE b gauge\nb 2\n");
    assert_str(buf_str(&unpacked), text.p);
    for (int i = 0; i < 3; i++)
        segment_unref(segments[i]);
    buf_free(&text);
    buf_free(&packed);
    buf_free(&unpacked);
}

TEST(no_segments_are_a_valid_empty_gzip_member)
{
    struct segment_list list = { NULL, 0 };
    struct iovec iov[2];
    unsigned char trailer[GZIP_TRAILER];
    struct buf packed = join(iov, segment_iov_gzip(list, iov, trailer));
    struct buf unpacked = gunzip(buf_str(&packed));

    assert_int_equal(unpacked.n, 0);
    buf_free(&packed);
    buf_free(&unpacked);
}

TEST(text_that_does_not_compress_survives)
{
    char *noise = heap_alloc(3 << 20);
    uint64_t x = 1;
    struct segment *segment;
    struct iovec iov[3];
    unsigned char trailer[GZIP_TRAILER];
    struct buf packed, unpacked;

    for (size_t i = 0; i < 3 << 20; i++) {
        x = x * 6364136223846793005 + 1442695040888963407;
        noise[i] = (char)(x >> 56);
    }
    segment = segment_of((struct str){ noise, 3 << 20 });
    packed = join(iov, segment_iov_gzip((struct segment_list){ &segment, 1 }, iov, trailer));
    unpacked = gunzip(buf_str(&packed));
    assert_int_equal(unpacked.n, 3 << 20);
    assert_memory_equal(unpacked.p, noise, 3 << 20);
    segment_unref(segment);
    buf_free(&packed);
    buf_free(&unpacked);
    free(noise);
}

static struct buf counting_text(size_t n)
{
    struct buf text;

    buf_init(&text, n + 64);
    for (uint64_t i = 0; text.n < n; i++)
        buf_printf(&text, "a_b_total{job_id=\"%" PRIu64 "\"} %" PRIu64 "\n", i % 256, i * i);
    text.n = n;
    return text;
}

TEST(a_packed_one_keeps_no_text_and_gives_it_back)
{
    static const size_t lengths[] = { 1, 100, 16384, 1 << 20, 3 << 20 };

    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct buf text = counting_text(lengths[i]), inflated;
        struct segment *segment = segment_new_packed(buf_str(&text));

        assert_int_equal(segment->text.n, 0);
        assert_int_equal(segment->text_bytes, lengths[i]);
        assert_true(segment->deflated.cap <= lengths[i] / 4 + 64);
        buf_init(&inflated, lengths[i] + 6);
        buf_text(&inflated, "before");
        assert_true(segment_inflate(segment, &inflated));
        assert_true(str_eq(str_skip(buf_str(&inflated), 6), buf_str(&text)));
        assert_int_equal(inflated.p[inflated.n], '\0');
        segment_unref(segment);
        buf_free(&inflated);
        buf_free(&text);
    }
}

TEST(noise_of_any_length_survives_packing)
{
    uint64_t x = 7;

    /* around the steps of 16 KB in which the result is taken */
    for (size_t n = 16300; n < 16460; n++) {
        struct buf noise, inflated;
        struct segment *segment;

        buf_init(&noise, n);
        while (noise.n < n) {
            x = x * 6364136223846793005 + 1442695040888963407;
            buf_byte(&noise, (char)(x >> 56));
        }
        segment = segment_new_packed(buf_str(&noise));
        buf_init(&inflated, n);
        assert_true(segment_inflate(segment, &inflated));
        assert_true(str_eq(buf_str(&inflated), buf_str(&noise)));
        segment_unref(segment);
        buf_free(&inflated);
        buf_free(&noise);
    }
}

TEST(packed_ones_stand_in_a_gzip_member_with_others)
{
    struct buf first = counting_text(100000), stored, packed, unpacked;
    struct segment *segments[4] = { segment_new_packed(buf_str(&first)),
                                    segment_new_packed(STR("")),
                                    segment_new_packed(STR("second\n")) };
    unsigned char trailer[GZIP_TRAILER];
    struct iovec iov[6];

    buf_init(&stored, 100);
    buf_text(&stored, "third\n");
    segments[3] = segment_new_stored(&stored);
    packed = join(iov, segment_iov_gzip((struct segment_list){ segments, 4 }, iov, trailer));
    unpacked = gunzip(buf_str(&packed));
    buf_free(&first);
    first = counting_text(100000);
    assert_true(str_eq(str_head(buf_str(&unpacked), first.n), buf_str(&first)));
    assert_str(str_skip(buf_str(&unpacked), first.n), "second\nthird\n");
    for (size_t i = 0; i < 4; i++)
        segment_unref(segments[i]);
    buf_free(&first);
    buf_free(&packed);
    buf_free(&unpacked);
}

TEST(a_text_past_the_ceiling_is_not_inflated)
{
    struct segment *segment = segment_new_packed(STR("0123456789"));
    struct buf to;

    buf_init(&to, 12);
    buf_text(&to, "abc");
    assert_false(segment_inflate(segment, &to));
    assert_str(buf_str(&to), "abc");
    segment_unref(segment);
    buf_free(&to);
}

TEST(any_segment_can_be_inflated)
{
    struct segment *segments[2];
    struct buf text, to;

    segments[0] = segment_of(STR("one\n"));
    buf_init(&text, 100);
    buf_text(&text, "two\n");
    segments[1] = segment_new_stored(&text);
    buf_init(&to, 100);
    for (size_t i = 0; i < 2; i++) {
        assert_true(segment_inflate(segments[i], &to));
        segment_unref(segments[i]);
    }
    assert_str(buf_str(&to), "one\ntwo\n");
    buf_free(&to);
}
