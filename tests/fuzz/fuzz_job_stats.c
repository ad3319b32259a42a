/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Lustre target's job_stats: pieces of any size give the same entries and the same count of lines
 * left out, none beyond its limits, and what was read reads the same when it is written as Lustre
 * would. */
#include "base/buf.h"
#include "source/job_stats.h"

#include "fuzz.h"

enum { TEXT_MAX = 64 << 20, PIECE_MAX = 1 << 20 };

/* Entries in the form of Lustre 2.16, as lctl prints them. */
struct reading {
    struct buf text;
    size_t entries;
    uint64_t bad_lines;
};

static void check_io(const struct lustre_io *io)
{
    FUZZ_CHECK(io->is_there || (!io->has_sizes && !io->samples && !io->bytes));
    FUZZ_CHECK(io->has_sizes || !io->small_samples);
}

static void check_entry(const struct job_stats_entry *entry)
{
    FUZZ_CHECK(entry->id.n <= JOB_STATS_ID && entry->n_operations <= JOB_STATS_OPERATIONS);
    check_io(&entry->read);
    check_io(&entry->write);
    for (size_t i = 0; i < entry->n_operations; i++) {
        size_t n = strnlen(entry->operations[i].name, JOB_STATS_NAME);

        FUZZ_CHECK(n > 0 && n < JOB_STATS_NAME);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(entry->operations[i].name, entry->operations[k].name) != 0);
    }
}

static void put_id(struct buf *to, struct str id)
{
    buf_text(to, "- job_id:          \"");
    for (size_t i = 0; i < id.n; i++)
        buf_printf(to, "\\x%02X", (unsigned char)id.p[i]);
    buf_text(to, "\"\n");
}

static void put_io(struct buf *to, const char *name, const struct lustre_io *io)
{
    if (!io->is_there)
        return;
    buf_printf(to, "  %s: { samples: %llu, unit: bytes, min: %llu, max: %llu, sum: %llu", name,
               (unsigned long long)io->samples, (unsigned long long)io->least_bytes,
               (unsigned long long)io->most_bytes, (unsigned long long)io->bytes);
    if (io->has_sizes)
        buf_printf(to, ", hist: { 32K: %llu, 64K: 1 }", (unsigned long long)io->small_samples);
    buf_text(to, " }\n");
}

static void add_entry(void *ctx, const struct job_stats_entry *entry)
{
    struct reading *reading = ctx;
    struct buf *to = &reading->text;

    check_entry(entry);
    reading->entries++;
    if (entry->target.n) {
        buf_text(to, entry->is_mdt ? "mdt." : "obdfilter.");
        buf_put(to, entry->target);
        buf_text(to, ".job_stats=\njob_stats:\n");
    }
    put_id(to, entry->id);
    put_io(to, "read_bytes", &entry->read);
    put_io(to, "write_bytes", &entry->write);
    for (size_t i = 0; i < entry->n_operations; i++)
        buf_printf(to, "  %s: { samples: %llu, unit: usecs }\n", entry->operations[i].name,
                   (unsigned long long)entry->operations[i].samples);
}

static size_t all_at_once(uint64_t *seed)
{
    (void)seed;
    return PIECE_MAX;
}

static size_t byte_by_byte(uint64_t *seed)
{
    (void)seed;
    return 1;
}

static size_t about_a_line(uint64_t *seed)
{
    return 1 + fuzz_random(seed) % 200;
}

static struct reading read_pieces(struct str text, size_t (*size)(uint64_t *seed))
{
    uint64_t seed = fuzz_seed((const uint8_t *)text.p, text.n);
    struct reading reading = { .entries = 0 };
    struct job_stats_parser *parser = job_stats_parser_new(add_entry, &reading);

    buf_init(&reading.text, TEXT_MAX);
    while (text.n) {
        size_t n = size(&seed);

        job_stats_feed(parser, str_head(text, n));
        text = str_skip(text, n);
    }
    job_stats_finish(parser);
    reading.bad_lines = job_stats_bad_lines(parser);
    job_stats_parser_free(parser);
    FUZZ_CHECK(!reading.text.over);
    return reading;
}

static void check_counts(struct str text, const struct reading *reading)
{
    size_t lines = 0, heads = 0;

    for (struct str rest = text; rest.p; lines++)
        heads += str_starts(str_cut(&rest, '\n'), STR("- job_id:"));
    FUZZ_CHECK(reading->entries <= heads);
    FUZZ_CHECK(reading->entries + reading->bad_lines <= lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static size_t (*const sizes[])(uint64_t * seed) = { byte_by_byte, about_a_line };
    struct str text = { (const char *)data, size };
    struct reading whole, again;

    if (size > PIECE_MAX)
        return 0;
    whole = read_pieces(text, all_at_once);
    check_counts(text, &whole);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct reading pieces = read_pieces(text, sizes[i]);

        FUZZ_CHECK(str_eq(buf_str(&pieces.text), buf_str(&whole.text)));
        FUZZ_CHECK(pieces.bad_lines == whole.bad_lines);
        buf_free(&pieces.text);
    }
    again = read_pieces(buf_str(&whole.text), all_at_once);
    FUZZ_CHECK(str_eq(buf_str(&again.text), buf_str(&whole.text)));
    FUZZ_CHECK(again.bad_lines == 0 && again.entries == whole.entries);
    buf_free(&again.text);
    buf_free(&whole.text);
    return 0;
}
