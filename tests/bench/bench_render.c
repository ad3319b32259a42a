/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rendering a million samples with three labels, escaping and all, against a floor: a loop that
 * only copies and formats, without escaping, without looking for duplicates, without a ceiling. */
#include "bench.h"

#include "base/arena.h"
#include "base/num.h"
#include "metric/segment.h"
#include "metric/writer.h"

enum { SAMPLES = 1000000, USERS = 10000, PARTITIONS = 100, ROOM = 192 << 20 };

static const struct family families[] = {
    { "slurm_user_state_total", METRIC_GAUGE, "Jobs.", { "state", "username", "partition" } },
};

struct input {
    struct str users[USERS], partitions[PARTITIONS];
    struct buf out;
};

static void floor_run(void *ctx)
{
    struct input *input = ctx;
    char *to = input->out.p;

    for (uint64_t i = 0; i < SAMPLES; i++) {
        struct str user = input->users[i % USERS], partition = input->partitions[i / USERS];

        memcpy(to, "slurm_user_state_total{state=\"RUNNING\",username=\"", 49);
        to += 49;
        memcpy(to, user.p, user.n);
        to += user.n;
        memcpy(to, "\",partition=\"", 13);
        to += 13;
        memcpy(to, partition.p, partition.n);
        to += partition.n;
        memcpy(to, "\"} ", 3);
        to += 3;
        to += num_put_u64(to, i * 37 % 100000);
        *to++ = '\n';
    }
    input->out.n = (size_t)(to - input->out.p);
}

static void render(struct input *input, bool fractions)
{
    struct metric_writer writer;

    buf_reset(&input->out);
    metric_writer_init(&writer, &input->out, METRIC_TEXT, STR(""), families, 1);
    metric_begin(&writer, 0);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const struct str values[] = { STR("RUNNING"), input->users[i % USERS],
                                      input->partitions[i / USERS] };

        if (fractions)
            metric_double(&writer, values, (double)i * 0.37);
        else
            metric_u64(&writer, values, i * 37 % 100000);
    }
    if (writer.samples != SAMPLES)
        bench_give_up("%zu of %d samples were written", writer.samples, SAMPLES);
    metric_writer_free(&writer);
}

static void render_integers(void *ctx)
{
    render(ctx, false);
}

static void render_fractions(void *ctx)
{
    render(ctx, true);
}

static void format_fractions(void *ctx)
{
    struct input *input = ctx;
    char *to = input->out.p;

    for (uint64_t i = 0; i < SAMPLES; i++)
        to += num_put_double(to, (double)i * 0.37 + 0.001);
}

static void compress(void *ctx)
{
    struct input *input = ctx;
    struct buf copy;

    buf_init(&copy, ROOM);
    buf_put(&copy, buf_str(&input->out));
    segment_unref(segment_new(&copy));
}

int main(int argc, char **argv)
{
    struct input *input = heap_alloc(sizeof(*input));
    struct arena arena = { 0 };
    struct bench_run runs[] = {
        { .run = floor_run, .ctx = input },        { .run = render_integers, .ctx = input },
        { .run = format_fractions, .ctx = input }, { .run = render_fractions, .ctx = input },
        { .run = compress, .ctx = input },
    };

    bench_begin(argc, argv);
    for (int i = 0; i < USERS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "user%d", i);
        input->users[i] = arena_str(&arena, str_of(name));
    }
    for (int i = 0; i < PARTITIONS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "part%d", i);
        input->partitions[i] = arena_str(&arena, str_of(name));
    }
    buf_init(&input->out, ROOM);
    memset(buf_room(&input->out, ROOM - 1), 0, ROOM - 1);
    bench_measure(runs, COUNT(runs), 5);
    bench_row(&(struct bench_row){ "render 1,000,000 samples, 3 labels", "ms",
                                   runs[1].median_seconds * 1e3, runs[0].median_seconds * 1e3,
                                   BENCH_RATIO_AT_MOST, 2.5 });
    bench_row(&(struct bench_row){ "format a non-integer", "ns", runs[2].median_seconds * 1e3, 0,
                                   BENCH_AT_MOST, 150 });
    bench_row(&(struct bench_row){ "render 1,000,000 non-integers, 3 labels", "ms",
                                   runs[3].median_seconds * 1e3, runs[0].median_seconds * 1e3,
                                   BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "compress those, once per refresh", "ms",
                                   runs[4].median_seconds * 1e3, 0, BENCH_NO_GOAL, 0 });
    arena_clear(&arena);
    buf_free(&input->out);
    free(input);
    return 0;
}
