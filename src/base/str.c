/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares, trims and splits borrowed strings. */
#include "base/str.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq(str_head(s, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix);
}

struct str str_trim(struct str s)
{
    while (s.n && is_space(s.p[0]))
        s = str_skip(s, 1);
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

struct str str_cut(struct str *rest, char sep)
{
    size_t at = str_find(*rest, sep);
    struct str part = str_head(*rest, at);

    *rest = at < rest->n ? str_skip(*rest, at + 1) : (struct str){ NULL, 0 };
    return part;
}

size_t str_find(struct str s, char byte)
{
    const char *hit = s.n ? memchr(s.p, byte, s.n) : NULL;

    return hit ? (size_t)(hit - s.p) : s.n;
}

size_t str_find_str(struct str s, struct str needle)
{
    const char *hit = s.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;

    return hit ? (size_t)(hit - s.p) : s.n;
}

/* RFC 3629, table 3-7 of the Unicode standard: overlong forms, surrogates and code points over
 * 10FFFF are invalid, and the second byte tells. */
size_t str_utf8_len(struct str s)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max, len;
    } forms[] = {
        { 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    for (size_t i = 0; s.n && i < COUNT(forms); i++) {
        unsigned char first = (unsigned char)s.p[0];

        if (first < forms[i].first_min || first > forms[i].first_max)
            continue;
        if (s.n < forms[i].len)
            return 0;
        for (size_t k = 1; k < forms[i].len; k++) {
            unsigned char next = (unsigned char)s.p[k];
            unsigned char min = k == 1 ? forms[i].second_min : 0x80;
            unsigned char max = k == 1 ? forms[i].second_max : 0xbf;

            if (next < min || next > max)
                return 0;
        }
        return forms[i].len;
    }
    return 0;
}

size_t str_printable_len(struct str s)
{
    size_t n = str_utf8_len(s);
    unsigned char first = n ? (unsigned char)s.p[0] : 0;
    bool is_c1 = n == 2 && first == 0xc2 && (unsigned char)s.p[1] < 0xa0;

    return first < 0x20 || first == 0x7f || is_c1 ? 0 : n;
}

size_t str_copy_printable(char *to, size_t room, struct str s)
{
    size_t n = 0;

    while (s.n) {
        size_t length = str_printable_len(s);
        struct str character = length ? str_head(s, length) : STR("?");

        if (character.n > room - n)
            break;
        memcpy(to + n, character.p, character.n);
        n += character.n;
        s = str_skip(s, length ? length : 1);
    }
    return n;
}

size_t str_distance(struct str a, struct str b)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST + 1];

    if (a.n > LONGEST || b.n > LONGEST)
        return a.n > b.n ? a.n : b.n;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t change = diagonal + (lower(a.p[i - 1]) != lower(b.p[j - 1]));
            size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

            diagonal = row[j];
            row[j] = best < change ? best : change;
        }
    }
    return row[b.n];
}
