/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports on paper, in which any bytes stand for all texts that a user has a part in: the first
 * byte is which report, the next eight a number that measured values are. What is made is a PDF
 * whose table of objects leads to objects (ISO 32000-1, 7.5). */
#include "report/paper.h"

#include "made_report.h"

#include "fuzz.h"

enum { MOST_BYTES = 2048, HEAD = 9, PDF_MAX = 8 << 20 };

/* "12 0 obj" */
static bool is_object(struct str text)
{
    size_t n = 0;

    while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
        n++;
    return n > 0 && str_starts(str_skip(text, n), STR(" 0 obj"));
}

/* "xref\n0 12\n0000000000 65535 f \n0000000123 00000 n \n…". Not that each is the object of its
 * number: cairo 1.16 numbers one for each link, has its entry lead to another, and does not write
 * it. */
static void check_table(struct str pdf, size_t offset)
{
    struct str rest = str_skip(pdf, offset);
    size_t n;

    FUZZ_CHECK(str_starts(rest, STR("xref\n0 ")));
    rest = str_skip(rest, strlen("xref\n0 "));
    n = strtoul(rest.p, NULL, 10);
    str_cut(&rest, '\n');
    FUZZ_CHECK(n > 1 && rest.n > n * 20);
    for (size_t i = 0; i < n; i++, rest = str_skip(rest, 20))
        if (rest.p[17] == 'n')
            FUZZ_CHECK(is_object(str_skip(pdf, strtoul(rest.p, NULL, 10))), "object %zu", i);
    FUZZ_CHECK(str_starts(rest, STR("trailer")));
}

static void check_pdf(struct str pdf)
{
    static const struct str mark = STR_INIT("startxref\n");
    struct str end = str_skip(pdf, pdf.n > 64 ? pdf.n - 64 : 0);
    size_t offset;

    FUZZ_CHECK(str_starts(pdf, STR("%PDF-1.")) && pdf.n > 1000);
    end = str_skip(end, str_find_str(end, mark) + mark.n);
    FUZZ_CHECK(end.n > 0 && str_find_str(end, STR("%%EOF")) < end.n);
    offset = strtoul(end.p, NULL, 10);
    FUZZ_CHECK(offset < pdf.n);
    /* from version 1.5 on the table may be an object, which is compressed */
    if (pdf.p[offset] == 'x')
        check_table(pdf, offset);
}

/* What was measured of the job as a whole, and of its first node. */
static void set_numbers(struct job_facts *facts, double number)
{
    facts->total.cpu_seconds = facts->total.memory_peak_bytes = number;
    facts->time_ratio = facts->cpu_ratio = facts->memory_ratio = facts->gpu_ratio = number;
    facts->mean_cpus = facts->cpu_seconds_held = number;
    if (facts->n_nodes)
        facts->node[0].use = facts->total;
    for (size_t i = 0; i < facts->plot[PLOT_MEMORY].n_lines; i++)
        facts->plot[PLOT_MEMORY].line[i].value[0] = number;
}

static void make_report(struct job_report *report, struct arena *arena, uint8_t which,
                        struct str text)
{
    if (which % 4 == 0) {
        make_hostile(report, arena, text);
        return;
    }
    if (which % 4 == 1)
        make_good(report, arena);
    else if (which % 4 == 2)
        make_zero(report, arena);
    else
        make_accounted(report, arena);
    report->facts.row.record.name = report->facts.row.record.user = text;
    report->facts.row.record.nodes = report->facts.row.record.reason = text;
    report->more_url = text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct job_report report;
    struct arena arena = { 0 };
    struct err err = { 0 };
    struct buf pdf;
    double number;

    if (size < HEAD || size > MOST_BYTES)
        return 0;
    memcpy(&number, data + 1, sizeof(number));
    make_report(&report, &arena, data[0], str_skip(text, HEAD));
    set_numbers(&report.facts, number);
    buf_init(&pdf, PDF_MAX);
    FUZZ_CHECK(report_pdf(&pdf, &report, &err) == 0, "%s", err.text);
    check_pdf(buf_str(&pdf));
    buf_free(&pdf);
    arena_clear(&arena);
    return 0;
}
