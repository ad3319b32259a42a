/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A borrowed string: a pointer and a length into memory that somebody else owns.
 * Not ended by NUL, may hold any byte. Everything read from outside is cut up with these. */
#ifndef SONDE_BASE_STR_H
#define SONDE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* How many items an array has; not for pointers. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct str {
    const char *p;
    size_t n;
};

/* A literal as a str, also in static tables. */
#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }

/* For printf: "%.*s", STR_ARG(s). */
#define STR_ARG(s) (int)(s).n, (s).p

static inline struct str str_of(const char *text)
{
    return (struct str){ text, text ? strlen(text) : 0 };
}

static inline struct str str_span(const char *begin, const char *end)
{
    return (struct str){ begin, (size_t)(end - begin) };
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline struct str str_skip(struct str s, size_t n)
{
    if (n > s.n)
        n = s.n;
    return n ? (struct str){ s.p + n, s.n - n } : s; /* NULL + 0 is undefined */
}

static inline struct str str_head(struct str s, size_t n)
{
    return (struct str){ s.p, n < s.n ? n : s.n };
}

/* ASCII only: what Slurm writes as structure is ASCII, and the locale must not matter. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* Without the white space at both ends. */
struct str str_trim(struct str s);

/* Cuts *rest at the first `sep`: returns what stands before it and leaves what follows in *rest.
 * Without a `sep`, returns everything and leaves *rest empty with p = NULL. To walk all parts:
 *     for (struct str part, rest = list; rest.p;) { part = str_cut(&rest, ','); … } */
struct str str_cut(struct str *rest, char sep);

/* Position of a byte or a string, or s.n when absent. */
size_t str_find(struct str s, char byte);
size_t str_find_str(struct str s, struct str needle);

/* Length of the UTF-8 character at the start of s, or 0 if the bytes are not valid UTF-8. */
size_t str_utf8_len(struct str s);

/* Likewise, and 0 for control characters: C0, DEL, and C1, which some terminals obey too. */
size_t str_printable_len(struct str s);

/* Copies what fits, in whole characters, with '?' for each byte that belongs to no printable one.
 * Returns the length; no NUL. */
size_t str_copy_printable(char *to, size_t room, struct str s);

/* How many edits lead from a to b (Levenshtein, ASCII case ignored); for "did you mean". */
size_t str_distance(struct str a, struct str b);

#endif
