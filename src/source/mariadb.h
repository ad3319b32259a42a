/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A MariaDB or MySQL server (libmariadb, loaded when it is first needed): slurmdbd's. */
#ifndef SONDE_SOURCE_MARIADB_H
#define SONDE_SOURCE_MARIADB_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct mariadb;

struct mariadb_settings {
    struct str host;   /* or empty: by socket */
    uint16_t port;     /* 0: the usual one */
    struct str socket; /* or empty: the usual one */
    struct str user;
    struct str password_file; /* or empty; never on a command line */
    struct str database;      /* or empty */
    struct str ca_file;       /* then TLS is required; or empty */
    unsigned timeout_seconds;
};

/* -ENOENT: libmariadb is not installed (the sentence names the package); -EACCES; -ECONNREFUSED;
 * -ETIMEDOUT; … */
int mariadb_open(const struct mariadb_settings *settings, struct mariadb **ret, struct err *err);
struct mariadb *mariadb_close(struct mariadb *mariadb); /* returns NULL */

/* Runs one statement. Values of parameters ("?") are texts, sent apart from it; rows, if any, go to
 * `row` as texts (NULL: p is NULL), valid during the call; negative stops and is passed on. */
int mariadb_run(struct mariadb *mariadb, const char *statement, const struct str *parameter,
                size_t n_parameters, int (*row)(void *ctx, const struct str *cell, size_t n),
                void *ctx, struct err *err);

/* `name`: quoted as an identifier, whatever is in it; 'text': as a string, for statements that take
 * no parameters (GRANT, CREATE USER, CREATE VIEW). -EINVAL for what the server cannot have, and for
 * a name with control characters, which it could. */
struct buf;
int mariadb_put_name(struct buf *to, struct str name, struct err *err);
int mariadb_put_string(struct buf *to, struct str text, struct err *err);

#endif
