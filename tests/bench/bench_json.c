/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast squeue's JSON becomes jobs, in the shapes of Slurm 22.05 (v0.0.38: plain numbers) and
 * 24.11 (v0.0.42: {set, infinite, number}). */
#include "base/json.h"
#include "source/foreign.h"

#include "bench.h"

#include <malloc.h>

enum { PIECE = 65536, DOCUMENT_BYTES = 64 << 20, ROUNDS = 5 };

/* A document and what must come out of it. */
struct input {
    const char *recording; /* in tests/data/json */
    struct buf document;
    size_t jobs;
    size_t scanner_bytes; /* the most that the scanner had allocated at its end */
};

/* glibc counts small freed blocks that it keeps at hand as allocated: right to about a kilobyte. */
static size_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* What a reading of the document cannot do without: finding where each token ends. */
static void run_floor(void *ctx)
{
    static const unsigned char is_between[256] = {
        [' '] = 1, ['\n'] = 1, [','] = 1, [':'] = 1, ['{'] = 1, ['}'] = 1, ['['] = 1, [']'] = 1,
    };
    struct input *input = ctx;
    const char *p = input->document.p, *end = p + input->document.n;
    size_t tokens = 0;

    for (; p < end; tokens++) {
        while (p < end && is_between[(unsigned char)*p])
            p++;
        if (p < end && *p == '"') {
            for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
            p++;
        } else {
            while (p < end && !is_between[(unsigned char)*p])
                p++;
        }
    }
    if (tokens < input->jobs)
        bench_give_up("%s has only %zu tokens", input->recording, tokens);
}

static void run_scanner(void *ctx)
{
    struct input *input = ctx;
    size_t before = allocated_bytes(), bytes;
    struct json *json = json_new();
    struct str rest = buf_str(&input->document);
    enum json_event event = JSON_MORE;
    struct err err;

    for (; rest.n && event == JSON_MORE; rest = str_skip(rest, PIECE)) {
        json_feed(json, str_head(rest, PIECE));
        while ((event = json_next(json)) > JSON_END)
            ;
    }
    json_finish(json);
    if (json_next(json) != JSON_END) {
        json_error(json, &err);
        bench_give_up("%s: %s", input->recording, err.text);
    }
    bytes = allocated_bytes() - before;
    if (bytes > input->scanner_bytes)
        input->scanner_bytes = bytes;
    json_free(json);
}

static void run_reader(void *ctx)
{
    struct input *input = ctx;
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_json_jobs, section);
    struct str rest = buf_str(&input->document);
    uint64_t ids = 0;
    struct err err;

    for (; rest.n; rest = str_skip(rest, PIECE))
        if (answer->class->feed(answer, str_head(rest, PIECE), &err) < 0)
            bench_give_up("%s: %s", input->recording, err.text);
    if (answer->class->end(answer, &err) < 0)
        bench_give_up("%s: %s", input->recording, err.text);
    answer_free(answer);
    for (size_t i = 0; i < section->jobs.n; i++)
        ids += section->jobs.job[i].id;
    if (section->jobs.n != input->jobs || ids != input->jobs * (input->jobs + 1) / 2)
        bench_give_up("%s: %zu jobs were read instead of %zu", input->recording, section->jobs.n,
                      input->jobs);
    section_unref(section);
}

static struct buf read_recording(const char *name)
{
    struct buf content, path;
    FILE *file;

    buf_init(&path, 4096);
    buf_init(&content, 1 << 20);
    buf_printf(&path, "%s/json/%s", TEST_DATA, name);
    file = fopen(path.p, "rb");
    if (!file)
        bench_give_up("%s cannot be opened", path.p);
    content.n = fread(buf_room(&content, 1 << 19), 1, 1 << 19, file);
    buf_end(&content);
    fclose(file);
    buf_free(&path);
    return content;
}

/* A line of a recorded job, with values that differ between jobs. */
static void put_line(struct buf *out, struct str line, size_t id)
{
    static const struct {
        struct str start;
        const char *before, *after;
        size_t different;
    } varied[] = {
        { STR_INIT("      \"job_id\": "), "", ",", SIZE_MAX },
        { STR_INIT("      \"user_name\": "), "\"user", "\",", 500 },
        { STR_INIT("      \"account\": "), "\"account", "\",", 60 },
        { STR_INIT("      \"partition\": "), "\"partition", "\",", 8 },
        { STR_INIT("      \"name\": "), "\"train \\\"model\\\" ", ".sh\",", 3000 },
    };

    for (size_t i = 0; i < COUNT(varied); i++) {
        if (str_starts(line, varied[i].start)) {
            buf_put(out, varied[i].start);
            buf_text(out, varied[i].before);
            buf_u64(out, id % varied[i].different);
            buf_text(out, varied[i].after);
            return;
        }
    }
    buf_put(out, line);
}

static size_t position(struct str text, struct str part, const char *recording)
{
    size_t at = str_find_str(text, part);

    if (at == text.n)
        bench_give_up("%s is not as Slurm prints it: no \"%.*s\"", recording, STR_ARG(part));
    return at;
}

/* The recorded jobs, over and over until the document is large enough. */
static void generate(struct input *input)
{
    struct buf recording = read_recording(input->recording);
    struct str all = buf_str(&recording);
    size_t begin = position(all, STR("    {\n      \"account\""), input->recording);
    size_t length = position(str_skip(all, begin), STR("\n  ]"), input->recording);
    struct str jobs = str_head(str_skip(all, begin), length);
    struct buf *out = &input->document;

    buf_init(out, DOCUMENT_BYTES + 2 * recording.n);
    buf_put(out, str_head(all, begin));
    while (out->n < DOCUMENT_BYTES) {
        for (struct str rest = jobs; rest.p;) {
            struct str line = str_cut(&rest, '\n');

            put_line(out, line, input->jobs + 1);
            input->jobs += str_eq(line, STR("    },")) || str_eq(line, STR("    }"));
            buf_text(out, rest.p ? "\n" : "");
        }
        buf_text(out, out->n < DOCUMENT_BYTES ? ",\n" : "");
    }
    buf_put(out, str_skip(all, begin + length));
    if (out->over)
        bench_give_up("%s is too large", input->recording);
    buf_free(&recording);
}

static double megabytes_per_second(const struct input *input, const struct bench_run *run)
{
    return (double)input->document.n / 1e6 / run->best_seconds;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *recording, *scanner, *reader, *memory;
    } shapes[] = {
        { "squeue-22.05.json", "json: scanner alone, Slurm 22.05", "json: into jobs, Slurm 22.05",
          "json: memory beyond the jobs, Slurm 22.05" },
        { "squeue-24.11.json", "json: scanner alone, Slurm 24.11", "json: into jobs, Slurm 24.11",
          "json: memory beyond the jobs, Slurm 24.11" },
    };

    bench_begin(argc, argv);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct input input = { .recording = shapes[i].recording };
        struct bench_run runs[] = {
            { .run = run_floor, .ctx = &input },
            { .run = run_scanner, .ctx = &input },
            { .run = run_reader, .ctx = &input },
        };
        double floor;

        generate(&input);
        bench_measure(runs, COUNT(runs), ROUNDS);
        floor = megabytes_per_second(&input, &runs[0]);
        bench_row(&(struct bench_row){ shapes[i].scanner, "MB/s",
                                       megabytes_per_second(&input, &runs[1]), floor,
                                       BENCH_AT_LEAST, 500 });
        bench_row(&(struct bench_row){ shapes[i].reader, "MB/s",
                                       megabytes_per_second(&input, &runs[2]), floor,
                                       BENCH_AT_LEAST, 300 });
        bench_row(&(struct bench_row){ shapes[i].memory, "KiB", (double)input.scanner_bytes / 1024,
                                       0, BENCH_AT_MOST, 64 });
        buf_free(&input.document);
    }
    return 0;
}
