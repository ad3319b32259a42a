/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A report from a store with a thousand jobs of the same user and name: to gather what is known, to
 * judge it, and to write it as text; and how much more memory a thousand reports in a row take, in
 * all forms but paper (bench_paper.c). */
#include "base/clock.h"
#include "report/gather.h"
#include "report/report.h"
#include "store/store.h"

#include "bench.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 51, IN_A_ROW = 1000, JOBS = 1000, NODES = 64, NOW = 1790090000, OUT_MAX = 1 << 23 };

struct input {
    char path[40];
    struct store_reader *reader;
    struct arena arena; /* of the settings */
    struct check_settings checks;
    bool is_in_all_forms;
};

static void check(int code, const struct err *err)
{
    if (code < 0)
        bench_give_up("%s", err->text);
}

static struct job_record record_of(uint32_t id)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = NOW - 100000 - (int64_t)id * 10;
    record.start_time = record.submit_time + 60;
    record.end_time = record.start_time + 86400;
    record.as_of = NOW;
    record.origin = RECORD_ACCOUNTED;
    record.tasks = 1;
    record.state.base = JOB_COMPLETED;
    record.user = STR("alice");
    record.account = STR("physics");
    record.partition = STR("long");
    record.name = STR("train");
    record.nodes = STR("n[1-64]");
    record.tres = STR("billing=512,cpu=512,mem=4T,node=64");
    record.cpus = 512;
    record.node_count = NODES;
    record.memory_bytes = UINT64_C(4) << 40;
    record.time_limit_minutes = 2880;
    record.cpu_seconds = 1e7;
    return record;
}

static void put_finals(struct store *store, const struct job_record *record)
{
    struct err err = { 0 };

    for (int i = 1; i <= NODES; i++) {
        char node[16], document[200];
        struct final_record final = { .job_id = record->id };

        snprintf(node, sizeof(node), "n%d", i);
        snprintf(document, sizeof(document),
                 "{\"cpu_seconds\":%d,\"memory_peak_bytes\":%d,\"threads_peak\":9,"
                 "\"names\":[{\"name\":\"python3\",\"cpu_seconds\":%d}]}",
                 i * 10000, i << 24, i * 9000);
        final.node = str_of(node);
        final.begin_time = record->start_time;
        final.end_time = record->end_time;
        final.document = str_of(document);
        check(store_put_final(store, STR("beluga"), &final, &err), &err);
    }
}

static void make_store(struct input *input)
{
    struct err err = { 0 };
    struct store *store;

    snprintf(input->path, sizeof(input->path), "/tmp/bench-report-%d.db", (int)getpid());
    check(store_open(str_of(input->path), false, &store, &err), &err);
    check(store_begin(store, &err), &err);
    for (uint32_t id = 1; id <= JOBS; id++) {
        struct job_record record = record_of(id);

        check(store_put_job(store, STR("beluga"), &record, &err), &err);
        if (id <= 20)
            put_finals(store, &record);
    }
    check(store_commit(store, &err), &err);
    store_close(store);
    check(store_reader_open(str_of(input->path), &input->reader, &err), &err);
    check_settings_default(&input->arena, &input->checks);
}

static void end_store(struct input *input)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };

    store_reader_close(input->reader);
    arena_clear(&input->arena);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        char path[60];

        snprintf(path, sizeof(path), "%s%s", input->path, suffixes[i]);
        unlink(path);
    }
}

static void put_forms(const struct input *input, const struct job_report *report, struct buf *out)
{
    report_text(out, report, &(struct text_look){ .width = 80 });
    if (!input->is_in_all_forms)
        return;
    report_json(out, report);
    report_html(out, report, HTML_PAGE);
    report_html(out, report, HTML_MAIL);
    petricore_mail(out, report);
    petricore_usage(out, report);
}

static void run(void *ctx)
{
    struct input *input = ctx;
    const struct gather gather = {
        .store = input->reader,
        .now = NOW,
        .deadline_ns = clock_mono(&clock_real) + 60 * NS_PER_SEC,
        .earlier_ns = 10 * NS_PER_SEC,
    };
    const struct job_name name = { STR("beluga"), 1, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 };
    struct job_report report = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    struct buf out;

    buf_init(&out, OUT_MAX);
    check(gather_job(&gather, &name, &arena, &report.facts, &err), &err);
    checks_run(&input->checks, &report.facts, &arena, &report.finding, &report.n_findings);
    advice_make(&report.facts, (double)input->checks.least_seconds, &arena, &report.advice);
    put_forms(input, &report, &out);
    if (out.over || !report.facts.earlier.n)
        bench_give_up("the report is not whole");
    buf_free(&out);
    arena_clear(&arena);
}

/* What nobody can do without: to open the store and close it. */
static void run_floor(void *ctx)
{
    const struct input *input = ctx;
    struct store_reader *reader;
    struct err err = { 0 };

    check(store_reader_open(str_of(input->path), &reader, &err), &err);
    store_reader_close(reader);
}

static double peak_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

int main(int argc, char **argv)
{
    struct input input = { .is_in_all_forms = false };
    struct bench_run runs[] = {
        { .run = run_floor, .ctx = &input },
        { .run = run, .ctx = &input },
    };
    double before;

    bench_begin(argc, argv);
    make_store(&input);
    bench_measure(runs, COUNT(runs), ROUNDS);
    bench_row(&(struct bench_row){ "text report of 64 nodes from the store", "ms",
                                   runs[1].median_seconds * 1e3, runs[0].median_seconds * 1e3,
                                   BENCH_AT_MOST, 50 });
    input.is_in_all_forms = true;
    for (int i = 0; i < 20; i++)
        run(&input);
    before = peak_bytes();
    for (int i = 0; i < IN_A_ROW; i++)
        run(&input);
    bench_row(&(struct bench_row){ "growth by 1,000 reports in a row", "KB",
                                   (peak_bytes() - before) / 1e3, 0, BENCH_AT_MOST, 1000 });
    end_store(&input);
    return 0;
}
