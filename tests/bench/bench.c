/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clocks, tables and goals for all benchmarks. */
#include "bench.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS_MAX = 100 };

static const char *program = "bench";

static void print_columns(const char *name, const char *measured, const char *unit,
                          const char *reference, const char *ratio, const char *goal,
                          const char *verdict)
{
    printf("%-44s %10s %-6s %10s %7s  %-14s %s\n", name, measured, unit, reference, ratio, goal,
           verdict);
    fflush(stdout);
}

void bench_begin(int argc, char **argv)
{
    bool header = true;

    program = argv[0];
    if (argc == 2 && str_eq(str_of(argv[1]), STR("--no-header")))
        header = false;
    else if (argc != 1)
        bench_give_up("usage: %s [--no-header]", program);
    if (header)
        print_columns("benchmark", "measured", "unit", "reference", "ratio", "goal", "verdict");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
    fprintf(stderr, "%s: built with sanitizers or without optimisation, so the times say nothing\n",
            program);
#endif
}

void bench_give_up(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: could not measure: ", program);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_cpu_seconds(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_wall_seconds(void)
{
    return seconds(CLOCK_MONOTONIC);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_measure(struct bench_run *runs, size_t n, size_t rounds)
{
    double(*times)[ROUNDS_MAX] = calloc(n, sizeof(*times));

    if (!times || rounds < 1 || rounds > ROUNDS_MAX)
        bench_give_up("%zu rounds of %zu runs are not possible", rounds, n);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n; i++) {
            double begin = bench_cpu_seconds();

            runs[i].run(runs[i].ctx);
            times[i][round] = bench_cpu_seconds() - begin;
        }
    }
    for (size_t i = 0; i < n; i++) {
        qsort(times[i], rounds, sizeof(times[i][0]), compare_doubles);
        runs[i].best_seconds = times[i][0];
        runs[i].median_seconds = times[i][rounds / 2];
    }
    free(times);
}

/* Three digits, and all of those before the point. */
static void put_number(char to[16], double value)
{
    int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;

    snprintf(to, 16, "%.*f", decimals, value);
}

static const struct {
    const char *sign;
    bool of_ratio, at_most;
} goals[] = {
    [BENCH_NO_GOAL] = { "", false, false },
    [BENCH_AT_LEAST] = { ">= ", false, false },
    [BENCH_AT_MOST] = { "<= ", false, true },
    [BENCH_RATIO_AT_LEAST] = { "ratio >= ", true, false },
    [BENCH_RATIO_AT_MOST] = { "ratio <= ", true, true },
};

void bench_row(const struct bench_row *row)
{
    char measured[16], reference[16] = "-", ratio[16] = "-", goal[32] = "-";
    double ratio_value = row->reference > 0 ? row->measured / row->reference : 0;
    double judged = goals[row->goal].of_ratio ? ratio_value : row->measured;
    bool met = goals[row->goal].at_most ? judged <= row->limit : judged >= row->limit;

    put_number(measured, row->measured);
    if (row->reference > 0) {
        put_number(reference, row->reference);
        put_number(ratio, ratio_value);
    }
    if (row->goal != BENCH_NO_GOAL)
        snprintf(goal, sizeof(goal), "%s%g", goals[row->goal].sign, row->limit);
    print_columns(row->name, measured, row->unit, reference, ratio, goal,
                  row->goal == BENCH_NO_GOAL ? "-"
                  : met                      ? "ok"
                                             : "MISSED");
}
