/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every fuzz target includes. A target is one file, fuzz_NAME.c, that defines the function
 * below: it gives the bytes to the code under test and checks what must hold for any input.
 * tests/fuzz/meson.build says how to run it. */
#ifndef SONDE_TESTS_FUZZ_H
#define SONDE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* https://llvm.org/docs/LibFuzzer.html; always returns 0, or ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, " " __VA_ARGS__);                                                      \
            fprintf(stderr, "\n");                                                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Numbers that look random and depend on nothing but the seed (Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators"). */
static inline uint64_t fuzz_random(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A seed made from bytes (FNV-1a). */
static inline uint64_t fuzz_seed(const uint8_t *data, size_t size)
{
    uint64_t seed = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        seed = (seed ^ data[i]) * UINT64_C(0x100000001b3);
    return seed;
}

#endif
