/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast squeue's JSON becomes jobs, in the shapes of Slurm 22.05 (v0.0.38: plain numbers) and
 * 24.11 (v0.0.42: {set, infinite, number}); and how much memory an answer of 500 MB takes while it
 * is read, beyond the jobs that stay. */
#include "base/json.h"
#include "base/num.h"
#include "source/json_answers.h"
#include "sim_print.h"

#include "bench.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 65536, DOCUMENT_BYTES = 64 << 20, ROUNDS = 5, LONG_BYTES = 500000000 };

static const int64_t sim_time = 1794700000;

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
    struct answer *answer = answer_new(&answer_json_jobs, section, SIZE_MAX);
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

/* An answer of LONG_BYTES, as it comes from the command. */
struct stream {
    enum sim_format format;
    uint64_t bytes_per_job; /* about */
    double megabytes_per_second;
    double extra_mebibytes; /* the most that was resident, less what is at the end */
};

static int write_piece(void *ctx, struct str piece)
{
    for (ssize_t n; piece.n; piece = str_skip(piece, (size_t)n))
        if ((n = write(*(int *)ctx, piece.p, piece.n)) < 0)
            return -1;
    return 0;
}

/* The command: a process of its own, whose memory and time are not ours. */
static pid_t start_printer(const struct stream *stream, int *ret_fd)
{
    struct sim sim = { .nodes = 2000, .jobs = LONG_BYTES / stream->bytes_per_job, .seed = 1 };
    int fds[2];
    pid_t child;

    if (pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0)
        bench_give_up("no process could be started");
    if (child == 0) {
        sim_print(&sim, stream->format, STR(""), sim_time, write_piece, &fds[1]);
        _exit(0);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return child;
}

/* "VmHWM:" and "VmRSS:" of /proc/self/status, in MiB. */
static double resident_mebibytes(struct str name)
{
    char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    uint64_t kibibytes;

    if (n <= 0)
        bench_give_up("/proc/self/status cannot be read");
    close(fd);
    for (struct str rest = { text, (size_t)n }; rest.p;) {
        struct str value = str_cut(&rest, '\n'), key = str_cut(&value, ':');

        value = str_trim(value);
        if (str_eq(key, name) && num_get_u64(str_cut(&value, ' '), &kibibytes))
            return (double)kibibytes / 1024;
    }
    bench_give_up("/proc/self/status has no %.*s", STR_ARG(name));
}

static void forget_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "5", 1) != 1)
        bench_give_up("/proc/self/clear_refs cannot be written");
    close(fd);
}

static size_t read_stream(struct answer *answer, int fd, double *ret_seconds)
{
    static char piece[PIECE];
    size_t bytes = 0;
    struct err err;
    double began;

    *ret_seconds = 0;
    for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0; bytes += (size_t)n) {
        began = bench_cpu_seconds();
        if (answer->class->feed(answer, (struct str){ piece, (size_t)n }, &err) < 0)
            bench_give_up("%s", err.text);
        *ret_seconds += bench_cpu_seconds() - began;
    }
    began = bench_cpu_seconds();
    if (answer->class->end(answer, &err) < 0)
        bench_give_up("%s", err.text);
    *ret_seconds += bench_cpu_seconds() - began;
    return bytes;
}

static void measure_stream(struct stream *stream)
{
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_json_jobs, section, SIZE_MAX);
    double seconds;
    size_t bytes;
    pid_t child;
    int fd;

    malloc_trim(0);
    forget_peak();
    child = start_printer(stream, &fd);
    bytes = read_stream(answer, fd, &seconds);
    close(fd);
    waitpid(child, NULL, 0);
    if (bytes < LONG_BYTES / 2)
        bench_give_up("the answer has only %zu bytes", bytes);
    answer_free(answer);
    malloc_trim(0);
    stream->megabytes_per_second = (double)bytes / 1e6 / seconds;
    stream->extra_mebibytes = resident_mebibytes(STR("VmHWM")) - resident_mebibytes(STR("VmRSS"));
    section_unref(section);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *recording, *scanner, *reader, *memory, *stream, *stream_memory;
        enum sim_format format;
        uint64_t bytes_per_job;
    } shapes[] = {
        { "squeue-22.05.json", "json: scanner alone, Slurm 22.05", "json: into jobs, Slurm 22.05",
          "json: memory of the scanner, Slurm 22.05", "json: 500 MB into jobs, Slurm 22.05",
          "json: memory beyond the jobs, Slurm 22.05", SIM_SQUEUE_JSON_38, 3400 },
        { "squeue-24.11.json", "json: scanner alone, Slurm 24.11", "json: into jobs, Slurm 24.11",
          "json: memory of the scanner, Slurm 24.11", "json: 500 MB into jobs, Slurm 24.11",
          "json: memory beyond the jobs, Slurm 24.11", SIM_SQUEUE_JSON_42, 8600 },
    };

    bench_begin(argc, argv);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct stream stream = { .format = shapes[i].format,
                                 .bytes_per_job = shapes[i].bytes_per_job };
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
        measure_stream(&stream);
        bench_row(&(struct bench_row){ shapes[i].stream, "MB/s", stream.megabytes_per_second, floor,
                                       BENCH_AT_LEAST, 300 });
        bench_row(&(struct bench_row){ shapes[i].stream_memory, "MiB", stream.extra_mebibytes, 0,
                                       BENCH_AT_MOST, 16 });
    }
    return 0;
}
