/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report on paper, of a job with eight lines of 1,000 points in each chart, and of one with
 * fifty; and how much more memory a thousand of them in a row take. */
#include "report/paper.h"

#include "bench.h"
#include "made_plots.h"
#include "made_report.h"

#include <cairo-pdf.h>
#include <sys/resource.h>

enum { ROUNDS = 15, IN_A_ROW = 1000, OUT_MAX = 1 << 23, BEGIN = 1790090000 };

struct input {
    struct arena arena;
    struct job_report report;
    size_t bytes; /* of the PDF */
};

static void make_input(struct input *input, size_t n_lines)
{
    make_wasteful(&input->report, &input->arena);
    make_plots(&input->report.facts, &input->arena,
               &(struct made_plots){ n_lines, 1000, 0, BEGIN, 30, 0.5 });
}

static void run(void *ctx)
{
    struct input *input = ctx;
    struct err err = { 0 };
    struct buf out;

    buf_init(&out, OUT_MAX);
    if (report_pdf(&out, &input->report, &err) < 0)
        bench_give_up("%s", err.text);
    input->bytes = out.n;
    buf_free(&out);
}

static cairo_status_t drop(void *ctx, const unsigned char *data, unsigned int length)
{
    (void)ctx;
    (void)data;
    (void)length;
    return CAIRO_STATUS_SUCCESS;
}

/* What nobody can do without: the same number of points, in one line on one page. */
static void run_floor(void *ctx)
{
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(drop, ctx, 595, 842);
    cairo_t *cairo = cairo_create(surface);

    for (int i = 0; i < 7 * 8 * 300; i++)
        cairo_line_to(cairo, i % 500, i * 31 % 800);
    cairo_stroke(cairo);
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
}

static double peak_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

int main(int argc, char **argv)
{
    struct input few = { 0 }, many = { 0 };
    struct bench_run runs[] = {
        { .run = run_floor },
        { .run = run, .ctx = &few },
        { .run = run, .ctx = &many },
    };
    double before;

    bench_begin(argc, argv);
    make_input(&few, 8);
    make_input(&many, 50);
    bench_measure(runs, COUNT(runs), ROUNDS);
    bench_row(&(struct bench_row){ "PDF of 7 charts with 8 lines", "ms",
                                   runs[1].median_seconds * 1e3, runs[0].median_seconds * 1e3,
                                   BENCH_AT_MOST, 500 });
    bench_row(&(struct bench_row){ "PDF of 7 charts with 8 lines", "KB", (double)few.bytes / 1e3, 0,
                                   BENCH_AT_MOST, 300 });
    bench_row(&(struct bench_row){ "PDF of 7 charts with 50 lines", "ms",
                                   runs[2].median_seconds * 1e3, runs[0].median_seconds * 1e3,
                                   BENCH_AT_MOST, 500 });
    bench_row(&(struct bench_row){ "PDF of 7 charts with 50 lines", "KB", (double)many.bytes / 1e3,
                                   0, BENCH_AT_MOST, 300 });
    before = peak_bytes();
    for (int i = 0; i < IN_A_ROW; i++)
        run(&few);
    bench_row(&(struct bench_row){ "growth by 1,000 PDFs in a row", "KB",
                                   (peak_bytes() - before) / 1e3, 0, BENCH_AT_MOST, 1000 });
    arena_clear(&few.arena);
    arena_clear(&many.arena);
    return 0;
}
