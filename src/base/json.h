/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pull scanner for JSON (RFC 8259) that is fed in pieces and keeps nothing but the token at hand:
 * Slurm's answers are hundreds of megabytes. Ceilings: 1 MB a token, 64 levels. */
#ifndef SONDE_BASE_JSON_H
#define SONDE_BASE_JSON_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum json_event {
    JSON_ERROR = -1,  /* json_error has the sentence; the scanner stays in this state */
    JSON_MORE = 0,    /* everything that was fed is used up: feed more, or finish */
    JSON_OBJECT,      /* { */
    JSON_OBJECT_END,  /* } */
    JSON_ARRAY,       /* [ */
    JSON_ARRAY_END,   /* ] */
    JSON_KEY,         /* text: the key, unescaped */
    JSON_STRING,      /* text: the value, unescaped; lone surrogates become U+FFFD */
    JSON_NUMBER,      /* text: as written */
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END, /* the document is complete and json_finish was called */
};

struct json;

struct json *json_new(void);
struct json *json_free(struct json *json);
void json_reset(struct json *json); /* ready for another document, memory kept */

/* The piece must stay valid until json_next says JSON_MORE. */
void json_feed(struct json *json, struct str piece);
void json_finish(struct json *json); /* no more pieces: a cut document is an error */

enum json_event json_next(struct json *json);

/* Of the last KEY, STRING or NUMBER; valid until the next json_next. */
struct str json_text(const struct json *json);
size_t json_depth(const struct json *json);

/* The sentence with line and column of the mistake. */
void json_error(const struct json *json, struct err *err);

#endif
