/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts allocations of our own code. The linker's --wrap (tests/unit/meson.build) leads every call
 * of an allocating function in our objects, all of which are linked statically, through here; those
 * inside shared libraries stay what they are. */
#ifndef SONDE_TESTS_COUNT_ALLOCATIONS_H
#define SONDE_TESTS_COUNT_ALLOCATIONS_H

#include <stdatomic.h>

extern atomic_ulong n_allocations;

#endif
