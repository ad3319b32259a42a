/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A document of a recording, from the bytes to the metrics. In whatever pieces it comes it says the
 * same; what it says can be written in every format, and written down and read again it is the
 * same document. */
#include "source/record_reader.h"

#include "base/clock.h"

#include "rendered.h"

#include <sys/mman.h>

enum { MOST_BYTES = 1 << 20 };

static int read_document(struct str text, uint64_t seed, struct section **ret, struct err *err)
{
    struct record_reader *reader = record_reader_new(MOST_BYTES);
    int code = 0;

    for (struct str rest = text; rest.n && code == 0;) {
        struct str piece = str_head(rest, seed ? 1 + fuzz_random(&seed) % 300 : rest.n);

        code = record_reader_feed(reader, piece, err);
        rest = str_skip(rest, piece.n);
    }
    if (code == 0)
        code = record_reader_end(reader, ret, err);
    record_reader_free(reader);
    return code;
}

static void write_document(const struct section *section, struct pseudonyms *pseudonyms,
                           struct buf *to)
{
    static const struct record_about about = { .door = "fuzz", .wall_ns = NS_PER_SEC };
    static int fd = -1; /* one for all inputs: making it costs more than writing to it */
    struct err err;
    uint64_t bytes;
    char *room;

    if (fd < 0)
        fd = memfd_create("document", MFD_CLOEXEC);
    FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
    FUZZ_CHECK(record_write(fd, section, &about, pseudonyms, &bytes, &err) == 0);
    room = buf_room(to, bytes);
    FUZZ_CHECK(room && pread(fd, room, bytes, 0) == (ssize_t)bytes);
    to->n += bytes;
    buf_end(to);
}

/* Written, read and written again, it is the same. */
static void check_round_trip(const struct section *section)
{
    struct buf first, second;
    struct section *again;
    struct err err;

    buf_init(&first, 16 * MOST_BYTES);
    buf_init(&second, 16 * MOST_BYTES);
    write_document(section, NULL, &first);
    if (first.n <= MOST_BYTES && read_document(buf_str(&first), 0, &again, &err) == 0) {
        write_document(again, NULL, &second);
        FUZZ_CHECK(str_eq(buf_str(&first), buf_str(&second)), "%s\n%s", first.p, second.p);
        section_unref(again);
    } else {
        FUZZ_CHECK(first.n > MOST_BYTES || err.code == EFBIG, "%s", err.text);
    }
    buf_free(&first);
    buf_free(&second);
}

static void check_pseudonyms(const struct section *section)
{
    struct pseudonyms *pseudonyms = pseudonyms_new();
    struct buf document;

    buf_init(&document, 16 * MOST_BYTES);
    write_document(section, pseudonyms, &document);
    buf_free(&document);
    pseudonyms_free(pseudonyms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct section *whole, *cut;
    struct err err = { 0 };
    int code;

    if (size > 64 * 1024)
        return 0;
    code = read_document(text, 0, &whole, &err);
    FUZZ_CHECK(code == 0 || (err.code == -code && err.text[0] && !strchr(err.text, '\n')));
    FUZZ_CHECK(code == read_document(text, fuzz_seed(data, size) | 1, &cut, &err), "%d", code);
    if (code < 0)
        return 0;
    check_round_trip(whole);
    check_pseudonyms(whole);
    record_move_times(whole, (int64_t)fuzz_seed(data, size));
    render(whole, METRIC_FORMATS);
    section_unref(whole);
    section_unref(cut);
    return 0;
}
