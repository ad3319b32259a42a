/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts calls of malloc and its kin. */
#include "count_allocations.h"

atomic_ulong n_allocations;

#define COUNTED(type, name, parameters, arguments)                                                 \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        atomic_fetch_add(&n_allocations, 1);                                                       \
        return __real_##name arguments;                                                            \
    }

COUNTED(void *, malloc, (size_t n), (n))
COUNTED(void *, calloc, (size_t n, size_t size), (n, size))
COUNTED(void *, realloc, (void *old, size_t size), (old, size))
COUNTED(void *, reallocarray, (void *old, size_t n, size_t size), (old, n, size))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
COUNTED(int, posix_memalign, (void **p, size_t alignment, size_t size), (p, alignment, size))
COUNTED(char *, strdup, (const char *s), (s))
COUNTED(char *, strndup, (const char *s, size_t n), (s, n))
