/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Prometheus answers, to an instant query and to that of a range. In whatever pieces it
 * comes it says the same, what is counted is what the sink was told, and all words are fit for a
 * log. */
#include "base/buf.h"
#include "source/prometheus_answer.h"

#include "fuzz.h"

#include <math.h>

enum { MOST_POINTS = 4 };

/* What one reading gave. */
struct reading {
    struct buf samples;
    size_t n_samples;
    struct prometheus_said said;
    int code;
    struct err err;
};

static void take_labels(struct reading *reading, const struct str label[PROMETHEUS_LABELS])
{
    reading->n_samples++;
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++) {
        FUZZ_CHECK(label[i].p && (i < 2 || !label[i].n));
        buf_json(&reading->samples, label[i]);
        for (struct str rest = label[i]; rest.n; rest = str_skip(rest, str_utf8_len(rest)))
            FUZZ_CHECK(str_utf8_len(rest));
    }
}

static void take_number(struct reading *reading, double value)
{
    buf_double(&reading->samples, isnan(value) ? NAN : value);
    buf_byte(&reading->samples, '\n');
}

static void take(void *ctx, const struct prometheus_sample *sample)
{
    take_labels(ctx, sample->label);
    take_number(ctx, sample->value);
}

static void take_series(void *ctx, const struct prometheus_series *series)
{
    take_labels(ctx, series->label);
    FUZZ_CHECK(series->n_points && series->n_points <= MOST_POINTS);
    for (size_t i = 0; i < series->n_points; i++) {
        FUZZ_CHECK(isfinite(series->point[i].time));
        take_number(ctx, series->point[i].time);
        take_number(ctx, series->point[i].value);
    }
}

static void read_answer(struct str text, bool is_range, uint64_t seed, struct reading *ret)
{
    const struct prometheus_query query = { .labels = { "jobid", "target" },
                                            .sink = take,
                                            .ctx = ret };
    const struct prometheus_range range = { .end = (MOST_POINTS - 1) * 15,
                                            .step_seconds = 15,
                                            .labels = { "jobid", "target" },
                                            .sink = take_series,
                                            .ctx = ret };
    struct prometheus_answer *answer =
        is_range ? prometheus_answer_of_range(&range) : prometheus_answer_of_query(&query);

    *ret = (struct reading){ 0 };
    buf_init(&ret->samples, 64 << 20);
    for (struct str rest = text; rest.n && ret->code == 0;) {
        struct str piece = str_head(rest, seed ? 1 + fuzz_random(&seed) % 50 : rest.n);

        ret->code = prometheus_answer_feed(answer, piece, &ret->err);
        rest = str_skip(rest, piece.n);
    }
    if (ret->code == 0)
        ret->code = prometheus_answer_end(answer, &ret->err);
    ret->said = *prometheus_answer_said(answer);
    prometheus_answer_free(answer);
}

static void check_words(const char *words, size_t size)
{
    FUZZ_CHECK(memchr(words, '\0', size));
    for (struct str rest = str_of(words); rest.n; rest = str_skip(rest, str_printable_len(rest)))
        FUZZ_CHECK(str_printable_len(rest));
}

static void check_reading(const struct reading *reading)
{
    const struct prometheus_said *said = &reading->said;

    FUZZ_CHECK(said->samples == reading->n_samples);
    FUZZ_CHECK(reading->code == 0 || (reading->err.code == -reading->code && reading->err.text[0]));
    FUZZ_CHECK(reading->code || said->status != PROMETHEUS_SILENT);
    check_words(said->error_type, sizeof(said->error_type));
    check_words(said->error, sizeof(said->error));
    check_words(said->warning, sizeof(said->warning));
    check_words(reading->err.text, sizeof(reading->err.text));
}

static void check_equal(const struct reading *a, const struct reading *b)
{
    FUZZ_CHECK(strcmp(a->err.text, b->err.text) == 0, "%s | %s", a->err.text, b->err.text);
    FUZZ_CHECK(str_eq(buf_str(&a->samples), buf_str(&b->samples)), "%s | %s", a->samples.p,
               b->samples.p);
    FUZZ_CHECK(a->said.status == b->said.status && a->said.is_partial == b->said.is_partial);
    FUZZ_CHECK(a->said.samples == b->said.samples && a->said.skipped == b->said.skipped);
    FUZZ_CHECK(strcmp(a->said.error_type, b->said.error_type) == 0);
    FUZZ_CHECK(strcmp(a->said.error, b->said.error) == 0);
    FUZZ_CHECK(strcmp(a->said.warning, b->said.warning) == 0);
}

static void check(struct str text, bool is_range, uint64_t seed)
{
    struct reading whole, pieces;

    read_answer(text, is_range, 0, &whole);
    read_answer(text, is_range, seed, &pieces);
    check_reading(&whole);
    check_equal(&whole, &pieces);
    buf_free(&whole.samples);
    buf_free(&pieces.samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    uint64_t seed = fuzz_seed(data, size) | 1;

    check(text, false, seed);
    check(text, true, seed);
    return 0;
}
