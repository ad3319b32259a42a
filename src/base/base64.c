/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes and decodes Base64 in both alphabets of RFC 4648. */
#include "base/base64.h"

static size_t write_digits(char *to, struct str bytes, const char digits[64])
{
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < bytes.n; i++) {
        bits = bits << 8 | (unsigned char)bytes.p[i];
        for (n_bits += 8; n_bits >= 6; n_bits -= 6)
            to[n++] = digits[bits >> (n_bits - 6) & 0x3f];
    }
    if (n_bits)
        to[n++] = digits[bits << (6 - n_bits) & 0x3f];
    return n;
}

size_t base64_write_web(char *to, struct str bytes)
{
    return write_digits(to, bytes,
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
}

void base64_put_lines(struct buf *to, struct str bytes)
{
    enum { LINE_BYTES = 57 };
    char line[LINE_BYTES / 3 * 4 + 2];

    for (; bytes.n; bytes = str_skip(bytes, LINE_BYTES)) {
        size_t n = write_digits(line, str_head(bytes, LINE_BYTES),
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");

        while (n % 4)
            line[n++] = '=';
        line[n++] = '\r';
        line[n++] = '\n';
        buf_put(to, (struct str){ line, n });
    }
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(struct str in, char *out, size_t room, size_t *ret_n)
{
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;

    while (in.n && in.p[in.n - 1] == '=')
        in.n--;
    for (size_t i = 0; i < in.n; i++) {
        int digit = digit_of(in.p[i]);

        if (digit < 0)
            return false;
        bits = bits << 6 | (unsigned)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            if (n == room)
                return false;
            n_bits -= 8;
            out[n++] = (char)(bits >> n_bits & 0xff);
        }
    }
    *ret_n = n;
    return true;
}
