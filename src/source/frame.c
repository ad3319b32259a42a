/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits command output into records at a random token. */
#include "source/frame.h"

#include <sys/random.h>

void frame_make_token(char token[FRAME_TOKEN + 1])
{
    uint64_t random;

    /* getrandom gives 8 bytes whole. */
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        abort();
    snprintf(token, FRAME_TOKEN + 1, "@%016llx@", (unsigned long long)random);
}

void frame_init(struct frame *frame, size_t n_fields,
                void (*record)(void *ctx, const struct str *fields), void *ctx)
{
    *frame = (struct frame){ .n_fields = n_fields, .record = record, .ctx = ctx };
    frame_make_token(frame->token);
    /* A beginning is at most a record, and a piece is added to it before it is looked at. */
    buf_init(&frame->rest, FRAME_RECORD_MAX + FRAME_PIECE_MAX);
}

void frame_free(struct frame *frame)
{
    buf_free(&frame->rest);
}

/* The next field of *rest, or false if its token has not come yet. */
static bool take_field(const struct frame *frame, struct str *rest, struct str *ret)
{
    struct str scan = *rest;

    for (;;) {
        scan = str_skip(scan, str_find(scan, '@'));
        if (scan.n < FRAME_TOKEN)
            return false;
        if (memcmp(scan.p, frame->token, FRAME_TOKEN) == 0)
            break;
        scan = str_skip(scan, 1);
    }
    *ret = str_span(rest->p, scan.p);
    *rest = str_skip(scan, FRAME_TOKEN);
    return true;
}

/* After the last field: takes the newline that must follow. 1: done, 0: not there yet, negative. */
static int take_newline(const struct frame *frame, struct str *rest, struct err *err)
{
    if (!rest->n)
        return 0;
    if (rest->p[0] != '\n')
        return err_set(err, EBADMSG,
                       "the answer has a record with more than the %zu fields that were asked for",
                       frame->n_fields);
    *rest = str_skip(*rest, 1);
    return 1;
}

/* Hands on one record. 1: done, 0: it is not complete yet, negative: it is garbage. */
static int take_record(struct frame *frame, struct str *rest, struct err *err)
{
    struct str fields[FRAME_FIELDS_MAX];
    struct str scan = *rest;
    int code;

    for (size_t i = 0; i < frame->n_fields; i++)
        if (!take_field(frame, &scan, &fields[i]))
            return 0;
    code = take_newline(frame, &scan, err);
    if (code <= 0)
        return code;
    if (scan.p - rest->p > FRAME_RECORD_MAX)
        frame->records_skipped++;
    else
        frame->record(frame->ctx, fields);
    *rest = scan;
    return 1;
}

/* Passes over what is left of a record that is too long. As take_record. */
static int skip_record(struct frame *frame, struct str *rest, struct err *err)
{
    struct str field;
    int code;

    while (frame->fields_skipped < frame->n_fields && take_field(frame, rest, &field))
        frame->fields_skipped++;
    if (frame->fields_skipped < frame->n_fields) {
        /* Its last bytes may be the beginning of a token. */
        if (rest->n >= FRAME_TOKEN)
            *rest = str_skip(*rest, rest->n - FRAME_TOKEN + 1);
        return 0;
    }
    code = take_newline(frame, rest, err);
    if (code > 0) {
        frame->skipping = false;
        frame->fields_skipped = 0;
        frame->records_skipped++;
    }
    return code;
}

static int take_records(struct frame *frame, struct str *rest, struct err *err)
{
    int code = 1;

    while (rest->n && code > 0) {
        if (frame->skipping) {
            code = skip_record(frame, rest, err);
            continue;
        }
        code = take_record(frame, rest, err);
        if (code == 0 && rest->n > FRAME_RECORD_MAX) {
            frame->skipping = true;
            code = 1;
        }
    }
    return code < 0 ? code : 0;
}

int frame_feed(struct frame *frame, struct str piece, struct err *err)
{
    struct str rest = piece;
    size_t kept = frame->rest.n;
    int code;

    if (kept) {
        buf_put(&frame->rest, piece);
        rest = buf_str(&frame->rest);
    }
    code = take_records(frame, &rest, err);
    if (code < 0)
        return code;
    if (kept) {
        memmove(frame->rest.p, rest.p, rest.n);
        frame->rest.n = rest.n;
    } else {
        buf_put(&frame->rest, rest);
    }
    return 0;
}

int frame_finish(struct frame *frame, struct err *err)
{
    struct str rest = str_trim(buf_str(&frame->rest));

    if (!rest.n && !frame->skipping)
        return 0;
    /* Without the token, which would make the same sentence another one each time. */
    rest = str_head(str_head(rest, str_find_str(rest, str_of(frame->token))), 60);
    return err_set(err, EBADMSG, "the answer ends in the middle of a record, or is garbage: %.*s",
                   STR_ARG(rest));
}
