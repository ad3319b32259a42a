/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/frame.h"

#include <sys/random.h>

void frame_init(struct frame *frame, size_t n_fields,
                void (*record)(void *ctx, const struct str *fields), void *ctx)
{
    uint64_t random;

    *frame = (struct frame){ .n_fields = n_fields, .record = record, .ctx = ctx };
    /* getrandom gives 8 bytes whole. */
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        abort();
    snprintf(frame->token, sizeof(frame->token), "@%016llx@", (unsigned long long)random);
    buf_init(&frame->rest, FRAME_RECORD_MAX);
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

/* Hands on one record. 1: done, 0: it is not complete yet, negative: it is garbage. */
static int take_record(struct frame *frame, struct str *rest, struct err *err)
{
    struct str fields[FRAME_FIELDS_MAX];
    struct str scan = *rest;

    for (size_t i = 0; i < frame->n_fields; i++)
        if (!take_field(frame, &scan, &fields[i]))
            return 0;
    if (!scan.n)
        return 0;
    if (scan.p[0] != '\n')
        return err_set(err, EBADMSG,
                       "the answer has a record with more than the %zu fields that were asked for",
                       frame->n_fields);
    *rest = str_skip(scan, 1);
    frame->record(frame->ctx, fields);
    return 1;
}

/* Keeps what is left for the next piece. It may be a part of frame->rest itself. */
static int keep(struct frame *frame, struct str rest, struct err *err)
{
    if (rest.n > FRAME_RECORD_MAX)
        return err_set(err, EBADMSG, "the answer has no complete record within %d bytes",
                       FRAME_RECORD_MAX);
    if (frame->rest.n) {
        memmove(frame->rest.p, rest.p, rest.n);
        frame->rest.n = rest.n;
    } else {
        buf_put(&frame->rest, rest);
    }
    return 0;
}

int frame_feed(struct frame *frame, struct str piece, struct err *err)
{
    struct str rest = piece;
    int code = 0;

    if (frame->rest.n) {
        buf_put(&frame->rest, piece);
        if (frame->rest.over)
            return err_set(err, EBADMSG, "the answer has no complete record within %d bytes",
                           FRAME_RECORD_MAX);
        rest = buf_str(&frame->rest);
    }
    while (rest.n && (code = take_record(frame, &rest, err)) > 0)
        continue;
    return code < 0 ? code : keep(frame, rest, err);
}

int frame_finish(struct frame *frame, struct err *err)
{
    struct str rest = str_head(str_trim(buf_str(&frame->rest)), 60);

    if (!rest.n)
        return 0;
    return err_set(err, EBADMSG, "the answer ends in the middle of a record, or is garbage: %.*s",
                   STR_ARG(rest));
}
