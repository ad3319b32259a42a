/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was used of the machine: by this process with all that it has started, and by the daemons
 * that it asks. Exact to the microsecond, where /proc counts in hundredths of a second. */
#ifndef SONDE_TESTS_BENCH_DOORS_USAGE_H
#define SONDE_TESTS_BENCH_DOORS_USAGE_H

#include <stdint.h>
#include <sys/types.h>

enum daemon { SLURMCTLD, SLURMRESTD, DAEMONS };

/* Seconds. */
struct usage {
    double cpu;              /* of this process, its ended children and those that live */
    double daemons[DAEMONS]; /* likewise CPU */
    double wall;
};

/* Since some moment. A daemon with pid 0 is not looked at. */
struct usage usage_now(const pid_t daemons[DAEMONS]);
struct usage usage_between(const struct usage *from, const struct usage *to);

/* The most memory that a process has ever had, 0 if that cannot be told. */
uint64_t usage_peak_bytes(pid_t pid);
pid_t usage_child(void); /* one that lives, 0 if there is none */

#endif
