/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's clocks as this program reads them, and the libraries that it opens (libcurl): for
 * deadlines that are kept by real time. They can be made to leap, so that a deadline of minutes,
 * which no machine is too slow for, passes when the test says so. Who sleeps is not woken by it. */
#ifndef SONDE_TESTS_KERNEL_TIME_H
#define SONDE_TESTS_KERNEL_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* From now on it is later by so much. */
void time_leap(int64_t ns);

/* Time stands still until that has happened, which is asked at each reading, and leaps then. */
void time_leap_when(bool (*has_happened)(void), int64_t ns);

/* How often CLOCK_MONOTONIC was read. */
uint64_t time_readings(void);

#endif
