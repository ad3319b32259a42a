/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The token of --ingest.token-file, read again when the file changes: a post that comes after a
 * change is compared with the new one. */
#ifndef SONDE_HTTP_INGEST_TOKEN_H
#define SONDE_HTTP_INGEST_TOKEN_H

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

struct ingest_token;

struct ingest_token *ingest_token_new(const char *path, const struct clock *clock, struct log *log);
struct ingest_token *ingest_token_free(struct ingest_token *token); /* returns NULL */

enum token_verdict {
    TOKEN_RIGHT,
    TOKEN_WRONG,
    TOKEN_UNREADABLE, /* nothing to compare with */
    TOKEN_LOOK,       /* the caller must have a worker call ingest_token_look, then check again */
    TOKEN_WAIT,       /* a worker is about it */
};

/* For a post whose header came at that time. Never blocks. */
enum token_verdict ingest_token_check(struct ingest_token *token, struct str given,
                                      int64_t since_ns);

/* On a worker: the file may be on a disk that hangs. */
void ingest_token_look(struct ingest_token *token);

/* After TOKEN_LOOK, when there is no worker for it. */
void ingest_token_cancel_look(struct ingest_token *token);

#endif
