/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What squeue and sinfo print, from the frame to the metrics. The input is an answer with "~" where
 * the token stands; its first byte says which command it is of. In whatever pieces it comes it says
 * the same, and whatever it says can be written in every format. */
#include "source/cli.c"

#include "metric/segment.h"
#include "snapshot/publish.h"

#include "fuzz.h"

enum { MOST_BYTES = 4 << 20 };

/* What one reading of the answer came to. */
struct outcome {
    int code;
    size_t n, skipped;
    uint64_t digest; /* of all that was told of jobs or nodes */
};

static void put_answer(struct buf *to, struct str text, const char *token)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '~')
            buf_text(to, token);
        else
            buf_put(to, (struct str){ text.p + i, 1 });
    }
}

static uint64_t digest_of(struct section *section)
{
    static const struct publish_config config = {
        .collectors = (collector_set)-1,
        .max_segment = 16 << 20,
        .clock = &clock_real,
    };
    unsigned formats = FORMAT_BIT(METRIC_TEXT) | FORMAT_BIT(METRIC_OPENMETRICS);
    struct edition *edition = edition_new(&config, section, formats, NULL);
    uint64_t digest = 0;

    for (size_t i = 0; collectors[i]; i++) {
        struct segment *segment;
        struct segment_list list = { &segment, 1 };
        struct iovec iov[4];

        for (int format = 0; format < METRIC_FORMATS; format++) {
            segment = edition->collectors[i].segments[format];
            if (!segment)
                continue;
            for (size_t k = 0, n = segment_iov(list, iov); k < n; k++)
                digest = digest * 31 + fuzz_seed(iov[k].iov_base, iov[k].iov_len);
        }
    }
    edition_unref(edition);
    return digest;
}

/* Feeds the answer in pieces of random size, or at once with seed 0. */
static struct outcome read_answer(enum kind kind, struct str text, uint64_t seed)
{
    struct reading reading = { .section = section_new(kind) };
    struct outcome outcome = { 0 };
    struct buf answer;
    struct err err;

    if (kind == KIND_JOBS)
        frame_init(&reading.frame, SQUEUE_N_FIELDS, read_job, &reading);
    else
        frame_init(&reading.frame, SINFO_N_FIELDS, read_node, &reading);
    map_init(&reading.nodes, &reading.names);
    map_init(&reading.partitions, &reading.names);
    buf_init(&answer, MOST_BYTES);
    put_answer(&answer, text, reading.frame.token);
    for (struct str rest = buf_str(&answer); rest.n && outcome.code == 0;) {
        size_t most = seed ? 1 + fuzz_random(&seed) % 300 : FRAME_PIECE_MAX;
        struct str piece = str_head(rest, most);

        outcome.code = feed(&reading, piece, &err);
        rest = str_skip(rest, piece.n);
    }
    if (outcome.code == 0)
        outcome.code = frame_finish(&reading.frame, &err);
    if (kind == KIND_JOBS) {
        outcome.n = reading.section->jobs.n;
        arena_adopt(&reading.section->arena, reading.section->jobs.job);
    } else {
        outcome.n = reading.section->nodes.n;
        if (outcome.code == 0)
            build_membership(&reading);
        arena_adopt(&reading.section->arena, reading.section->nodes.node);
        arena_adopt(&reading.section->arena, reading.section->nodes.partition);
        free(reading.pairs);
    }
    outcome.skipped = reading.section->skipped;
    if (outcome.code == 0)
        outcome.digest = digest_of(reading.section);
    frame_free(&reading.frame);
    map_free(&reading.nodes);
    map_free(&reading.partitions);
    arena_clear(&reading.names);
    section_unref(reading.section);
    buf_free(&answer);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = fuzz_seed(data, size) | 1;
    struct outcome whole, cut;
    enum kind kind;
    struct str text;

    if (size < 1 || size > 64 * 1024)
        return 0;
    kind = data[0] & 1 ? KIND_NODES : KIND_JOBS;
    text = (struct str){ (const char *)data + 1, size - 1 };
    whole = read_answer(kind, text, 0);
    cut = read_answer(kind, text, seed);
    FUZZ_CHECK(whole.code == cut.code, "%d %d", whole.code, cut.code);
    if (whole.code < 0)
        return 0;
    FUZZ_CHECK(whole.n == cut.n && whole.skipped == cut.skipped);
    FUZZ_CHECK(whole.digest == cut.digest);
    return 0;
}
