/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated cluster at the size of the largest ones: it feeds the other measurements, and must
 * not be what they measure. */
#include "sim_print.h"

#include "bench.h"

enum { ROUNDS = 7 };

struct look {
    enum kind kind;
    struct sim sim;
    int64_t time;
};

static void look(void *ctx)
{
    struct look *at = ctx;

    /* A later time in each round, as a refresh has it. */
    section_unref(sim_section(&at->sim, at->kind, at->time += 30));
}

static int count_bytes(void *ctx, struct str piece)
{
    *(size_t *)ctx += piece.n;
    return 0;
}

struct printing {
    struct sim sim;
    size_t bytes;
};

static void print(void *ctx)
{
    struct printing *printing = ctx;

    printing->bytes = 0;
    sim_print(&printing->sim, SIM_SQUEUE_JSON_42, STR(""), 1767225600, count_bytes,
              &printing->bytes);
}

int main(int argc, char **argv)
{
    const int64_t time = 1767225600;
    struct look jobs = { KIND_JOBS, { .nodes = 10000, .jobs = 100000, .seed = 1 }, time };
    struct look nodes = { KIND_NODES, { .nodes = 10000, .jobs = 100000, .seed = 1 }, time };
    struct printing printing = { .sim = { .nodes = 2000, .jobs = 20000, .seed = 1 } };
    struct bench_run runs[] = { { look, &jobs, 0, 0 },
                                { look, &nodes, 0, 0 },
                                { print, &printing, 0, 0 } };

    bench_begin(argc, argv);
    bench_measure(runs, COUNT(runs), ROUNDS);
    bench_row(&(struct bench_row){ "simulated: 100,000 jobs", "ms", runs[0].median_seconds * 1e3, 0,
                                   BENCH_AT_MOST, 150 });
    bench_row(&(struct bench_row){ "simulated: 10,000 nodes", "ms", runs[1].median_seconds * 1e3, 0,
                                   BENCH_AT_MOST, 50 });
    bench_row(&(struct bench_row){ "simulated: squeue --json of 24.11", "MB/s",
                                   (double)printing.bytes / 1e6 / runs[2].median_seconds, 0,
                                   BENCH_NO_GOAL, 0 });
    return 0;
}
