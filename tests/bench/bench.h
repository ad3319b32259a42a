/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every benchmark includes. A benchmark is one file, bench_NAME.c: it measures, prints its
 * rows of the one table, and exits with 0 whether goals are met or not; with 1 only if it could not
 * measure. Machines are noisy: what is measured stands beside a reference from the same run. */
#ifndef SONDE_TESTS_BENCH_H
#define SONDE_TESTS_BENCH_H

#include <stddef.h>

/* First thing in main. Prints the table's head unless the only argument is --no-header. */
void bench_begin(int argc, char **argv);

/* Says why and exits with 1. */
_Noreturn void bench_give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

double bench_cpu_seconds(void);  /* of this process, all threads */
double bench_wall_seconds(void); /* monotonic */

/* Something to run again and again, and the CPU time that a run takes. */
struct bench_run {
    void (*run)(void *ctx);
    void *ctx;
    double best_seconds, median_seconds;
};

/* Runs all of them in turn, `rounds` times (at most 100), so that a slow moment of the machine
 * falls on each alike, and fills in the times. */
void bench_measure(struct bench_run *runs, size_t n, size_t rounds);

enum bench_goal {
    BENCH_NO_GOAL,
    BENCH_AT_LEAST,
    BENCH_AT_MOST,
    BENCH_RATIO_AT_LEAST, /* of measured to reference */
    BENCH_RATIO_AT_MOST,
};

struct bench_row {
    const char *name;
    const char *unit;
    double measured;
    double reference; /* 0: there is none */
    enum bench_goal goal;
    double limit;
};

void bench_row(const struct bench_row *row);

#endif
