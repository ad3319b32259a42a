/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the doctor prints: findings, one below the other, each with a mark, and what to do about
 * those that are not ok. */
#ifndef SONDE_CMD_DOCTOR_PAGE_H
#define SONDE_CMD_DOCTOR_PAGE_H

#include <stdbool.h>
#include <stdio.h>

enum mark {
    MARK_OK,
    MARK_NOTE, /* worth knowing; nothing is wrong */
    MARK_WARN, /* sonde works, but not as well as it could */
    MARK_FAIL, /* sonde cannot work like this */
    MARKS,
};

struct page {
    FILE *to;
    size_t width;
    bool has_colours;
    const char *title;    /* to be printed before the next finding, or NULL */
    size_t counts[MARKS]; /* findings so far */
};

/* A space at which a line is not broken. */
#define GLUE "\037"

/* As wide as the terminal, and in colours if it is one and NO_COLOR is not set. */
struct page page_for(FILE *to);

/* Of the findings that follow; not printed if there are none. */
void page_title(struct page *page, const char *title);

/* Texts may hold anything: what is not printable is replaced, and their lines stay lines. */
void page_finding(struct page *page, enum mark mark, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What to do about the last finding. */
void page_advice(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The rest of a line of other output: a space before each word, and its end. */
void page_line(FILE *to, const char *text);

/* "12 findings: 10 ok, 1 note, 1 warning, 0 failures" and a sentence. */
void page_summary(struct page *page, const char *sentence);

#endif
