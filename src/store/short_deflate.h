/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Deflates short texts against a dictionary: one block with the fixed Huffman codes of RFC 1951
 * (3.2.6), which any inflate reads. zlib does the same for any text, but for a few hundred bytes it
 * spends most of its time on the dictionary and on codes that are then not used. */
#ifndef SONDE_STORE_SHORT_DEFLATE_H
#define SONDE_STORE_SHORT_DEFLATE_H

#include "base/str.h"

#include <stdint.h>

enum {
    SHORT_DEFLATE_MAX = 4096,
    SHORT_DICTIONARY_MAX = 4096,
    SHORT_HASH_BITS = 11,
    SHORT_SYMBOLS = 288
};

/* All that is found out of a dictionary once. One thread at a time. */
struct short_deflate {
    struct {
        uint16_t code;
        uint16_t n_bits;
    } symbols[SHORT_SYMBOLS];
    size_t n_dictionary;
    uint16_t heads[1 << SHORT_HASH_BITS]; /* of the dictionary: position + 1 of the last, 0: none */
    uint16_t recent[1 << SHORT_HASH_BITS];
    uint16_t before[SHORT_DICTIONARY_MAX + SHORT_DEFLATE_MAX]; /* by position: likewise */
    char window[SHORT_DICTIONARY_MAX + SHORT_DEFLATE_MAX];     /* the dictionary, then the text */
};

/* dictionary.n is at most SHORT_DICTIONARY_MAX. */
void short_deflate_init(struct short_deflate *deflate, struct str dictionary);

/* text.n is at most SHORT_DEFLATE_MAX. Returns the length of what was written, 0 if it takes more
 * than `room`. */
size_t short_deflate(struct short_deflate *deflate, struct str text, char *to, size_t room);

#endif
