/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/frame: command output split into records. */
#include "test.h"

#include "source/frame.h"

enum { FIELDS = 3 };

static struct buf seen; /* fields with | between, records with / between */

static void record(void *ctx, const struct str *fields)
{
    (void)ctx;
    for (int i = 0; i < FIELDS; i++) {
        buf_put(&seen, fields[i]);
        buf_byte(&seen, i < FIELDS - 1 ? '|' : '/');
    }
}

static struct frame frame;

static void set_up(void)
{
    buf_init(&seen, 4 << 20);
    frame_init(&frame, FIELDS, record, NULL);
}

static void tear_down(void)
{
    frame_free(&frame);
    buf_free(&seen);
}

FIXTURE(set_up, tear_down)

/* A text in which ~ stands for the token. */
static void put(struct buf *to, const char *text)
{
    buf_init(to, 8 << 20);
    for (; *text; text++) {
        if (*text == '~')
            buf_text(to, frame.token);
        else
            buf_byte(to, *text);
    }
}

static int feed(const char *text, size_t piece, struct err *err)
{
    struct buf answer;
    int code = 0;

    put(&answer, text);
    for (struct str rest = buf_str(&answer); rest.n && code == 0; rest = str_skip(rest, piece))
        code = frame_feed(&frame, str_head(rest, piece), err);
    buf_free(&answer);
    return code < 0 ? code : frame_finish(&frame, err);
}

TEST(records_come_whole_whatever_the_pieces)
{
    struct err err;

    for (size_t piece = 1; piece < 150; piece++) {
        assert_int_equal(feed("1~alice~first~\n2~bob~~\n3~carol~third~\n", piece, &err), 0);
        assert_str(buf_str(&seen), "1|alice|first/2|bob|/3|carol|third/");
        tear_down();
        set_up();
    }
}

TEST(newlines_and_at_signs_in_a_field_are_text)
{
    struct err err;

    assert_int_equal(feed("1~a@b@0123456789abcdef@~two\nlines\n9~\n", 7, &err), 0);
    assert_str(buf_str(&seen), "1|a@b@0123456789abcdef@|two\nlines\n9/");
}

TEST(each_invocation_has_another_token)
{
    struct frame other;

    frame_init(&other, FIELDS, record, NULL);
    assert_string_not_equal(frame.token, other.token);
    assert_int_equal(strlen(frame.token), FRAME_TOKEN);
    frame_free(&other);
}

TEST(an_empty_answer_has_no_records)
{
    struct err err;

    assert_int_equal(feed("", 1, &err), 0);
    assert_int_equal(seen.n, 0);
}

TEST(half_a_record_at_the_end_is_an_error)
{
    struct err err;

    assert_int_equal(feed("1~alice~first~\n2~bo", 4096, &err), -EBADMSG);
    assert_contains(err.text, "middle of a record");
}

TEST(garbage_is_an_error)
{
    struct err err;

    assert_int_equal(feed("\x01\x02\xff nonsense", 4096, &err), -EBADMSG);
}

TEST(a_record_with_too_many_fields_is_an_error)
{
    struct err err;

    assert_int_equal(feed("1~alice~first~more~\n", 4096, &err), -EBADMSG);
    assert_contains(err.text, "more than the 3 fields");
}

TEST(a_record_that_is_too_long_is_passed_over_alone)
{
    static char text[3 * FRAME_RECORD_MAX];
    const size_t pieces[] = { 1000, 4096, 65536, FRAME_PIECE_MAX };

    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct err err;
        size_t n = 0;

        n += (size_t)snprintf(text, sizeof(text), "1~a~b~\n2~");
        memset(text + n, 'x', 2 * FRAME_RECORD_MAX);
        n += 2 * FRAME_RECORD_MAX;
        snprintf(text + n, sizeof(text) - n, "@@~y@~\n3~c~d~\n");
        assert_int_equal(feed(text, pieces[i], &err), 0);
        assert_str(buf_str(&seen), "1|a|b/3|c|d/");
        assert_int_equal(frame.records_skipped, 1);
        tear_down();
        set_up();
    }
}

TEST(a_record_that_is_too_long_must_end_like_any_other)
{
    static char text[3 * FRAME_RECORD_MAX];
    static const char *const ends[] = { "~y~more~\n", "~y~", "~y" };

    for (size_t i = 0; i < COUNT(ends); i++) {
        struct err err;
        size_t n = (size_t)snprintf(text, sizeof(text), "1~");

        memset(text + n, 'x', 2 * FRAME_RECORD_MAX);
        n += 2 * FRAME_RECORD_MAX;
        snprintf(text + n, sizeof(text) - n, "%s", ends[i]);
        assert_int_equal(feed(text, 65536, &err), -EBADMSG);
        assert_int_equal(seen.n, 0);
        tear_down();
        set_up();
    }
}

TEST(a_record_without_end_takes_no_more_memory_than_the_ceiling)
{
    static char piece[65536];
    struct err err;

    memset(piece, 'x', sizeof(piece));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(frame_feed(&frame, (struct str){ piece, sizeof(piece) }, &err), 0);
    assert_true(frame.rest.cap <= FRAME_RECORD_MAX + FRAME_PIECE_MAX + 1);
    assert_int_equal(frame_finish(&frame, &err), -EBADMSG);
}
