/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An error that a person can act on: a code for the program, a sentence for the log or terminal.
 * A function that can fail returns 0 or -errno and takes a `struct err *` as its last parameter. */
#ifndef SONDE_BASE_ERR_H
#define SONDE_BASE_ERR_H

#include <errno.h>
#include <stdarg.h>

struct err {
    int code; /* positive errno, 0 = none */
    char text[500];
};

/* Sets the sentence (what failed, on what, what to do) and returns -code, so that
 * `return err_set(err, ENOENT, "…")` is the idiom. err may be NULL where nobody wants the text. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts context before the sentence: "context: sentence". Returns -err->code. */
int err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The system's words for an errno, thread-safe and in English whatever the locale. */
const char *err_words(int code);

/* A short stable word for a code, for the `reason` label of error counters:
 * missing, timeout, too_big, garbled, failed, denied, unsupported, … Never user text. */
const char *err_reason(int code);

#endif
