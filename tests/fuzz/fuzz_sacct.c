/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sacct prints. The first line of an input names its fields, as sacct --helpformat does; the
 * rest is an answer with "~" where the token stands. In whatever pieces it comes it says the same,
 * and what it says has a name and lies in what was printed. */
#include "source/sacct_answer.h"

#include "fuzz.h"

enum { MOST_BYTES = 4 << 20 };

struct outcome {
    int code;
    struct sacct_counts counts;
    uint64_t digest; /* of all that was told */
};

static void add(uint64_t *digest, struct str text)
{
    *digest = *digest * 31 + fuzz_seed((const uint8_t *)text.p, text.n);
}

static int take(void *ctx, const struct job_record *job, struct err *err)
{
    const struct str texts[] = { job->user,        job->account,       job->qos,   job->name,
                                 job->partition,   job->reason,        job->nodes, job->tres,
                                 job->reservation, job->tres_requested };
    const uint64_t numbers[] = { job->id,          job->array_job_id,      job->array_task_id,
                                 job->tasks,       job->het_job_id,        job->het_offset,
                                 job->cpus,        job->memory_peak_bytes, job->read_bytes,
                                 job->write_bytes, job->energy_joules };
    uint64_t *digest = &((struct outcome *)ctx)->digest;

    (void)err;
    FUZZ_CHECK(job->id && job->submit_time > 0 && job->tasks);
    FUZZ_CHECK(job->origin == RECORD_ACCOUNTED);
    for (size_t i = 0; i < COUNT(texts); i++)
        add(digest, texts[i]);
    add(digest, (struct str){ (const char *)numbers, sizeof(numbers) });
    for (size_t i = 0; i < job->n_extra; i++) {
        FUZZ_CHECK(job->extra[i].name.n && job->extra[i].value.n);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(!str_eq(job->extra[i].name, job->extra[k].name));
        add(digest, job->extra[i].name);
        add(digest, job->extra[i].value);
    }
    return 0;
}

static void put_answer(struct buf *to, struct str text, const char *token)
{
    for (size_t mark; (mark = str_find(text, '~')) < text.n; text = str_skip(text, mark + 1)) {
        buf_put(to, str_head(text, mark));
        buf_text(to, token);
    }
    buf_put(to, text);
}

/* Feeds the answer in pieces of random size, or at once with seed 0. */
static struct outcome read_answer(const struct sacct_fields *fields, struct str text, uint64_t seed)
{
    static struct buf bytes; /* stays, as growing it again costs more than filling it */
    struct outcome outcome = { 0 };
    struct sacct_answer *answer = sacct_answer_new(&(struct sacct_answer_config){
        .fields = fields,
        .as_of = 1,
        .record = take,
        .ctx = &outcome,
    });
    struct err err;

    if (!bytes.max)
        buf_init(&bytes, MOST_BYTES);
    buf_reset(&bytes);
    put_answer(&bytes, text, sacct_answer_token(answer));
    for (struct str rest = buf_str(&bytes); rest.n && outcome.code == 0;) {
        struct str piece = str_head(rest, seed ? 1 + fuzz_random(&seed) % 300 : FRAME_PIECE_MAX);

        outcome.code = sacct_answer_feed(answer, piece, &err);
        rest = str_skip(rest, piece.n);
    }
    if (outcome.code == 0)
        outcome.code = sacct_answer_end(answer, &err);
    sacct_answer_count(answer, &outcome.counts);
    sacct_answer_free(answer);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct str help = str_head(text, str_find(text, '\n'));
    struct sacct_fields fields;
    struct outcome whole, cut;
    struct err err;

    if (!size || size > 64 * 1024 || sacct_fields_read(help, &fields, &err) < 0)
        return 0;
    text = str_skip(text, help.n + 1);
    whole = read_answer(&fields, text, 0);
    cut = read_answer(&fields, text, fuzz_seed(data, size) | 1);
    FUZZ_CHECK(whole.code == cut.code, "%d %d", whole.code, cut.code);
    FUZZ_CHECK(whole.counts.records == cut.counts.records);
    FUZZ_CHECK(whole.counts.skipped == cut.counts.skipped);
    FUZZ_CHECK(whole.digest == cut.digest);
    return 0;
}
