/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats errors and names their codes. */
#include "base/err.h"

#include "base/str.h"

/* A sentence that did not fit must not read as if it were whole. */
static void mark_cut(char *text, size_t room)
{
    static const char mark[] = "…";
    size_t end = room - sizeof(mark);

    while (end && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    memcpy(text + end, mark, sizeof(mark));
}

static void put(char *text, size_t room, const char *format, va_list args)
{
    int n = vsnprintf(text, room, format, args);

    if (n >= (int)room)
        mark_cut(text, room);
}

int err_set(struct err *err, int code, const char *format, ...)
{
    if (err) {
        va_list args;

        err->code = code;
        va_start(args, format);
        put(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return -code;
}

int err_prefix(struct err *err, const char *format, ...)
{
    char context[sizeof(err->text) / 2], sentence[sizeof(err->text)];
    va_list args;

    va_start(args, format);
    put(context, sizeof(context), format, args);
    va_end(args);
    memcpy(sentence, err->text, sizeof(sentence));
    return err_set(err, err->code, "%s: %s", context, sentence);
}

const char *err_words(int code)
{
    const char *words = strerrordesc_np(code);

    return words ? words : "unknown error";
}

const char *err_reason(int code)
{
    static const struct {
        int code;
        const char *reason;
    } reasons[] = {
        { ENOENT, "missing" },         { ETIMEDOUT, "timeout" },
        { EFBIG, "too_big" },          { E2BIG, "too_big" },
        { EBADMSG, "garbled" },        { EREMOTEIO, "failed" },
        { EACCES, "denied" },          { EPERM, "denied" },
        { ECONNREFUSED, "refused" },   { ECANCELED, "cancelled" },
        { EOPNOTSUPP, "unsupported" }, { EHOSTUNREACH, "unreachable" },
        { ENOSPC, "no_space" },        { EBUSY, "busy" },
        { EROFS, "read_only" },        { EIO, "io" },
        { ENOMEM, "no_memory" },       { EPROTO, "unsupported" },
    };

    for (size_t i = 0; i < COUNT(reasons); i++)
        if (reasons[i].code == code)
            return reasons[i].reason;
    return "other";
}
