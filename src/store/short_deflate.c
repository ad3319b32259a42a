/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compresses short texts with fixed Huffman codes and a dictionary. */
#include "store/short_deflate.h"

enum { MATCH_MIN = 4, MATCH_MAX = 258, CHAIN_MAX = 8, END_OF_BLOCK = 256 };

/* RFC 1951, 3.2.5: where the codes of lengths (from 257 on) and of distances begin. */
static const uint16_t lengths[] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
static const uint16_t distances[] = { 1,   2,   3,    4,    5,    7,    9,    13,  17,
                                      25,  33,  49,   65,   97,   129,  193,  257, 385,
                                      513, 769, 1025, 1537, 2049, 3073, 4097, 6145 };

static uint32_t hash_at(const char *p)
{
    uint32_t bytes;

    memcpy(&bytes, p, sizeof(bytes));
    return bytes * UINT32_C(2654435761) >> (32 - SHORT_HASH_BITS);
}

static void remember(struct short_deflate *deflate, uint16_t *heads, size_t at)
{
    uint16_t *head = &heads[hash_at(deflate->window + at)];

    deflate->before[at] = *head;
    *head = (uint16_t)(at + 1);
}

/* Huffman codes, unlike numbers, go from their highest bit on. */
static uint16_t turn(unsigned code, unsigned n)
{
    unsigned turned = 0;

    for (unsigned i = 0; i < n; i++)
        turned |= (code >> i & 1) << (n - 1 - i);
    return (uint16_t)turned;
}

/* RFC 1951, 3.2.6. */
static void fix_codes(struct short_deflate *deflate)
{
    static const struct {
        uint16_t first, n_bits, code;
    } ranges[] = { { 0, 8, 0x30 }, { 144, 9, 0x190 }, { 256, 7, 0 }, { 280, 8, 0xc0 } };
    size_t range = 0;

    for (unsigned i = 0; i < SHORT_SYMBOLS; i++) {
        range += range + 1 < COUNT(ranges) && i == ranges[range + 1].first;
        deflate->symbols[i].n_bits = ranges[range].n_bits;
        deflate->symbols[i].code =
            turn(ranges[range].code + i - ranges[range].first, ranges[range].n_bits);
    }
}

void short_deflate_init(struct short_deflate *deflate, struct str dictionary)
{
    memset(deflate, 0, sizeof(*deflate));
    fix_codes(deflate);
    deflate->n_dictionary = dictionary.n;
    memcpy(deflate->window, dictionary.p, dictionary.n);
    for (size_t i = 0; i + MATCH_MIN <= dictionary.n; i++)
        remember(deflate, deflate->heads, i);
}

/* Bits go from the lowest to the highest of each byte. */
struct bits {
    unsigned char *to, *end;
    uint64_t held;
    unsigned n_held;
};

static void put_bits(struct bits *bits, uint32_t value, unsigned n)
{
    bits->held |= (uint64_t)value << bits->n_held;
    bits->n_held += n;
    for (; bits->n_held >= 8; bits->n_held -= 8, bits->held >>= 8) {
        if (bits->to < bits->end)
            *bits->to = (unsigned char)bits->held;
        bits->to++;
    }
}

static void put_symbol(const struct short_deflate *deflate, struct bits *bits, unsigned symbol)
{
    put_bits(bits, deflate->symbols[symbol].code, deflate->symbols[symbol].n_bits);
}

static unsigned find_code(const uint16_t *begins, size_t n, size_t value)
{
    unsigned code = 0;

    while (code + 1 < n && begins[code + 1] <= value)
        code++;
    return code;
}

static void put_match(const struct short_deflate *deflate, struct bits *bits, size_t length,
                      size_t distance)
{
    unsigned of_length = find_code(lengths, COUNT(lengths), length);
    unsigned of_distance = find_code(distances, COUNT(distances), distance);

    put_symbol(deflate, bits, 257 + of_length);
    if (of_length >= 8 && length < MATCH_MAX)
        put_bits(bits, (uint32_t)(length - lengths[of_length]), of_length / 4 - 1);
    put_bits(bits, turn(of_distance, 5), 5);
    if (of_distance >= 4)
        put_bits(bits, (uint32_t)(distance - distances[of_distance]), of_distance / 2 - 1);
}

/* The length of the longest that stands before, and how far before. */
static size_t find_match(const struct short_deflate *deflate, size_t at, size_t end,
                         size_t *ret_distance)
{
    size_t most = end - at < MATCH_MAX ? end - at : MATCH_MAX, best = 0;
    const char *here = deflate->window + at;
    unsigned left = CHAIN_MAX;

    for (uint16_t next = deflate->recent[hash_at(here)]; next && left;
         next = deflate->before[next - 1], left--) {
        const char *there = deflate->window + next - 1;
        size_t n = 0;

        while (n < most && here[n] == there[n])
            n++;
        if (n > best) {
            best = n;
            *ret_distance = (size_t)(here - there);
        }
    }
    return best;
}

size_t short_deflate(struct short_deflate *deflate, struct str text, char *to, size_t room)
{
    struct bits bits = { .to = (unsigned char *)to, .end = (unsigned char *)to + room };
    size_t end = deflate->n_dictionary + text.n, at = deflate->n_dictionary, n;

    if (text.n)
        memcpy(deflate->window + at, text.p, text.n);
    memcpy(deflate->recent, deflate->heads, sizeof(deflate->recent));
    put_bits(&bits, 1, 1); /* the last block */
    put_bits(&bits, 1, 2); /* fixed codes */
    while (at < end) {
        size_t distance = 0,
               length = at + MATCH_MIN <= end ? find_match(deflate, at, end, &distance) : 0;

        if (length >= MATCH_MIN) {
            put_match(deflate, &bits, length, distance);
        } else {
            put_symbol(deflate, &bits, (unsigned char)deflate->window[at]);
            length = 1;
        }
        for (; length; length--, at++)
            if (at + MATCH_MIN <= end)
                remember(deflate, deflate->recent, at);
    }
    put_symbol(deflate, &bits, END_OF_BLOCK);
    put_bits(&bits, 0, (8 - bits.n_held) % 8);
    n = (size_t)(bits.to - (unsigned char *)to);
    return n <= room ? n : 0;
}
