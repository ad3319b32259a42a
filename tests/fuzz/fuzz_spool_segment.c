/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that an earlier agent has left in its spool. Each form feed begins another file; a line
 * that begins with "~" gets the checksum of the rest. What is read are the lines that are whole,
 * as a reader of its own finds them; written again, they read the same. */
#include "agent/spool_disk.h"

#include "base/arena.h"
#include "base/num.h"

#include "scratch.h"

#include <inttypes.h>
#include <zlib.h>

enum { MOST_BYTES = 8192, FILES = 4, RECORDS = 16, SEGMENT_BYTES = 512 };

static const char *directory(void)
{
    static char path[300];

    if (!path[0]) {
        snprintf(path, sizeof(path), "%s/spool", scratch());
        FUZZ_CHECK(mkdir(path, 0700) == 0);
    }
    return path;
}

static struct spool_disk *open_disk(void)
{
    const struct spool_disk_config config = {
        .directory = directory(),
        .max_bytes = 64 * 1024,
        .segment_bytes = SEGMENT_BYTES,
        .segment_records = RECORDS,
    };
    struct spool_disk *disk;
    struct err err;

    FUZZ_CHECK(spool_disk_open(&config, &disk, &err) == 0, "%s", err.text);
    return disk;
}

static uint32_t sum_of(struct str text)
{
    return (uint32_t)crc32(0, (const Bytef *)text.p, (uInt)text.n);
}

static void make_file(struct buf *to, struct str text)
{
    while (text.p) {
        bool is_ended = str_find(text, '\n') < text.n;
        struct str line = str_cut(&text, '\n');

        if (str_starts(line, STR("~"))) {
            line = str_skip(line, 1);
            buf_printf(to, "%08" PRIx32 " ", sum_of(line));
        }
        buf_put(to, line);
        if (is_ended)
            buf_byte(to, '\n');
    }
}

/* "CRC32 SECONDS TEXT" */
static bool read_line(struct str line, struct spool_record *ret)
{
    char sum[9];
    struct str rest = str_skip(line, 9);
    size_t space;

    if (line.n < 9)
        return false;
    snprintf(sum, sizeof(sum), "%08" PRIx32, sum_of(rest));
    space = str_find(rest, ' ');
    if (memcmp(sum, line.p, 8) != 0 || line.p[8] != ' ' || space >= rest.n)
        return false;
    ret->text = str_skip(rest, space + 1);
    return ret->text.n && num_get_i64(str_head(rest, space), &ret->seconds);
}

static size_t read_lines(struct str text, struct spool_record *records)
{
    size_t n = 0;

    while (str_find(text, '\n') < text.n) {
        struct spool_record record;

        if (read_line(str_cut(&text, '\n'), &record) && n < RECORDS)
            records[n++] = record;
    }
    return n;
}

/* The oldest file has just these. */
static void check_oldest(struct spool_disk *disk, const struct spool_record *expected, size_t n)
{
    struct spool_record records[RECORDS];
    struct buf text;
    struct err err;
    int code;

    buf_init(&text, 1 << 20);
    code = spool_disk_oldest(disk, &text, records, &err);
    FUZZ_CHECK(code == (int)n, "%d, not %zu", code, n);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(records[i].seconds == expected[i].seconds &&
                   str_eq(records[i].text, expected[i].text));
    buf_free(&text);
}

static void empty(struct spool_disk *disk)
{
    struct spool_disk_stats stats;
    struct err err;

    for (int code = 0; code != -ENOENT;) {
        struct spool_record records[RECORDS];
        struct buf text;

        buf_init(&text, 1 << 20);
        code = spool_disk_oldest(disk, &text, records, &err);
        buf_free(&text);
        spool_disk_remove_oldest(disk);
    }
    spool_disk_stats(disk, &stats);
    FUZZ_CHECK(stats.records == 0 && stats.bytes == 0);
}

/* Written by the agent itself, and found by the next one. Records of one file only, and not the
 * larger ones, so that they are one file again. */
static void check_again(const struct spool_record *records, size_t n)
{
    struct spool_disk *disk = open_disk();
    struct spool_disk_stats stats;
    size_t bytes = 0, n_put = 0;
    struct err err;

    for (; n_put < n && bytes + records[n_put].text.n + 40 < SEGMENT_BYTES; n_put++) {
        bytes += records[n_put].text.n + 40;
        FUZZ_CHECK(spool_disk_put(disk, records[n_put].text, records[n_put].seconds, &err) == 0,
                   "%s", err.text);
    }
    FUZZ_CHECK(spool_disk_sync(disk, &err) == 0, "%s", err.text);
    spool_disk_close(disk);
    disk = open_disk();
    spool_disk_stats(disk, &stats);
    FUZZ_CHECK(stats.records == n_put);
    if (n_put)
        check_oldest(disk, records, n_put);
    empty(disk);
    spool_disk_close(disk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size };
    struct spool_record records[FILES][RECORDS];
    size_t n_records[FILES], n = 0;
    struct buf files[FILES];
    struct spool_disk *disk;

    if (size == 0 || size > MOST_BYTES)
        return 0;
    for (; rest.p && n < FILES; n++) {
        char name[64];

        buf_init(&files[n], 16 * MOST_BYTES);
        make_file(&files[n], str_cut(&rest, '\f'));
        n_records[n] = read_lines(buf_str(&files[n]), records[n]);
        snprintf(name, sizeof(name), "spool/%016zx.spool", n + 1);
        directory();
        scratch_write(name, buf_str(&files[n]));
    }
    disk = open_disk();
    for (size_t i = 0; i < n; i++) {
        check_oldest(disk, records[i], n_records[i]);
        spool_disk_remove_oldest(disk);
    }
    empty(disk);
    spool_disk_close(disk);
    for (size_t i = 0; i < n; i++) {
        check_again(records[i], n_records[i]);
        buf_free(&files[i]);
    }
    return 0;
}
