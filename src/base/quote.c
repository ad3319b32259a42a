/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes text from outside safe to print inside a sentence. */
#include "base/quote.h"

static size_t put_escape(char *to, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";

    to[0] = '\\';
    if (byte == '\n' || byte == '\t' || byte == '\r') {
        to[1] = byte == '\n' ? 'n' : byte == '\t' ? 't' : 'r';
        return 2;
    }
    to[1] = 'x';
    to[2] = hex[byte >> 4];
    to[3] = hex[byte & 15];
    return 4;
}

struct quote quote(struct str s)
{
    struct quote quoted;
    size_t n = 0;

    while (s.n) {
        char unit[4];
        size_t length = str_printable_len(s);
        size_t unit_n = length;

        if (length)
            memcpy(unit, s.p, length);
        else
            unit_n = put_escape(unit, (unsigned char)s.p[0]);
        if (n + unit_n > QUOTE_MAX) {
            memcpy(quoted.text + n, "…", strlen("…"));
            n += strlen("…");
            break;
        }
        memcpy(quoted.text + n, unit, unit_n);
        n += unit_n;
        s = str_skip(s, length ? length : 1);
    }
    quoted.text[n] = '\0';
    return quoted;
}
