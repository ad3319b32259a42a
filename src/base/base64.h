/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Base64 in both alphabets of RFC 4648: that of mail and HTTP's passwords, and that of
 * web tokens. */
#ifndef SONDE_BASE_BASE64_H
#define SONDE_BASE_BASE64_H

#include "base/buf.h"

/* In the alphabet of web tokens, which is also that of paths in URLs, without padding. Writes at
 * `to` and returns the length; no NUL. */
static inline size_t base64_web_length(size_t n_bytes)
{
    return (4 * n_bytes + 2) / 3;
}
size_t base64_write_web(char *to, struct str bytes);

static inline void base64_put_web(struct buf *to, struct str bytes)
{
    char *at = buf_room(to, base64_web_length(bytes.n));

    if (at) {
        to->n += base64_write_web(at, bytes);
        buf_end(to);
    }
}

/* As mail has it (RFC 2045): in the other alphabet, padded, in lines of 76 ended by CR LF. */
void base64_put_lines(struct buf *to, struct str bytes);

/* Padding may be missing. False if there is anything else wrong or no room. */
bool base64_decode(struct str in, char *out, size_t room, size_t *ret_n);

#endif
