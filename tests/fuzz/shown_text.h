/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares a text that was decoded from markup with the bytes that it was written from. Has a
 * reader of UTF-8 (RFC 3629) of its own, so that one mistake is not made twice. */
#ifndef SONDE_TESTS_FUZZ_SHOWN_TEXT_H
#define SONDE_TESTS_FUZZ_SHOWN_TEXT_H

#include "base/str.h"

#include "fuzz.h"

/* Bytes of the character that the text begins with; 0: it is not UTF-8. */
static inline size_t character_bytes(struct str text, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint8_t first = (uint8_t)text.p[0];
    size_t n = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? first : first & (0xffu >> (n + 1));

    if (n == 0 || first > 0xf4 || n > text.n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (((uint8_t)text.p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((uint8_t)text.p[i] & 0x3f);
    }
    *ret_code = code;
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* Each character is shown as it is or as "?": control characters and what is not UTF-8 always,
 * plain ASCII never. A control character of two bytes is one "?", or with `by_byte` two. */
static inline bool is_shown_as(struct str raw, struct str shown, bool by_byte)
{
    while (raw.n) {
        uint32_t code = 0;
        size_t n = character_bytes(raw, &code);
        bool is_hidden = n == 0 || code < ' ' || (code >= 0x7f && code < 0xa0);
        bool is_same = n && str_starts(shown, str_head(raw, n));
        bool is_mark = str_starts(shown, STR("?"));

        if (is_hidden ? !is_mark : !is_same && (code < 0x7f || !is_mark))
            return false;
        shown = str_skip(shown, is_same && !is_hidden ? n : 1);
        raw = str_skip(raw, n && !(is_hidden && by_byte) ? n : 1);
    }
    return shown.n == 0;
}

#endif
