/* SPDX-License-Identifier: GPL-2.0-or-later */
/* String builder with a maximum size. */
#include "base/buf.h"

#include "base/arena.h"
#include "base/num.h"

#include <stdarg.h>

void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){ .max = max };
}

void buf_free(struct buf *buf)
{
    free(buf->p);
    *buf = (struct buf){ 0 };
}

void buf_reset(struct buf *buf)
{
    buf->n = 0;
    buf->over = false;
    if (buf->p)
        buf->p[0] = '\0';
}

char *buf_grow(struct buf *buf, size_t bytes)
{
    if (buf->over || bytes > buf->max - buf->n) {
        buf->over = true;
        return NULL;
    }
    if (bytes >= buf->cap - buf->n) {
        size_t cap = buf->cap ? buf->cap : 128;

        while (cap - buf->n <= bytes)
            cap += cap / 2;
        if (cap - 1 > buf->max)
            cap = buf->max + 1;
        buf->p = heap_resize(buf->p, cap, 1);
        buf->cap = cap;
    }
    return buf->p + buf->n;
}

void buf_put(struct buf *buf, struct str s)
{
    char *room = buf_room(buf, s.n);

    if (!room)
        return;
    if (s.n)
        memcpy(room, s.p, s.n);
    buf->n += s.n;
    buf_end(buf);
}

void buf_byte(struct buf *buf, char c)
{
    buf_put(buf, (struct str){ &c, 1 });
}

void buf_text(struct buf *buf, const char *text)
{
    buf_put(buf, str_of(text));
}

void buf_cut(struct buf *buf, struct str s, size_t most)
{
    struct str start = str_head(s, most);

    while (start.n < s.n && start.n && (s.p[start.n] & 0xc0) == 0x80) /* inside a character */
        start.n--;
    buf_put(buf, start);
    if (start.n < s.n)
        buf_text(buf, "…");
}

void buf_u64(struct buf *buf, uint64_t value)
{
    char digits[NUM_U64_MAX];

    buf_put(buf, (struct str){ digits, num_put_u64(digits, value) });
}

void buf_i64(struct buf *buf, int64_t value)
{
    if (value < 0)
        buf_byte(buf, '-');
    buf_u64(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void buf_double(struct buf *buf, double value)
{
    char digits[NUM_DOUBLE_MAX];

    buf_put(buf, (struct str){ digits, num_put_double(digits, value) });
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    int length;
    char *room;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    room = length < 0 ? NULL : buf_room(buf, (size_t)length);
    if (room) {
        vsnprintf(room, (size_t)length + 1, format, again);
        buf->n += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void buf_json(struct buf *buf, struct str s)
{
    static const char hex[] = "0123456789abcdef";

    buf_byte(buf, '"');
    while (s.n) {
        unsigned char c = (unsigned char)s.p[0];
        size_t length = str_utf8_len(s);

        if (c == '"' || c == '\\') {
            buf_put(buf, (struct str){ (char[]){ '\\', (char)c }, 2 });
        } else if (c < 0x20 || c == 0x7f) {
            buf_put(buf,
                    (struct str){ (char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] }, 6 });
        } else if (length == 0) {
            buf_put(buf, STR("\xef\xbf\xbd"));
        } else {
            buf_put(buf, str_head(s, length));
        }
        s = str_skip(s, length ? length : 1);
    }
    buf_byte(buf, '"');
}

void buf_html(struct buf *buf, struct str s)
{
    while (s.n) {
        size_t length = str_utf8_len(s);

        switch (s.p[0]) {
        case '&':
            buf_text(buf, "&amp;");
            break;
        case '<':
            buf_text(buf, "&lt;");
            break;
        case '>':
            buf_text(buf, "&gt;");
            break;
        case '"':
            buf_text(buf, "&quot;");
            break;
        case '\'':
            buf_text(buf, "&#39;");
            break;
        case '\0':
            buf_put(buf, STR("\xef\xbf\xbd"));
            break;
        default:
            buf_put(buf, length ? str_head(s, length) : STR("\xef\xbf\xbd"));
        }
        s = str_skip(s, length ? length : 1);
    }
}

/* RFC 3986, 2.3: all but unreserved characters. */
void buf_url(struct buf *buf, struct str s)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (is_letter || c == '-' || c == '.' || c == '_' || c == '~')
            buf_byte(buf, (char)c);
        else
            buf_put(buf, (struct str){ (char[]){ '%', hex[c >> 4], hex[c & 15] }, 3 });
    }
}
