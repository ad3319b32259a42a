/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a refresh costs: from what squeue and sinfo print, in the lines of prometheus-slurm-exporter
 * and in JSON, to the segments of every collector. The floor is to find the lines and to copy them.
 * On files of this size prometheus-slurm-exporter takes 3.6 s. */
#include "snapshot/publish.h"
#include "source/cli.h"
#include "sim_print.h"

#include "bench.h"

#include <malloc.h>

enum { PIECE = 65536, ROUNDS = 7, ROOM = 512 << 20 };

static const int64_t now = 1767225600;

struct input {
    size_t jobs, nodes; /* wanted */
    enum sim_format squeue_format, sinfo_format;
    struct buf squeue, sinfo, copy;
    struct edition *nodes_edition, *jobs_edition; /* of the last refresh */
    size_t most_bytes;                            /* allocated during one */
    struct bench_run floor, read, refresh;
};

static int append(void *ctx, struct str piece)
{
    buf_put(ctx, piece);
    return 0;
}

static void print(const struct input *input, size_t jobs, enum sim_format format, struct buf *to)
{
    struct sim sim = { .nodes = input->nodes, .jobs = jobs, .seed = 1 };

    buf_init(to, ROOM);
    if (sim_print(&sim, format, STR(""), now, append, to) < 0 || to->over)
        bench_give_up("the simulation has printed too much");
}

static size_t count_lines(struct str text)
{
    size_t lines = 0;

    for (; text.n; lines++)
        text = str_skip(text, str_find(text, '\n') + 1);
    return lines;
}

/* squeue -r prints each task of an array, some four times as many lines as there are records: of
 * those, as many as are wanted, evenly chosen. */
static void thin_out(struct buf *text, size_t wanted)
{
    size_t lines = count_lines(buf_str(text)), line = 0, kept = 0;
    char *to = text->p;

    for (struct str rest = buf_str(text); rest.n; line++) {
        size_t n = str_find(rest, '\n') + 1;

        if (line * wanted / lines >= kept && kept < wanted) {
            memmove(to, rest.p, n);
            to += n;
            kept++;
        }
        rest = str_skip(rest, n);
    }
    if (kept != wanted)
        bench_give_up("%zu lines were made instead of %zu", kept, wanted);
    text->n = (size_t)(to - text->p);
}

static void generate(struct input *input)
{
    print(input, input->jobs, input->squeue_format, &input->squeue);
    print(input, input->jobs, input->sinfo_format, &input->sinfo);
    if (input->squeue_format == SIM_SQUEUE_LINES)
        thin_out(&input->squeue, input->jobs);
    buf_init(&input->copy, ROOM);
    memset(buf_room(&input->copy, input->squeue.n), 0, input->squeue.n);
}

static void run_floor(void *ctx)
{
    struct input *input = ctx;
    size_t lines = count_lines(buf_str(&input->squeue)) + count_lines(buf_str(&input->sinfo));

    memcpy(input->copy.p, input->squeue.p, input->squeue.n);
    memcpy(input->copy.p, input->sinfo.p,
           input->sinfo.n < input->squeue.n ? input->sinfo.n : input->squeue.n);
    if (lines < input->nodes)
        bench_give_up("there are only %zu lines", lines);
}

static struct section *read_all(enum kind kind, const struct answer_class *class, struct str text)
{
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(class, section, SIZE_MAX);
    struct err err;

    for (; text.n; text = str_skip(text, PIECE))
        if (class->feed(answer, str_head(text, PIECE), &err) < 0)
            bench_give_up("%s", err.text);
    if (class->end(answer, &err) < 0)
        bench_give_up("%s", err.text);
    answer_free(answer);
    if (section->skipped)
        bench_give_up("%llu records were left out", (unsigned long long)section->skipped);
    return section;
}

static struct section *read_jobs(const struct input *input)
{
    struct section *section = read_all(KIND_JOBS, &answer_foreign_jobs, buf_str(&input->squeue));

    if (section->jobs.n < input->jobs * 9 / 10 || section->jobs.n > input->jobs * 11 / 10)
        bench_give_up("%zu jobs were read instead of %zu", section->jobs.n, input->jobs);
    return section;
}

static struct section *read_nodes(const struct input *input)
{
    struct section *section = read_all(KIND_NODES, &answer_foreign_nodes, buf_str(&input->sinfo));

    if (section->nodes.n != input->nodes)
        bench_give_up("%zu nodes were read instead of %zu", section->nodes.n, input->nodes);
    return section;
}

static void run_read(void *ctx)
{
    const struct input *input = ctx;

    section_unref(read_jobs(input));
    section_unref(read_nodes(input));
}

static size_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* What is allocated is most when the facts and what was rendered of them are both there. */
static struct edition *render(struct input *input, struct section *section)
{
    static const struct publish_config config = {
        .collectors = (collector_set)-1,
        .max_segment = 64 << 20,
        .clock = &clock_real,
    };
    struct edition *edition = edition_new(&config, section, FORMAT_BIT(METRIC_TEXT));
    size_t bytes = allocated_bytes();

    if (bytes > input->most_bytes)
        input->most_bytes = bytes;
    section_unref(section);
    return edition;
}

/* While what the last one rendered is still served. */
static void run_refresh(void *ctx)
{
    struct input *input = ctx;
    struct edition *nodes = render(input, read_nodes(input));
    struct edition *jobs = render(input, read_jobs(input));

    edition_unref(input->nodes_edition);
    edition_unref(input->jobs_edition);
    input->nodes_edition = nodes;
    input->jobs_edition = jobs;
}

static void measure(struct input *input)
{
    struct bench_run runs[] = {
        { .run = run_floor, .ctx = input },
        { .run = run_read, .ctx = input },
        { .run = run_refresh, .ctx = input },
    };

    size_t before;

    generate(input);
    before = allocated_bytes();
    bench_measure(runs, COUNT(runs), ROUNDS);
    input->floor = runs[0];
    input->read = runs[1];
    input->refresh = runs[2];
    buf_free(&input->copy);
    input->most_bytes -= before;
}

static void release(struct input *input)
{
    edition_unref(input->nodes_edition);
    edition_unref(input->jobs_edition);
    buf_free(&input->squeue);
    buf_free(&input->sinfo);
}

static double nanoseconds_per_job(const struct input *input)
{
    return input->refresh.best_seconds * 1e9 / (double)input->jobs;
}

static void measure_lines(void)
{
    static const struct {
        size_t jobs;
        const char *read, *refresh;
        enum bench_goal goal;
    } sizes[] = {
        { 1000, "lines: read 1,000 jobs, 100 nodes", "lines: refresh 1,000 jobs, 100 nodes",
          BENCH_NO_GOAL },
        { 10000, "lines: read 10,000 jobs, 1,000 nodes", "lines: refresh 10,000 jobs, 1,000 nodes",
          BENCH_NO_GOAL },
        { 100000, "lines: read 100,000 jobs, 10,000 nodes",
          "lines: refresh 100,000 jobs, 10,000 nodes", BENCH_AT_MOST },
    };
    struct input inputs[COUNT(sizes)];

    for (size_t i = 0; i < COUNT(sizes); i++) {
        inputs[i] = (struct input){ .jobs = sizes[i].jobs,
                                    .nodes = sizes[i].jobs / 10,
                                    .squeue_format = SIM_SQUEUE_LINES,
                                    .sinfo_format = SIM_SINFO_LINES };
        measure(&inputs[i]);
        bench_row(&(struct bench_row){ sizes[i].read, "ms", inputs[i].read.median_seconds * 1e3,
                                       inputs[i].floor.median_seconds * 1e3, sizes[i].goal, 100 });
        bench_row(&(struct bench_row){ sizes[i].refresh, "ms",
                                       inputs[i].refresh.median_seconds * 1e3,
                                       inputs[i].floor.median_seconds * 1e3, sizes[i].goal, 180 });
        release(&inputs[i]);
    }
    bench_row(&(struct bench_row){ "lines: one job of 100,000, and of 10,000", "ns",
                                   nanoseconds_per_job(&inputs[2]), nanoseconds_per_job(&inputs[1]),
                                   BENCH_RATIO_AT_MOST, 1.5 });
    bench_row(&(struct bench_row){ "lines: most memory of 100,000 jobs", "MiB",
                                   (double)inputs[2].most_bytes / (1 << 20), 0, BENCH_AT_MOST,
                                   30 });
}

static void measure_json(const char *name, enum sim_format squeue, enum sim_format sinfo)
{
    struct input input = {
        .jobs = 10000, .nodes = 1000, .squeue_format = squeue, .sinfo_format = sinfo
    };
    double megabytes;

    measure(&input);
    megabytes = (double)(input.squeue.n + input.sinfo.n) / 1e6;
    bench_row(&(struct bench_row){ name, "MB/s", megabytes / input.refresh.best_seconds,
                                   megabytes / input.floor.best_seconds, BENCH_AT_LEAST, 300 });
    release(&input);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    measure_lines();
    measure_json("json: refresh 10,000 jobs, Slurm 22.05", SIM_SQUEUE_JSON_38, SIM_NODES_JSON_38);
    measure_json("json: refresh 10,000 jobs, Slurm 24.11", SIM_SQUEUE_JSON_42, SIM_NODES_JSON_42);
    return 0;
}
