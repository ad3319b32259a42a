/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON web token (RFC 7519) in a file, as "scontrol token" makes it, read again when the file
 * changes. What it says of itself is for people: slurmctld alone checks it. */
#ifndef SONDE_SOURCE_TOKEN_H
#define SONDE_SOURCE_TOKEN_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <sys/stat.h>

enum {
    TOKEN_MAX = 16 * 1024, /* bytes of the file */
    TOKEN_USER = 256,
};

struct token {
    char *path;
    char *text;              /* NULL: none has been read */
    int64_t issued, expires; /* UTC seconds; 0: not said */
    char user[TOKEN_USER];   /* whom it was made for; empty: not said */
    bool is_exposed;         /* anybody on this machine can read or change it */
    struct stat seen;        /* of what was last read */
    struct err err;          /* why the file cannot be read now, while `text` is still in use */
};

struct token *token_new(struct str path);
struct token *token_free(struct token *token); /* returns NULL */

/* Reads the file if it has changed. An error only while nothing has ever been read from it: a file
 * that is being replaced may be missing or half written for a moment. */
int token_refresh(struct token *token, struct err *err);

/* Reads the file whatever it looks like. True if it holds another token now. */
bool token_reread(struct token *token);

bool token_has_expired(const struct token *token, int64_t now_seconds);

/* What an administrator should know of it: it will expire within a day (a tenth of its life, if
 * that is shorter), the file cannot be read any more, or others can read it. Empty: nothing. */
void token_warn(const struct token *token, int64_t now_seconds, char *ret, size_t size);

/* The moment of its end, in UTC. */
struct token_time {
    char text[32];
} token_end(const struct token *token);

#endif
