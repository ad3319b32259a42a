/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Lustre target's job_stats of 3.5 million lines, as 2.12 and 2.15 print them, read from a file
 * in pieces of 64 KiB, and who moves most picked out of it; beside it what nobody can do without,
 * reading the file and finding its lines. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "source/movers.h"

#include "bench.h"

#include <fcntl.h>

enum {
    LINES = 3500000,
    PIECE_BYTES = 64 << 10,
    ROUNDS = 5,
    MAX_IDS = 500,
    MAX_TEXT = 32 << 20,
};

struct file {
    const char *release;
    bool has_times; /* of operations; since 2.15 */
    unsigned lines_of_entry;
    unsigned n_operations;
    int fd;
    uint64_t bytes;
    uint32_t n_entries;
    uint64_t lines, written_bytes; /* that its entries tell of */
    struct movers *movers;
};

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    return *random >> 8;
}

static void put_operation(struct buf *to, const struct file *file, const char *name,
                          uint64_t samples, uint64_t most_us)
{
    buf_printf(to, "  %s:%*s { samples: %11llu, unit: %5s", name, 15 - (int)strlen(name), "",
               (unsigned long long)samples, file->has_times ? "usecs" : "reqs");
    if (file->has_times)
        buf_printf(to, ", min: %8d, max: %8llu, sum: %16llu, sumsq: %18llu", 12,
                   (unsigned long long)most_us, (unsigned long long)(samples * most_us / 2),
                   (unsigned long long)(samples * most_us * most_us / 3));
    buf_text(to, " }\n");
}

static void put_bytes(struct buf *to, const struct file *file, const char *name, uint64_t samples,
                      uint64_t bytes)
{
    buf_printf(to, "  %s:%*s { samples: %11llu, unit: bytes, min: %8d, max: %8d, sum: %16llu", name,
               15 - (int)strlen(name), "", (unsigned long long)samples, 4096, 4194304,
               (unsigned long long)bytes);
    if (file->has_times)
        buf_printf(to, ", sumsq: %18llu", (unsigned long long)(bytes * 4096));
    buf_text(to, " }\n");
}

static void put_head(struct buf *to, const struct file *file, uint32_t number)
{
    if (file->has_times)
        buf_printf(to,
                   "- job_id:          \"%u:nemo.exe:node%04u\"\n"
                   "  snapshot_time:   1322494602.%09u secs.nsecs\n"
                   "  start_time:      1322494002.987654321 secs.nsecs\n"
                   "  elapsed_time:    600.135802468 secs.nsecs\n",
                   10000000 + number, number % 5000, number);
    else
        buf_printf(to, "- job_id:          %u\n  snapshot_time:   1322494602\n", 10000000 + number);
}

static void put_entry(struct buf *to, uint32_t number, struct file *file, uint32_t *random)
{
    static const char *const operations[] = { "getattr",  "setattr", "punch",  "sync",
                                              "destroy",  "create",  "statfs", "get_info",
                                              "set_info", "quotactl" };
    uint64_t reads = next_random(random), writes = next_random(random) >> 8;

    put_head(to, file, number);
    put_bytes(to, file, "read_bytes", reads, reads * 1048576);
    put_bytes(to, file, "write_bytes", writes, writes * 65536);
    if (file->has_times) {
        put_operation(to, file, "read", reads, 25000);
        put_operation(to, file, "write", writes, 3000);
    }
    for (size_t i = 0; i < COUNT(operations); i++)
        put_operation(to, file, operations[i], i % 3 ? 0 : next_random(random) >> 12, 900);
    file->written_bytes += writes * 65536;
}

static void flush(struct buf *text, struct file *file)
{
    for (struct str rest = buf_str(text); rest.n;) {
        ssize_t n = write(file->fd, rest.p, rest.n);

        if (n <= 0)
            bench_give_up("cannot write the file: is there room for 400 MB?");
        rest = str_skip(rest, (size_t)n);
    }
    file->bytes += text->n;
    buf_reset(text);
}

/* Its name is gone at once, and it with the program. */
static void make_file(struct file *file)
{
    const char *directory = getenv("TMPDIR");
    uint32_t random = 1;
    struct buf text;
    char path[4096];

    snprintf(path, sizeof(path), "%s/sonde-bench-XXXXXX", directory ? directory : "/tmp");
    file->n_entries = (LINES - 1) / file->lines_of_entry;
    file->lines = 1 + (uint64_t)file->n_entries * file->lines_of_entry;
    file->fd = mkostemp(path, O_CLOEXEC);
    if (file->fd < 0 || unlink(path) < 0)
        bench_give_up("cannot make the file %s", path);
    buf_init(&text, 2 * PIECE_BYTES);
    buf_text(&text, "job_stats:\n");
    for (uint32_t i = 0; i < file->n_entries; i++) {
        put_entry(&text, i, file, &random);
        if (text.n > PIECE_BYTES)
            flush(&text, file);
    }
    flush(&text, file);
    buf_free(&text);
}

static bool next_piece(const struct file *file, uint64_t *offset, struct str *ret)
{
    static char piece[PIECE_BYTES];
    ssize_t n = pread(file->fd, piece, sizeof(piece), (off_t)*offset);

    if (n < 0)
        bench_give_up("cannot read the file");
    *offset += (uint64_t)n;
    *ret = (struct str){ piece, (size_t)n };
    return n > 0;
}

static void count_lines(void *ctx)
{
    const struct file *file = ctx;
    uint64_t offset = 0, lines = 0;
    struct str piece;

    while (next_piece(file, &offset, &piece))
        for (const char *p = piece.p, *end = p + piece.n;
             p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
            lines++;
    if (lines != file->lines)
        bench_give_up("%llu lines were counted", (unsigned long long)lines);
}

struct sums {
    struct movers *movers;
    uint64_t entries, operations, written_bytes;
};

static void add(void *ctx, const struct job_stats_entry *entry)
{
    struct sums *sums = ctx;

    sums->entries++;
    sums->operations += entry->n_operations;
    sums->written_bytes += entry->write.bytes;
    if (sums->movers)
        movers_see(sums->movers, entry);
}

static void read_all(const struct file *file, struct movers *movers)
{
    struct sums sums = { .movers = movers };
    struct job_stats_parser *parser = job_stats_parser_new(add, &sums);
    uint64_t offset = 0;
    struct str piece;

    while (next_piece(file, &offset, &piece))
        job_stats_feed(parser, piece);
    job_stats_finish(parser);
    if (job_stats_bad_lines(parser) || sums.entries != file->n_entries ||
        sums.operations != (uint64_t)file->n_entries * file->n_operations ||
        sums.written_bytes != file->written_bytes)
        bench_give_up("the file was read wrongly");
    job_stats_parser_free(parser);
}

static void parse(void *ctx)
{
    read_all(ctx, NULL);
}

/* As a look of the agent does. */
static void pick(void *ctx)
{
    const struct file *file = ctx;
    struct lustre_use *use = heap_alloc(sizeof(*use));

    atomic_init(&use->refs, 1);
    symbols_init(&use->symbols, &use->arena);
    movers_begin_look(file->movers, use);
    movers_begin_target(file->movers, STR("scratch-OST0000"), false);
    read_all(file, file->movers);
    movers_end_target(file->movers);
    movers_end_look(file->movers);
    if (use->n != MAX_IDS || use->ids_left_out != file->n_entries - MAX_IDS || use->ids_merged)
        bench_give_up("the ids were picked wrongly");
    lustre_use_unref(use);
}

/* Peak of all that is resident, libraries included. */
static double peak_megabytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    struct str rest = { text, n < 0 ? 0 : (size_t)n };
    const struct str key = STR("VmHWM:");
    uint64_t kibibytes;

    if (fd >= 0)
        close(fd);
    rest = str_trim(str_skip(rest, str_find_str(rest, key) + key.n));
    if (!num_get_u64(str_head(rest, str_find(rest, ' ')), &kibibytes))
        bench_give_up("/proc/self/status does not tell the peak of memory");
    return (double)kibibytes * 1024 / 1e6;
}

static void measure(struct file *file)
{
    struct bench_run runs[] = {
        { .run = count_lines, .ctx = file },
        { .run = parse, .ctx = file },
        { .run = pick, .ctx = file },
    };
    static const char *const what[] = { NULL, "read", "ranked" };
    char name[96];

    make_file(file);
    file->movers = movers_new(MAX_IDS, MAX_TEXT, MOVERS_REMEMBERED);
    bench_measure(runs, COUNT(runs), ROUNDS);
    for (size_t i = 1; i < COUNT(runs); i++) {
        snprintf(name, sizeof(name), "3.5 million lines of job_stats %s, %s", file->release,
                 what[i]);
        bench_row(&(struct bench_row){
            .name = name,
            .unit = "MB/s",
            .measured = (double)file->bytes / 1e6 / runs[i].median_seconds,
            .reference = (double)file->bytes / 1e6 / runs[0].median_seconds,
            .goal = BENCH_AT_LEAST,
            .limit = 150,
        });
    }
    movers_free(file->movers);
    close(file->fd);
}

int main(int argc, char **argv)
{
    struct file files[] = {
        { .release = "2.15", .has_times = true, .lines_of_entry = 18, .n_operations = 12 },
        { .release = "2.12", .lines_of_entry = 14, .n_operations = 10 },
    };

    bench_begin(argc, argv);
    for (size_t i = 0; i < COUNT(files); i++) {
        measure(&files[i]);
        bench_row(&(struct bench_row){
            .name = i ? "peak of memory of that and 2.12" : "peak of memory of job_stats 2.15",
            .unit = "MB",
            .measured = peak_megabytes(),
            .goal = BENCH_AT_MOST,
            .limit = 16,
        });
    }
    return 0;
}
