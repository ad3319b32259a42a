/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How wide a character is on a terminal follows Unicode's EastAsianWidth.txt, coarsely. */
#include "base/shown.h"

static uint32_t code_of(struct str character)
{
    const unsigned char *p = (const unsigned char *)character.p;
    uint32_t code = character.n == 1 ? p[0] : p[0] & (0xffu >> (character.n + 1));

    for (size_t i = 1; i < character.n; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

struct span {
    uint32_t first, last;
};

static bool is_in(uint32_t code, const struct span *spans, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (code >= spans[i].first && code <= spans[i].last)
            return true;
    return false;
}

/* What has no place of its own, or changes the direction of others, could hide or reorder text. */
static bool is_invisible(uint32_t code)
{
    static const struct span spans[] = {
        { 0xad, 0xad },       { 0x34f, 0x34f },    { 0x61c, 0x61c },   { 0x115f, 0x1160 },
        { 0x180b, 0x180f },   { 0x200b, 0x200f },  { 0x2028, 0x202e }, { 0x2060, 0x206f },
        { 0x3164, 0x3164 },   { 0xfeff, 0xfeff },  { 0xffa0, 0xffa0 }, { 0xfff9, 0xfffb },
        { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff }
    };

    return is_in(code, spans, COUNT(spans));
}

static size_t columns_of(uint32_t code)
{
    static const struct span none[] = {
        { 0x300, 0x36f },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
        { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }
    };
    static const struct span two[] = {
        { 0x1100, 0x115f },   { 0x2e80, 0xa4cf },   { 0xac00, 0xd7a3 },  { 0xf900, 0xfaff },
        { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },  { 0x1f300, 0x1f64f },
        { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd }
    };

    return is_in(code, none, COUNT(none)) ? 0 : is_in(code, two, COUNT(two)) ? 2 : 1;
}

struct str shown_take(struct str *rest)
{
    size_t n = str_printable_len(*rest);
    struct str character = str_head(*rest, n);

    if (n == 0) {
        n = str_utf8_len(*rest);
        character = STR("?");
    } else if (is_invisible(code_of(character))) {
        character = STR("?");
    }
    *rest = str_skip(*rest, n ? n : 1);
    return character;
}

void shown_put(struct buf *to, struct str text)
{
    while (text.n)
        buf_put(to, shown_take(&text));
}

size_t shown_width(struct str text)
{
    size_t width = 0;

    while (text.n)
        width += columns_of(code_of(shown_take(&text)));
    return width;
}

size_t shown_put_cut(struct buf *to, struct str text, size_t room)
{
    /* accents take no room, and could be any number */
    size_t most_bytes = room < SIZE_MAX / 16 ? room * 16 : SIZE_MAX;
    size_t width = 0, kept_width = 0, taken = 0, kept = 0;

    for (struct str rest = text; rest.n && width <= room && taken <= most_bytes;) {
        if (width < room) {
            kept = taken;
            kept_width = width;
        }
        width += columns_of(code_of(shown_take(&rest)));
        taken = text.n - rest.n;
    }
    if (width <= room && taken <= most_bytes) {
        shown_put(to, text);
        return width;
    }
    shown_put(to, str_head(text, kept));
    if (room)
        buf_text(to, "…");
    return kept_width + (room ? 1 : 0);
}
