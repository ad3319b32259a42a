/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of the agent's spool: append, read, check and remove records. */
#include "agent/spool_disk.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/quote.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define SUFFIX ".spool"

enum {
    DIGITS = 16, /* of a file's number in its name */
    NAME = DIGITS + sizeof(SUFFIX),
    SUM = 8,              /* digits of a checksum */
    MOST_SEGMENTS = 4096, /* past them the oldest go too */
    MOST_FILE = 16 << 20, /* bytes that are read of a file */
};

struct segment {
    uint64_t number, bytes;
    size_t n_records;
};

struct spool_disk {
    struct spool_disk_config config;
    int directory;
    struct segment *segments; /* the oldest first */
    size_t n_segments, n_room;
    uint64_t looked_at; /* number of the file that was the oldest then */
    int fd;             /* of the last of them, if it is added to; or -1 */
    uint64_t synced_bytes;
    size_t n_synced;
    struct buf line;
    struct spool_disk_stats stats;
};

static void name_of(uint64_t number, char name[NAME])
{
    snprintf(name, NAME, "%0*" PRIx64 SUFFIX, DIGITS, number);
}

static bool number_of(const char *name, uint64_t *ret)
{
    char same[NAME];

    *ret = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        const char *digits = "0123456789abcdef", *digit = name[i] ? strchr(digits, name[i]) : NULL;

        if (!digit)
            return false;
        *ret = *ret << 4 | (uint64_t)(digit - digits);
    }
    name_of(*ret, same);
    return strcmp(name, same) == 0;
}

/* --- reading --- */

static int read_file(const struct spool_disk *disk, uint64_t number, struct buf *text,
                     struct err *err)
{
    char name[NAME], *room;
    ssize_t n = 0;
    int fd;

    name_of(number, name);
    fd = openat(disk->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, errno, "cannot read %s: %s", name, err_words(errno));
    buf_reset(text);
    while ((room = buf_room(text, 64 * 1024)) && (n = read(fd, room, 64 * 1024)) > 0)
        text->n += (size_t)n;
    if (n < 0)
        err_set(err, errno, "cannot read %s: %s", name, err_words(errno));
    close(fd);
    return n < 0 ? -err->code : 0;
}

static uint32_t sum_of(struct str text)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)text.p, (uInt)text.n);
}

static bool read_line(struct str line, struct spool_record *ret)
{
    char sum[SUM + 1];
    struct str rest = str_skip(line, SUM + 1), seconds;

    if (line.n <= SUM || line.p[SUM] != ' ')
        return false;
    snprintf(sum, sizeof(sum), "%0*" PRIx32, SUM, sum_of(rest));
    if (memcmp(sum, line.p, SUM) != 0)
        return false;
    seconds = str_cut(&rest, ' ');
    ret->text = rest;
    return rest.n && num_get_i64(seconds, &ret->seconds);
}

/* Counts them, and gives the first `room`. What has no line end is not whole. */
static size_t read_lines(struct str text, struct spool_record *records, size_t room)
{
    struct spool_record record;
    size_t n = 0;

    while (str_find(text, '\n') < text.n) {
        if (!read_line(str_cut(&text, '\n'), &record))
            continue;
        if (n < room)
            records[n] = record;
        n++;
    }
    return n;
}

/* --- opening --- */

static int by_number(const void *a, const void *b)
{
    const struct segment *left = a, *right = b;

    return (left->number > right->number) - (left->number < right->number);
}

static void count_segment(struct spool_disk *disk, struct segment *segment, struct buf *text)
{
    struct err err;

    if (read_file(disk, segment->number, text, &err) == 0)
        segment->n_records = read_lines(buf_str(text), NULL, 0);
    disk->stats.records += segment->n_records;
    disk->stats.bytes += segment->bytes;
}

static void add_segment(struct spool_disk *disk, uint64_t number, uint64_t bytes)
{
    disk->segments =
        heap_grow(disk->segments, disk->n_segments, &disk->n_room, sizeof(*disk->segments));
    disk->segments[disk->n_segments++] = (struct segment){ .number = number, .bytes = bytes };
}

static int find_segments(struct spool_disk *disk, struct err *err)
{
    int fd = openat(disk->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct buf text;

    if (!listing) {
        err_set(err, errno, "cannot list %s: %s", quote(str_of(disk->config.directory)).text,
                err_words(errno));
        if (fd >= 0)
            close(fd);
        return -err->code;
    }
    while ((entry = readdir(listing))) {
        struct stat status;
        uint64_t number;

        if (number_of(entry->d_name, &number) &&
            fstatat(disk->directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode))
            add_segment(disk, number, (uint64_t)status.st_size);
    }
    closedir(listing);
    if (disk->n_segments)
        qsort(disk->segments, disk->n_segments, sizeof(*disk->segments), by_number);
    buf_init(&text, MOST_FILE);
    for (size_t i = 0; i < disk->n_segments; i++)
        count_segment(disk, &disk->segments[i], &text);
    buf_free(&text);
    return 0;
}

static int check_directory(const struct spool_disk *disk, struct err *err)
{
    const struct quote name = quote(str_of(disk->config.directory));
    struct stat status;

    if (fstat(disk->directory, &status) < 0)
        return err_set(err, errno, "cannot look at %s: %s", name.text, err_words(errno));
    if (status.st_mode & (S_IWGRP | S_IWOTH) || (status.st_uid != geteuid() && status.st_uid != 0))
        return err_set(err, EPERM, "others may write into %s: make it the agent's own, chmod 700",
                       name.text);
    if (flock(disk->directory, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, errno == EWOULDBLOCK ? EBUSY : errno, "cannot lock %s: %s", name.text,
                       errno == EWOULDBLOCK ? "another agent has it" : err_words(errno));
    if (faccessat(disk->directory, ".", W_OK, AT_EACCESS) < 0)
        return err_set(err, errno, "cannot write into %s: %s", name.text, err_words(errno));
    return 0;
}

static int open_directory(struct spool_disk *disk, struct err *err)
{
    const char *path = disk->config.directory;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make %s: %s", quote(str_of(path)).text,
                       err_words(errno));
    disk->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk->directory < 0)
        return err_set(err, errno, "cannot open %s: %s", quote(str_of(path)).text,
                       err_words(errno));
    return check_directory(disk, err);
}

int spool_disk_open(const struct spool_disk_config *config, struct spool_disk **ret,
                    struct err *err)
{
    struct spool_disk *disk = heap_alloc(sizeof(*disk));
    int code;

    disk->config = *config;
    disk->config.directory = heap_str(str_of(config->directory));
    disk->directory = disk->fd = -1;
    buf_init(&disk->line, MOST_FILE);
    code = open_directory(disk, err);
    if (code == 0)
        code = find_segments(disk, err);
    if (code < 0)
        spool_disk_close(disk);
    else
        *ret = disk;
    return code;
}

static void close_segment(struct spool_disk *disk)
{
    if (disk->fd >= 0)
        close(disk->fd);
    disk->fd = -1;
}

struct spool_disk *spool_disk_close(struct spool_disk *disk)
{
    if (disk) {
        close_segment(disk);
        if (disk->directory >= 0)
            close(disk->directory);
        free((char *)(uintptr_t)disk->config.directory);
        free(disk->segments);
        buf_free(&disk->line);
        free(disk);
    }
    return NULL;
}

/* --- removing --- */

static void remove_segment(struct spool_disk *disk, size_t i)
{
    struct segment *segment = &disk->segments[i];
    char name[NAME];

    if (i == disk->n_segments - 1)
        close_segment(disk);
    name_of(segment->number, name);
    unlinkat(disk->directory, name, 0);
    disk->stats.records -= segment->n_records;
    disk->stats.bytes -= segment->bytes;
    disk->n_segments--;
    memmove(segment, segment + 1, (disk->n_segments - i) * sizeof(*segment));
}

void spool_disk_remove_oldest(struct spool_disk *disk)
{
    if (disk->n_segments && disk->segments[0].number == disk->looked_at)
        remove_segment(disk, 0);
}

/* The one that is added to stays. */
static void make_room(struct spool_disk *disk)
{
    while (disk->n_segments > 1 &&
           (disk->stats.bytes > disk->config.max_bytes || disk->n_segments > MOST_SEGMENTS)) {
        disk->stats.dropped += disk->segments[0].n_records;
        remove_segment(disk, 0);
    }
}

/* --- writing --- */

static struct segment *last_segment(struct spool_disk *disk)
{
    return &disk->segments[disk->n_segments - 1];
}

/* The name must survive too. */
static int begin_segment(struct spool_disk *disk, struct err *err)
{
    uint64_t number = disk->n_segments ? last_segment(disk)->number + 1 : 1;
    char name[NAME];

    name_of(number, name);
    disk->fd = openat(disk->directory, name,
                      O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (disk->fd < 0)
        return err_set(err, errno, "cannot make a file in %s: %s",
                       quote(str_of(disk->config.directory)).text, err_words(errno));
    add_segment(disk, number, 0);
    disk->synced_bytes = 0;
    disk->n_synced = 0;
    if (fsync(disk->directory) < 0)
        return err_set(err, errno, "cannot sync %s: %s", quote(str_of(disk->config.directory)).text,
                       err_words(errno));
    return 0;
}

/* Nothing is added any more to a file in which something went wrong. */
static void take_back(struct spool_disk *disk)
{
    struct segment *segment;

    if (disk->fd < 0)
        return;
    segment = last_segment(disk);
    if (!disk->n_synced) {
        remove_segment(disk, disk->n_segments - 1);
        return;
    }
    if (ftruncate(disk->fd, (off_t)disk->synced_bytes) == 0) {
        disk->stats.bytes -= segment->bytes - disk->synced_bytes;
        segment->bytes = disk->synced_bytes;
    }
    disk->stats.records -= segment->n_records - disk->n_synced;
    segment->n_records = disk->n_synced;
    close_segment(disk);
}

static bool is_full(struct spool_disk *disk, size_t more)
{
    const struct segment *segment = last_segment(disk);

    return segment->n_records >= disk->config.segment_records ||
           (segment->n_records && segment->bytes + more > disk->config.segment_bytes);
}

static void make_line(struct spool_disk *disk, struct str record, int64_t seconds)
{
    struct buf *line = &disk->line;
    char sum[SUM + 1];

    buf_reset(line);
    buf_printf(line, "%0*d ", SUM, 0);
    buf_i64(line, seconds);
    buf_byte(line, ' ');
    buf_put(line, record);
    if (line->over)
        return;
    snprintf(sum, sizeof(sum), "%0*" PRIx32, SUM, sum_of(str_skip(buf_str(line), SUM + 1)));
    memcpy(line->p, sum, SUM);
    buf_byte(line, '\n');
}

static int write_all(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes = str_skip(bytes, (size_t)n);
    }
    return 0;
}

int spool_disk_put(struct spool_disk *disk, struct str record, int64_t seconds, struct err *err)
{
    struct segment *segment;
    int code = 0;

    make_line(disk, record, seconds);
    if (disk->line.over || str_find(record, '\n') < record.n)
        return err_set(err, EINVAL, "a record is too long, or more than a line");
    if (disk->fd >= 0 && is_full(disk, disk->line.n)) {
        code = spool_disk_sync(disk, err);
        close_segment(disk);
    }
    if (code == 0 && disk->fd < 0)
        code = begin_segment(disk, err);
    if (code == 0 && write_all(disk->fd, buf_str(&disk->line)) < 0)
        code = err_set(err, errno, "cannot write into %s: %s",
                       quote(str_of(disk->config.directory)).text, err_words(errno));
    if (code < 0) {
        take_back(disk);
        return code;
    }
    segment = last_segment(disk);
    segment->bytes += disk->line.n;
    segment->n_records++;
    disk->stats.bytes += disk->line.n;
    disk->stats.records++;
    return 0;
}

/* In a file that somebody has removed nothing lasts. */
static int sync_file(int fd)
{
    struct stat status;

    if (fdatasync(fd) < 0 || fstat(fd, &status) < 0)
        return -errno;
    return status.st_nlink ? 0 : -ENOENT;
}

int spool_disk_sync(struct spool_disk *disk, struct err *err)
{
    int code;

    if (disk->fd < 0)
        return 0;
    code = sync_file(disk->fd);
    if (code < 0) {
        err_set(err, -code, "cannot sync a file in %s: %s",
                quote(str_of(disk->config.directory)).text, err_words(-code));
        take_back(disk);
        return code;
    }
    disk->synced_bytes = last_segment(disk)->bytes;
    disk->n_synced = last_segment(disk)->n_records;
    make_room(disk);
    return 0;
}

int spool_disk_oldest(struct spool_disk *disk, struct buf *text, struct spool_record *records,
                      struct err *err)
{
    size_t n;
    int code;

    if (!disk->n_segments)
        return err_set(err, ENOENT, "nothing waits in %s",
                       quote(str_of(disk->config.directory)).text);
    if (disk->n_segments == 1)
        close_segment(disk);
    disk->looked_at = disk->segments[0].number;
    code = read_file(disk, disk->looked_at, text, err);
    if (code < 0)
        return code;
    n = read_lines(buf_str(text), records, disk->config.segment_records);
    return (int)(n < disk->config.segment_records ? n : disk->config.segment_records);
}

void spool_disk_stats(const struct spool_disk *disk, struct spool_disk_stats *ret)
{
    *ret = disk->stats;
}
