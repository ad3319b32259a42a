/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The embedded series of a machine with 100 jobs, 20 series each, every 15 s for 7 days: how large
 * the file becomes beside 16 bytes a sample, what a tick costs, and how soon all samples of a job
 * are there. What is written is like what an agent tells: counters that grow by odd amounts, gauges
 * that stand still and gauges that jump. */
#include "base/buf.h"
#include "base/clock.h"
#include "store/ticks.h"

#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    JOBS = 100,
    SERIES = 20,
    INTERVAL = 15,
    DAY = 86400,
    DAYS = 7,
    BEGIN = 1700006400, /* a whole number of windows */
    END = BEGIN + DAYS * DAY,
    READS = 21,
    MEGABYTE = 1000000,
};

static const char *const words[SERIES] = {
    "cpu_seconds",  "user_seconds", "system_seconds", "throttled_seconds", "memory_peak",
    "memory_bytes", "swap_bytes",   "read_bytes",     "written_bytes",     "read_calls",
    "write_calls",  "files",        "processes",      "threads",           "oom_kills",
    "limit_hits",   "cpu_waiting",  "memory_waiting", "io_waiting",        "cpus_allocated",
};

struct job {
    double cores;
    uint64_t number[SERIES]; /* microseconds, pages, blocks or pieces */
};

struct world {
    char directory[40], path[60];
    uint64_t seed;
    struct job job[JOBS];
    struct tick_sample sample[JOBS * SERIES];
    char name[JOBS * SERIES][60];
    struct ticks_writer *writer;
    double put_seconds, worst_tidy_seconds;
    size_t ticks;
};

/* Steele, Lea and Flood, "Fast splittable pseudorandom number generators". */
static double draw(struct world *world)
{
    uint64_t z = world->seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

/* Around 0, mostly within 1. */
static double drift(struct world *world)
{
    return (draw(world) + draw(world) + draw(world) + draw(world)) - 2;
}

static void begin_job(struct world *world, struct job *job)
{
    job->cores = 1 + floor(draw(world) * 31);
    for (size_t i = 0; i < SERIES; i++)
        job->number[i] = (uint64_t)(draw(world) * 1e6);
    job->number[3] = job->number[6] = job->number[14] = job->number[15] = job->number[17] = 0;
    job->number[5] = job->number[4] = 1 << 20;
}

static void go_on(struct world *world, struct job *job)
{
    double used = 15e6 * job->cores * (0.97 + 0.02 * drift(world));
    uint64_t *number = job->number;

    number[0] += (uint64_t)used;
    number[1] += (uint64_t)(used * 0.96);
    number[2] += (uint64_t)(used * 0.04 * (1 + 0.2 * drift(world)));
    number[5] += (uint64_t)(int64_t)(drift(world) * (draw(world) < 0.02 ? 20000 : 600));
    number[4] = number[5] > number[4] && number[5] < 1 << 30 ? number[5] : number[4];
    number[7] += draw(world) < 0.3 ? (uint64_t)(draw(world) * 5000) : 0;
    number[8] += draw(world) < 0.2 ? (uint64_t)(draw(world) * 20000) : 0;
    number[9] += (uint64_t)(100 + draw(world) * 300);
    number[10] += (uint64_t)(50 + draw(world) * 50);
    number[13] += draw(world) < 0.01 ? 1 : 0;
    number[16] += (uint64_t)(draw(world) * 40000);
    number[18] += draw(world) < 0.3 ? (uint64_t)(draw(world) * 1e6) : 0;
}

/* In what a number is counted. */
static double value_of(const struct job *job, size_t series)
{
    bool is_seconds = series < 4 || (series >= 16 && series <= 18);
    bool is_pages = series >= 4 && series <= 8;

    if (is_seconds)
        return (double)job->number[series] / 1e6;
    return (double)job->number[series] * (is_pages ? 4096 : 1);
}

static void make_names(struct world *world)
{
    for (size_t i = 0; i < JOBS; i++) {
        begin_job(world, &world->job[i]);
        for (size_t k = 0; k < SERIES; k++) {
            char *name = world->name[k * JOBS + i]; /* as agents tell: family by family */

            snprintf(name, sizeof(world->name[0]), "job/beluga/%zu/c%zu/%s", 4700 + i, i % 8,
                     words[k]);
            world->sample[k * JOBS + i].name = str_of(name);
        }
    }
}

static void put(struct world *world, int64_t time)
{
    double began = bench_wall_seconds();
    struct err err;

    if (ticks_put(world->writer, time, world->sample, JOBS * SERIES, &err) < 0)
        bench_give_up("%s", err.text);
    world->put_seconds += bench_wall_seconds() - began;
    world->ticks++;
}

static void tidy(struct world *world, int64_t now)
{
    struct ticks_tidied tidied = { .is_more = true };
    struct err err;

    while (tidied.is_more) {
        double began = bench_wall_seconds(), seconds;

        if (ticks_tidy(world->writer, now, true, &tidied, &err) < 0)
            bench_give_up("%s", err.text);
        seconds = bench_wall_seconds() - began;
        world->worst_tidy_seconds = fmax(world->worst_tidy_seconds, seconds);
    }
}

static void write_days(struct world *world)
{
    for (int64_t time = BEGIN + INTERVAL; time < END; time += INTERVAL) {
        for (size_t i = 0; i < JOBS; i++) {
            go_on(world, &world->job[i]);
            for (size_t k = 0; k < SERIES; k++)
                world->sample[k * JOBS + i].value = value_of(&world->job[i], k);
        }
        put(world, time);
        tidy(world, time);
    }
}

/* All series of one job. */
static void read_job(struct ticks_reader *reader, int64_t from)
{
    struct arena arena = { 0 };
    struct ticks_line *line;
    size_t n, samples = 0;
    struct err err;

    if (ticks_read(reader, STR("job/beluga/4742/"), from, END, 1000, &arena, &line, &n, &err) < 0)
        bench_give_up("%s", err.text);
    for (size_t i = 0; i < n; i++)
        samples += line[i].n;
    if (samples < (size_t)(SERIES * ((END - from) / INTERVAL - 1)))
        bench_give_up("%zu samples were read", samples);
    arena_clear(&arena);
}

/* The shortest time of many. */
static void print_reading(struct world *world, const char *name, int64_t from)
{
    struct ticks_reader *reader;
    double best = INFINITY;
    struct err err;

    if (ticks_reader_open(world->path, &reader, &err) < 0)
        bench_give_up("%s", err.text);
    for (size_t i = 0; i < READS; i++) {
        double began = bench_wall_seconds();

        read_job(reader, from);
        best = fmin(best, bench_wall_seconds() - began);
    }
    ticks_reader_close(reader);
    bench_row(&(struct bench_row){
        .name = name,
        .unit = "ms",
        .measured = best * 1000,
        .goal = BENCH_AT_MOST,
        .limit = 30,
    });
}

static void print_writing(struct world *world)
{
    const double plain_bytes = (double)JOBS * SERIES * (DAY / INTERVAL) * DAYS * 16;
    struct ticks_stats stats;
    struct err err;

    if (ticks_stats(world->writer, &stats, &err) < 0)
        bench_give_up("%s", err.text);
    bench_row(&(struct bench_row){
        .name = "ticks: 7 days of 2,000 series",
        .unit = "MB",
        .measured = (double)stats.bytes / MEGABYTE,
        .reference = plain_bytes / MEGABYTE,
        .goal = BENCH_AT_MOST,
        .limit = 200,
    });
    bench_row(&(struct bench_row){
        .name = "ticks: writing one",
        .unit = "ms",
        .measured = world->put_seconds * 1000 / (double)world->ticks,
    });
    bench_row(&(struct bench_row){
        .name = "ticks: the longest step of tidying",
        .unit = "ms",
        .measured = world->worst_tidy_seconds * 1000,
    });
}

static void remove_files(const struct world *world)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char path[80];

    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(path, sizeof(path), "%s%s", world->path, suffixes[i]);
        unlink(path);
    }
    rmdir(world->directory);
}

int main(int argc, char **argv)
{
    struct world *world = heap_alloc(sizeof(*world));
    struct ticks_config config = { .retention_seconds = DAYS * DAY };
    struct err err;

    bench_begin(argc, argv);
    snprintf(world->directory, sizeof(world->directory), "/tmp/bench_ticks.XXXXXX");
    if (!mkdtemp(world->directory))
        bench_give_up("cannot make a directory");
    snprintf(world->path, sizeof(world->path), "%s/series.db", world->directory);
    config.path = world->path;
    if (ticks_open(&config, &world->writer, &err) < 0)
        bench_give_up("%s", err.text);
    make_names(world);
    write_days(world);
    print_writing(world);
    print_reading(world, "ticks: a job's last hour", END - 3600);
    print_reading(world, "ticks: a job's day", END - DAY);
    print_reading(world, "ticks: a job's 7 days", BEGIN);
    ticks_close(world->writer);
    remove_files(world);
    free(world);
    return 0;
}
