/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's commands print, from the bytes to the metrics. The input is an answer with "~" where
 * the token stands; its first byte says which class reads it. In whatever pieces it comes it says
 * the same, and whatever it says can be written in every format. */
#include "source/cli.h"
#include "source/json_answers.h"

#include "rendered.h"

enum { MOST_BYTES = 4 << 20 };

/* What one reading of the answer came to. */
struct outcome {
    int code;
    size_t skipped;
    uint64_t digest; /* of all that was told */
};

static void put_answer(struct buf *to, struct str text, const char *token)
{
    for (size_t mark; (mark = str_find(text, '~')) < text.n; text = str_skip(text, mark + 1)) {
        buf_put(to, str_head(text, mark));
        buf_text(to, token);
    }
    buf_put(to, text);
}

static const struct {
    enum kind kind;
    const struct answer_class *class;
} answers[] = {
    { KIND_JOBS, &answer_squeue },
    { KIND_NODES, &answer_sinfo },
    { KIND_JOBS, &answer_foreign_jobs },
    { KIND_NODES, &answer_foreign_nodes },
    { KIND_DIAG, &answer_foreign_diag },
    { KIND_LICENSES, &answer_foreign_licenses },
    { KIND_ASSOCIATIONS, &answer_foreign_limits },
    { KIND_DIAG, &answer_sdiag },
    { KIND_LICENSES, &answer_licenses },
    { KIND_RESERVATIONS, &answer_reservations },
    { KIND_SHARES, &answer_sshare },
    { KIND_ASSOCIATIONS, &answer_associations },
    { KIND_CONFIG, &answer_config },
    { KIND_CONFIG, &answer_config_user },
    { KIND_JOBS, &answer_json_jobs },
    { KIND_NODES, &answer_json_nodes },
    { KIND_NODES, &answer_json_partitions },
    { KIND_NODES, &answer_partitions },
    { KIND_RESERVATIONS, &answer_json_reservations },
    { KIND_SHARES, &answer_json_shares },
    { KIND_ASSOCIATIONS, &answer_json_associations },
    { KIND_ASSOCIATIONS, &answer_json_qos },
    { KIND_CONFIG, &answer_json_config },
    { KIND_JOBS, &answer_owners },
};

static const char *token_of(const struct answer *answer)
{
    if (answer->class->feed == framed_feed)
        return ((const struct framed *)answer)->frame.token;
    return answer->class == &answer_owners ? ((const struct owned *)answer)->token : "~";
}

/* Feeds the answer in pieces of random size or, with seed 0, at once; then it is also written in
 * every format. */
static struct outcome read_answer(size_t which, struct str text, uint64_t seed)
{
    static struct buf bytes; /* stays, as growing it again costs more than filling it */
    struct section *section = section_new(answers[which].kind);
    struct answer *answer = answer_new(answers[which].class, section, SIZE_MAX);
    const char *token = token_of(answer);
    const int n_formats = seed ? 1 : METRIC_FORMATS;
    struct outcome outcome = { 0 };
    struct err err;

    if (!bytes.max)
        buf_init(&bytes, MOST_BYTES);
    buf_reset(&bytes);
    put_answer(&bytes, text, token);
    for (struct str rest = buf_str(&bytes); rest.n && outcome.code == 0;) {
        struct str piece = str_head(rest, seed ? 1 + fuzz_random(&seed) % 300 : FRAME_PIECE_MAX);

        outcome.code = answer->class->feed(answer, piece, &err);
        rest = str_skip(rest, piece.n);
    }
    if (outcome.code == 0)
        outcome.code = answer->class->end(answer, &err);
    answer_free(answer);
    outcome.skipped = section->skipped;
    if (outcome.code == 0)
        outcome.digest = render(section, n_formats).digest;
    section_unref(section);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = fuzz_seed(data, size) | 1;
    struct outcome whole, cut;
    struct str text;
    size_t which;

    if (size < 1 || size > 64 * 1024)
        return 0;
    which = (uint8_t)(data[0] - '0') % COUNT(answers);
    text = (struct str){ (const char *)data + 1, size - 1 };
    whole = read_answer(which, text, 0);
    cut = read_answer(which, text, seed);
    FUZZ_CHECK(whole.code == cut.code, "%d %d", whole.code, cut.code);
    if (whole.code < 0)
        return 0;
    FUZZ_CHECK(whole.skipped == cut.skipped);
    FUZZ_CHECK(whole.digest == cut.digest);
    return 0;
}
