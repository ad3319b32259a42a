/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an exporter answers to an agent that posts records. The first byte is how many records there
 * are; each line after it is an answer, "STATUS RETRY-AFTER BODY", and after the last all is taken.
 * Only fetch_run, munge and the token stand in for the real ones. Whatever is answered, each record
 * is taken once, refused, or posted again later, after a number of requests that has a ceiling. */
#include "agent/spool_post.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fetch.h"
#include "base/munge.h"
#include "base/num.h"
#include "base/secret.h"

#include "fuzz.h"

enum { MOST_BYTES = 64 * 1024, MOST_RECORDS = 32, LONGEST_RETRY = 300 };

static struct {
    struct str answers; /* that are left */
    uint64_t seed;
    size_t n_requests;
    size_t n_taken[MOST_RECORDS], n_posted[MOST_RECORDS];
} exporter;

int __wrap_fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err);
int __wrap_secret_read(const char *path, const char *what, char **ret, struct err *err);
int __wrap_munge_seal(const char *socket, struct str payload, char **ret, struct err *err);

int __wrap_munge_seal(const char *socket, struct str payload, char **ret, struct err *err)
{
    (void)socket;
    (void)payload;
    (void)err;
    *ret = heap_str(STR("MUNGE:x:"));
    return 0;
}

int __wrap_secret_read(const char *path, const char *what, char **ret, struct err *err)
{
    (void)path;
    (void)what;
    (void)err;
    *ret = heap_str(STR("token"));
    return 0;
}

/* {"cluster":"c","records":[{"n":3},{"n":4}]}: notes which were posted. */
static void see_records(struct str body, bool is_taken)
{
    static const struct str head = STR_INIT("{\"cluster\":\"c\",\"records\":[");
    uint64_t last = 0;
    bool is_first = true;

    FUZZ_CHECK(str_starts(body, head), "%.*s", STR_ARG(body));
    body = str_skip(body, head.n);
    while (!str_eq(body, STR("]}"))) {
        uint64_t number;
        struct str record;

        if (!is_first)
            FUZZ_CHECK(str_starts(body, STR(",")));
        body = str_skip(body, is_first ? 0 : 1);
        record = str_cut(&body, '}');
        FUZZ_CHECK(str_starts(record, STR("{\"n\":")));
        FUZZ_CHECK(num_get_u64(str_skip(record, 5), &number) && number < MOST_RECORDS);
        FUZZ_CHECK(is_first || number > last);
        last = number;
        is_first = false;
        exporter.n_posted[number]++;
        exporter.n_taken[number] += is_taken;
    }
    FUZZ_CHECK(!is_first);
}

static int give_body(const struct fetch *fetch, struct str body, struct err *err)
{
    int code = 0;

    if (body.n > fetch->max_answer)
        return err_set(err, EFBIG, "too long");
    while (body.n && code == 0) {
        struct str piece = str_head(body, 1 + fuzz_random(&exporter.seed) % 100);

        code = fetch->sink(fetch->ctx, piece, err);
        body = str_skip(body, piece.n);
    }
    return code;
}

int __wrap_fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err)
{
    struct str body = exporter.answers.p ? str_cut(&exporter.answers, '\n') : STR("200 0 {}");
    uint64_t status, retry_after;

    *ret = (struct fetch_result){ 0 };
    exporter.n_requests++;
    if (!num_get_u64(str_cut(&body, ' '), &status) || status > 999 || !body.p ||
        !num_get_u64(str_cut(&body, ' '), &retry_after)) {
        see_records(fetch->body, false);
        return err_set(err, ECONNREFUSED, "no connection");
    }
    ret->status = (long)status;
    ret->retry_after = retry_after;
    see_records(fetch->body, status == 200 && body.n <= fetch->max_answer);
    return give_body(fetch, body, err);
}

static int64_t now_ns;

static int64_t get_now(const struct clock *clock)
{
    (void)clock;
    return now_ns;
}

static struct spool_post *new_post(void)
{
    static const struct clock clock = { .mono_ns = get_now };
    const struct spool_post_config config = {
        .url = "http://exporter:8080",
        .token_file = "/token",
        .cluster = "c",
        .clock = &clock,
    };
    struct spool_post *post;
    struct err err;

    FUZZ_CHECK(spool_post_new(&config, &post, &err) == 0, "%s", err.text);
    return post;
}

static void check_batch(const struct spool_batch *batch, size_t n, bool is_done)
{
    size_t n_taken = 0;

    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(exporter.n_taken[i] <= 1);
        FUZZ_CHECK(!is_done || exporter.n_posted[i] > 0);
        n_taken += exporter.n_taken[i];
    }
    FUZZ_CHECK(batch->n_taken == n_taken);
    FUZZ_CHECK(batch->n_taken + batch->n_refused <= n);
    FUZZ_CHECK(!is_done || batch->n_taken + batch->n_refused == n);
    FUZZ_CHECK(batch->retry_ns >= 0 && batch->retry_ns <= LONGEST_RETRY * NS_PER_SEC);
    FUZZ_CHECK(exporter.n_requests <= 6 * n); /* with the credential, and with the token */
    FUZZ_CHECK(strnlen(batch->words, sizeof(batch->words)) < sizeof(batch->words));
    for (const char *c = batch->words; *c; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != '\x7f');
    FUZZ_CHECK(batch->n_taken == n || batch->err.text[0]);
    FUZZ_CHECK(!strchr(batch->err.text, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct spool_post *post;
    struct spool_record records[MOST_RECORDS];
    char texts[MOST_RECORDS][32];
    struct spool_batch batch;
    size_t n;

    if (size == 0 || size > MOST_BYTES)
        return 0;
    if (!post)
        post = new_post();
    n = 1 + data[0] % MOST_RECORDS;
    for (size_t i = 0; i < n; i++) {
        snprintf(texts[i], sizeof(texts[i]), "{\"n\":%zu}", i);
        records[i] = (struct spool_record){ .text = str_of(texts[i]), .seconds = 1 };
    }
    memset(&exporter, 0, sizeof(exporter));
    now_ns += 3600 * NS_PER_SEC; /* the credential is tried first again */
    exporter.answers = (struct str){ (const char *)data + 1, size - 1 };
    exporter.seed = fuzz_seed(data, size);
    check_batch(&batch, n, spool_post_send(post, records, n, NS_PER_SEC, &batch));
    return 0;
}
