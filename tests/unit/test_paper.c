/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is on paper is read back by poppler's pdftotext and pdfinfo. */
#include "base/spawn.h"
#include "made_plots.h"
#include "made_report.h"
#include "report/job_charts.h"
#include "report/paper.h"
#include "test.h"

#include "files.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUT_MAX = 1 << 23, BEGIN = 1790090000, PDF_MOST = 300 * 1000 };

struct fixture {
    struct arena arena;
    struct job_report report;
    struct buf out, text;
    struct err err;
    const char *path;
};

static struct fixture *f;

static void set_up(void)
{
    f = calloc(1, sizeof(*f));
    setenv("TZ", "UTC", 1);
    tzset();
    buf_init(&f->out, OUT_MAX);
    buf_init(&f->text, OUT_MAX);
    f->path = write_file("paper.pdf", "");
}

static void tear_down(void)
{
    buf_free(&f->out);
    buf_free(&f->text);
    arena_clear(&f->arena);
    free(f);
}

FIXTURE(set_up, tear_down)

/* Without spaces: how many of them there are between letters is a matter of judgement. */
static int take(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < piece.n; i++)
        if (!isspace((unsigned char)piece.p[i]))
            buf_byte(ctx, piece.p[i]);
    return 0;
}

static void assert_says(const char *expected)
{
    struct buf squeezed;

    buf_init(&squeezed, 1024);
    take(&squeezed, str_of(expected), NULL);
    assert_contains(f->text.p, squeezed.p);
    buf_free(&squeezed);
}

/* What `argv` says of the PDF, into f->text. */
static void read_back(const char *const *argv)
{
    struct spawn_result result;

    write_bytes(f->path, buf_str(&f->out));
    buf_reset(&f->text);
    if (spawn_run(&(struct spawn){ .argv = argv,
                                   .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
                                   .max_output = OUT_MAX,
                                   .sink = take,
                                   .ctx = &f->text },
                  &result, &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_string_equal(result.warning, "");
}

static void make_pdf(void)
{
    need("poppler");
    if (report_pdf(&f->out, &f->report, &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_in_range(f->out.n, 1000, PDF_MOST);
    read_back((const char *const[]){ "pdftotext", f->path, "-", NULL });
}

/* In a process of its own, as fonts are looked for once. Returns what it exits with: 0, or the
 * error; *ret_said is how much it wrote to standard error. */
static int make_pdf_elsewhere(const char *font_settings, off_t *ret_said)
{
    const char *settings = write_file("fonts.conf", font_settings);
    int said = open(f->path, O_RDWR | O_CLOEXEC), status;
    pid_t child;

    child = fork();
    if (child == 0) {
        setenv("FONTCONFIG_FILE", settings, 1);
        unsetenv("HOME");
        dup2(said, 2);
        _exit(-report_pdf(&f->out, &f->report, &f->err));
    }
    waitpid(child, &status, 0);
    *ret_said = lseek(said, 0, SEEK_END);
    close(said);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(fonts_without_a_cache_are_no_cause_for_complaint)
{
    off_t said;

    make_good(&f->report, &f->arena);
    assert_int_equal(make_pdf_elsewhere("<fontconfig><dir>/usr/share/fonts</dir>"
                                        "<cachedir>/proc/none</cachedir></fontconfig>",
                                        &said),
                     0);
    assert_int_equal(said, 0);
}

TEST(without_any_font_there_is_a_sentence_and_no_crash)
{
    off_t said;

    make_good(&f->report, &f->arena);
    assert_int_equal(
        make_pdf_elsewhere("<fontconfig><cachedir>/proc/none</cachedir></fontconfig>", &said),
        ENOENT);
}

TEST(paper_has_the_job_its_findings_advice_and_pages)
{
    make_wasteful(&f->report, &f->arena);
    make_plots(&f->report.facts, &f->arena, &(struct made_plots){ 8, 1000, 0, BEGIN, 30, 0.9 });
    make_pdf();
    assert_says("Job 4711 on beluga: train.sh");
    assert_says("critical");
    assert_says("6 of 8 GPUs did nothing");
    assert_says("3.2 of 64 CPUs were in use on average.");
    assert_says("#SBATCH --gpus-per-node=1");
    assert_says("CPUs in use by node");
    assert_says("80 % of 32 CPUs a node");
    assert_says("GPU memory in use");
    assert_says("1 / 4");
    assert_says("4 / 4");
    assert_says("2026-09-22T18:00:00+00:00, from Slurm's accounting (store), agents, "
                "http://prometheus.example:9090");
}

TEST(paper_tells_what_it_is)
{
    make_good(&f->report, &f->arena);
    make_pdf();
    read_back((const char *const[]){ "pdfinfo", f->path, NULL });
    assert_says("Job 4711 on beluga: train.sh");
    assert_says("Author: sonde");
    assert_says("(A4)");
}

TEST(a_good_job_is_told_so)
{
    make_good(&f->report, &f->arena);
    make_pdf();
    assert_says("Nothing to improve.");
}

TEST(a_waiting_job_is_told_why_on_paper)
{
    make_waiting(&f->report, &f->arena, "Licenses");
    make_pdf();
    assert_says("It waits for a licence that others have in use.");
    assert_says("Requested");
}

TEST(paper_of_a_simulated_job_says_so)
{
    make_good(&f->report, &f->arena);
    f->report.facts.origin.is_simulated = true;
    make_pdf();
    assert_says("Simulated cluster: this job never was");
    assert_says("simulated; sonde, 2026-09-22");
}

TEST(a_job_without_series_has_paper_without_charts)
{
    make_accounted(&f->report, &f->arena);
    make_pdf();
    assert_says("No measurements were found");
    assert_null(strstr(f->text.p, "Charts"));
    assert_says("1 / 1");
}

TEST(a_strangers_text_is_set_as_it_is)
{
    static const struct str texts[] = {
        STR_INIT("</script><h1>\r\nBcc: x"),
        STR_INIT("' dest='x \\ 漢字 שלום العربية \xf0\x9f\x92\xa9"),
        STR_INIT("\x01\xff\xc0\x80\xed\xa0\x80 \xe2\x80\xae gnihton"),
        STR_INIT(""),
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        make_hostile(&f->report, &f->arena, texts[i]);
        buf_reset(&f->out);
        make_pdf();
    }
    make_hostile(&f->report, &f->arena, texts[0]);
    buf_reset(&f->out);
    make_pdf();
    assert_says("</script><h1>??Bcc: x");
}

TEST(what_a_user_wrote_is_no_link_on_paper)
{
    struct str pdf;

    make_good(&f->report, &f->arena);
    f->report.facts.row.record.name = STR("https://evil.example/login");
    make_pdf();
    pdf = buf_str(&f->out);
    assert_true(str_find_str(pdf, STR("(https://portal.example/job/4711)")) < pdf.n);
    assert_true(str_find_str(pdf, STR("(https://evil.example")) == pdf.n);
}

TEST(a_name_of_a_megabyte_fits_on_paper)
{
    char *name = arena_alloc(&f->arena, 1 << 20);

    memset(name, 'x', 1 << 20);
    make_hostile(&f->report, &f->arena, (struct str){ name, 1 << 20 });
    make_pdf();
    assert_says("/ 3"); /* pages */
}

TEST(four_thousand_nodes_fit_on_a_few_pages)
{
    make_huge(&f->report, &f->arena);
    make_plots(&f->report.facts, &f->arena, &(struct made_plots){ 3, 1000, 4000, BEGIN, 300, 0.2 });
    make_pdf();
    assert_says("median of 4,000 nodes");
    assert_says("1 / 4");
}

TEST(fifty_lines_in_every_chart_are_not_too_much)
{
    make_wasteful(&f->report, &f->arena);
    make_plots(&f->report.facts, &f->arena, &(struct made_plots){ 50, 1000, 0, BEGIN, 300, 0.9 });
    make_pdf();
    assert_says("50 nodes");
}

TEST(nothing_is_no_number_on_paper)
{
    make_zero(&f->report, &f->arena);
    make_plots(&f->report.facts, &f->arena, &(struct made_plots){ 1, 1, 0, BEGIN, 60, 0 });
    make_pdf();
    assert_null(strcasestr(f->text.p, "nan"));
    assert_null(strcasestr(f->text.p, "inf"));
}

TEST(the_same_report_is_the_same_paper)
{
    struct buf again;

    make_wasteful(&f->report, &f->arena);
    make_pdf();
    buf_init(&again, OUT_MAX);
    assert_int_equal(report_pdf(&again, &f->report, &f->err), 0);
    assert_true(str_eq(buf_str(&f->out), buf_str(&again)));
    buf_free(&again);
}

TEST(what_is_too_large_is_an_error)
{
    struct buf small;

    make_good(&f->report, &f->arena);
    buf_init(&small, 5000);
    assert_int_equal(report_pdf(&small, &f->report, &f->err), -EFBIG);
    assert_string_equal(f->err.text, "the PDF is larger than 5000 bytes");
    buf_free(&small);
}

static uint32_t big_endian(const char *p)
{
    const unsigned char *bytes = (const unsigned char *)p;

    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

TEST(a_picture_has_the_size_of_its_chart)
{
    struct chart chart;

    make_wasteful(&f->report, &f->arena);
    assert_true(job_chart(&chart, &f->arena, &f->report.facts, JOB_CHART_CPU, 320, 200.5));
    assert_int_equal(chart_png(&f->out, &chart, 2, &f->err), 0);
    assert_memory_equal(f->out.p, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(big_endian(f->out.p + 16), 640);
    assert_int_equal(big_endian(f->out.p + 20), 401);
}

TEST(a_picture_has_a_ceiling)
{
    struct chart chart;
    struct buf small;

    make_wasteful(&f->report, &f->arena);
    assert_true(job_chart(&chart, &f->arena, &f->report.facts, JOB_CHART_CPU, 320, 200));
    assert_int_equal(chart_png(&f->out, &chart, 100, &f->err), -EFBIG);
    assert_int_equal(chart_png(&f->out, &chart, 0, &f->err), -EFBIG);
    buf_init(&small, 1000);
    assert_int_equal(chart_png(&small, &chart, 1, &f->err), -EFBIG);
    assert_string_equal(f->err.text, "the picture is larger than 1000 bytes");
    buf_free(&small);
}
