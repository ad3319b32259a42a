/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A password or a token that has a file to itself: one line of text. */
#ifndef SONDE_BASE_SECRET_H
#define SONDE_BASE_SECRET_H

#include "base/err.h"

enum { SECRET_MAX = 64 * 1024 }; /* bytes of the file */

/* *ret is for secret_free and has no line end. What open(2) and read(2) say, with a sentence that
 * calls it what it is ("password"); -EINVAL for a file that is empty, too long, or holds control
 * characters, which HTTP cannot send (RFC 7617). Never waits for a pipe. */
int secret_read(const char *path, const char *what, char **ret, struct err *err);

/* Whether it will do, for who starts a program with it: as secret_read, and -EPERM if everybody may
 * read or change the file. */
int secret_check(const char *path, const char *what, struct err *err);

char *secret_free(char *secret); /* wipes it; returns NULL */

#endif
