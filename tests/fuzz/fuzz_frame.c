/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cutter of text answers: pieces of any size give the records and the verdict that a plain
 * reading gives, and a record that is too long does not spoil those after it. The first byte of an
 * input says how many fields there are ('0': one); byte 1 stands for the token. */
#include "source/frame.h"

#include "fuzz.h"

enum { TOKEN = 1, OUTPUT_MAX = 64 << 20 };

/* Records as text that tells every field from its neighbours, and how the reading ended. */
struct reading {
    size_t n_fields;
    struct buf records;
    int code;
};

static void begin_reading(struct reading *reading, size_t n_fields)
{
    *reading = (struct reading){ .n_fields = n_fields };
    buf_init(&reading->records, OUTPUT_MAX);
}

static void add_record(void *ctx, const struct str *fields)
{
    struct reading *reading = ctx;

    for (size_t i = 0; i < reading->n_fields; i++) {
        buf_u64(&reading->records, fields[i].n);
        buf_byte(&reading->records, ':');
        buf_put(&reading->records, fields[i]);
    }
    buf_byte(&reading->records, '\n');
}

/* What must come out, read from the input as a whole and without a token. */
static struct reading read_plainly(struct str input, size_t n_fields)
{
    struct str fields[FRAME_FIELDS_MAX];
    struct reading reading;
    struct str rest = input;

    begin_reading(&reading, n_fields);
    for (;;) {
        struct str begin = rest;
        size_t n = 0;

        while (n < n_fields && str_find(rest, TOKEN) < rest.n)
            fields[n++] = str_cut(&rest, TOKEN);
        if (n < n_fields || !rest.n) {
            reading.code = str_trim(begin).n ? -EBADMSG : 0;
            return reading;
        }
        if (rest.p[0] != '\n') {
            reading.code = -EBADMSG;
            return reading;
        }
        add_record(&reading, fields);
        rest = str_skip(rest, 1);
    }
}

static void put_answer(struct buf *to, struct str input, const struct frame *frame)
{
    buf_init(to, input.n * FRAME_TOKEN);
    for (size_t i = 0; i < input.n; i++) {
        if (input.p[i] == TOKEN)
            buf_text(to, frame->token);
        else
            buf_byte(to, input.p[i]);
    }
}

static size_t all_at_once(uint64_t *seed)
{
    (void)seed;
    return FRAME_PIECE_MAX;
}

static size_t byte_by_byte(uint64_t *seed)
{
    (void)seed;
    return 1;
}

static size_t about_a_token(uint64_t *seed)
{
    return 1 + fuzz_random(seed) % (2 * FRAME_TOKEN);
}

static size_t some_hundred(uint64_t *seed)
{
    return 1 + fuzz_random(seed) % 500;
}

static int feed(struct frame *frame, struct str answer, size_t (*size)(uint64_t *seed),
                uint64_t seed, struct err *err)
{
    int code = 0;

    while (answer.n && !code) {
        size_t n = size(&seed);

        code = frame_feed(frame, str_head(answer, n), err);
        answer = str_skip(answer, n);
    }
    return code;
}

/* One whose first field alone is too long. */
static void feed_long_record(struct frame *frame)
{
    static char filler[FRAME_PIECE_MAX];
    struct err err;

    memset(filler, 'x', sizeof(filler));
    for (size_t left = FRAME_RECORD_MAX + FRAME_TOKEN; left;) {
        size_t n = left < sizeof(filler) ? left : sizeof(filler);

        FUZZ_CHECK(frame_feed(frame, (struct str){ filler, n }, &err) == 0, "%s", err.text);
        left -= n;
    }
    for (size_t i = 0; i < frame->n_fields; i++)
        FUZZ_CHECK(frame_feed(frame, str_of(frame->token), &err) == 0, "%s", err.text);
    FUZZ_CHECK(frame_feed(frame, STR("\n"), &err) == 0, "%s", err.text);
    FUZZ_CHECK(frame->records_skipped == 1);
}

static void check_reading(struct str input, const struct reading *expected,
                          size_t (*size)(uint64_t *seed), bool after_long_record)
{
    uint64_t seed = fuzz_seed((const uint8_t *)input.p, input.n);
    struct err err = { 0 };
    struct reading reading;
    struct frame frame;
    struct buf answer;

    begin_reading(&reading, expected->n_fields);
    frame_init(&frame, expected->n_fields, add_record, &reading);
    put_answer(&answer, input, &frame);
    if (after_long_record)
        feed_long_record(&frame);
    reading.code = feed(&frame, buf_str(&answer), size, seed, &err);
    if (!reading.code)
        reading.code = frame_finish(&frame, &err);
    FUZZ_CHECK(reading.code == expected->code, "%d, not %d: %s", reading.code, expected->code,
               err.text);
    FUZZ_CHECK(reading.code == -err.code && !reading.code == !err.text[0]);
    FUZZ_CHECK(str_eq(buf_str(&reading.records), buf_str(&expected->records)));
    FUZZ_CHECK(frame.records_skipped == after_long_record);
    buf_free(&answer);
    frame_free(&frame);
    buf_free(&reading.records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static size_t (*const sizes[])(uint64_t * seed) = {
        all_at_once,
        byte_by_byte,
        about_a_token,
        some_hundred,
    };
    struct str input = { (const char *)data, size };
    struct reading expected;

    if (!size || size > FRAME_PIECE_MAX / FRAME_TOKEN)
        return 0;
    expected = read_plainly(str_skip(input, 1), 1 + (uint8_t)(data[0] - '0') % FRAME_FIELDS_MAX);
    for (size_t i = 0; i < COUNT(sizes); i++)
        check_reading(str_skip(input, 1), &expected, sizes[i], false);
    /* A megabyte each time would make most of the work. */
    if (fuzz_seed(data, size) % 64 == 0)
        check_reading(str_skip(input, 1), &expected, about_a_token, true);
    buf_free(&expected.records);
    return 0;
}
