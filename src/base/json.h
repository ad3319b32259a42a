/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pull scanner for JSON (RFC 8259) that is fed in pieces and keeps nothing but the token at hand:
 * Slurm's answers are hundreds of megabytes. Ceilings: 1 MB a token, 64 levels.
 *
 * JSON_MORE can come between any two events, so a consumer keeps in a struct where it is, and takes
 * one event at a time. The sink of a command or a request is then
 *     json_feed(json, piece);
 *     while ((event = json_next(json)) > JSON_END)
 *         take(consumer, json, event);
 *     return event == JSON_ERROR ? json_error(json, err) : 0;
 * and at the end of the input json_finish with the same loop. How the document was cut into pieces
 * makes no difference to what comes out. */
#ifndef SONDE_BASE_JSON_H
#define SONDE_BASE_JSON_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum json_event {
    JSON_ERROR = -1, /* json_error has the sentence; the scanner stays in this state */
    JSON_MORE = 0,   /* everything that was fed is used up: feed more, or finish */
    JSON_END,        /* the document is complete and json_finish was called */
    JSON_OBJECT,     /* { */
    JSON_OBJECT_END, /* } */
    JSON_ARRAY,      /* [ */
    JSON_ARRAY_END,  /* ] */
    JSON_KEY,        /* text: the key, unescaped */
    JSON_STRING,     /* text: the value, unescaped; always valid UTF-8, may hold NUL */
    JSON_NUMBER,     /* text: as written; also Infinity, -Infinity, NaN, -NaN, which Slurm writes */
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

struct json;

struct json *json_new(void);
struct json *json_free(struct json *json); /* returns NULL */
void json_reset(struct json *json);        /* ready for another document, memory kept */

/* Feed when json_next has said JSON_MORE, or first of all. The piece must stay valid until it says
 * so again. */
void json_feed(struct json *json, struct str piece);
void json_finish(struct json *json); /* no more pieces: a cut document is an error */

enum json_event json_next(struct json *json);

/* Nobody wants the value that begins here: that of the KEY at hand, or the rest of the OBJECT or
 * ARRAY at hand with its end. json_next passes over it, through as many pieces as it takes, and
 * gives what follows. After any other event there is nothing to skip. */
void json_skip(struct json *json);

/* Of the KEY, STRING or NUMBER at hand, else empty; valid until the next json_next. */
struct str json_text(const struct json *json);

/* The NUMBER at hand. False if there is none, if it does not fit, if (integers) it is written with
 * a fraction or an exponent, or (doubles) it is longer than the 127 bytes that base/num reads. */
bool json_u64(const struct json *json, uint64_t *ret);
bool json_i64(const struct json *json, int64_t *ret);
bool json_double(const struct json *json, double *ret);

/* How many objects and arrays are open. */
size_t json_depth(const struct json *json);

/* The sentence, with line and column (in bytes, from 1) of the mistake. Returns -EBADMSG, or -EFBIG
 * for a ceiling; 0 and no sentence if nothing is wrong. */
int json_error(const struct json *json, struct err *err);

#endif
