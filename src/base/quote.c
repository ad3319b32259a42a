/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/quote.h"

/* C0, DEL, and C1, which some terminals obey too (U+0080 to U+009F: c2 80 to c2 9f). */
static bool is_control(struct str character)
{
    unsigned char first = (unsigned char)character.p[0];

    return first < 0x20 || first == 0x7f ||
           (character.n == 2 && first == 0xc2 && (unsigned char)character.p[1] < 0xa0);
}

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
        char unit[8];
        size_t unit_n = 0;
        struct str character = str_head(s, str_utf8_len(s));

        if (character.n && !is_control(character)) {
            memcpy(unit, character.p, character.n);
            unit_n = character.n;
        } else {
            character = str_head(s, character.n ? character.n : 1);
            for (size_t i = 0; i < character.n; i++)
                unit_n += put_escape(unit + unit_n, (unsigned char)character.p[i]);
        }
        if (n + unit_n > QUOTE_MAX) {
            memcpy(quoted.text + n, "…", strlen("…"));
            n += strlen("…");
            break;
        }
        memcpy(quoted.text + n, unit, unit_n);
        n += unit_n;
        s = str_skip(s, character.n);
    }
    quoted.text[n] = '\0';
    return quoted;
}
