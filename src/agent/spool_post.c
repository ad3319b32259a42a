/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Posts records to /ingest and finds those that the exporter refuses. */
#include "agent/spool_post.h"

#include "agent/final.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/fetch.h"
#include "base/json.h"
#include "base/munge.h"
#include "base/secret.h"
#include "model/ingest_claim.h"

#include <stdlib.h>

enum {
    POST_ROOM = SPOOL_POST_BYTES + FINAL_MAX + 4096, /* and what stands around the records */
    MOST_ANSWER = 16 * 1024,
    LONGEST_RETRY = 300, /* seconds */
};

/* After munge has failed or was refused, the token is used for this time. */
static const int64_t token_ns = 600 * NS_PER_SEC;

struct spool_post {
    struct fetch_base base;
    char *url, *token_file, *munge_socket, *ca_file, *cluster; /* NULL as in the configuration */
    struct fetch_line *line;                                   /* NULL: one for each request */
    const atomic_bool *cancelled;
    const struct clock *clock;
    int64_t token_until_ns;

    /* of the batch at hand */
    struct spool_record *records;
    int64_t timeout_ms;
    struct buf body;
    size_t n_doubtful; /* records that were refused one by one, but not by their names */
};

enum outcome {
    POST_TAKEN,
    POST_REFUSED, /* a record is at fault */
    POST_FAILED,
};

/* What the exporter answered. */
struct answer {
    struct buf text;
    long status;
    uint64_t retry_after; /* seconds; 0: it does not say */
    bool has_named;       /* it has said which record is at fault */
    uint64_t record;
};

static int add_answer(void *ctx, struct str piece, struct err *err)
{
    struct answer *answer = ctx;

    (void)err;
    buf_put(&answer->text, piece);
    return 0;
}

/* {"error": …, "record": 3} */
static void read_answer(struct answer *answer)
{
    struct json *json = json_new();
    bool is_record = false;
    enum json_event event;

    json_feed(json, buf_str(&answer->text));
    json_finish(json);
    if (json_next(json) == JSON_OBJECT)
        while ((event = json_next(json)) > JSON_END) {
            if (event == JSON_KEY) {
                is_record = str_eq(json_text(json), STR("record"));
                if (!is_record)
                    json_skip(json);
            } else if (is_record) {
                answer->has_named = json_u64(json, &answer->record);
                is_record = false;
            }
        }
    if (json_error(json, NULL) < 0)
        answer->has_named = false;
    json_free(json);
}

static const struct status {
    long status;
    const char *advice;
} statuses[] = {
    { 401, "is munge's key, or the token in --ingest.token-file, the same there?" },
    { 403, "is the agent's user in --ingest.users there, and does the node's name resolve there?" },
    { 404, "does the exporter keep jobs in a store, and is --ingest.cluster one that it knows?" },
    { 429, "it has too much to do" },
    { 503, "it has too much to do, or cannot write its store" },
};

static const char *advice_of(long status)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].advice;
    return "see its log";
}

static enum outcome judge(struct spool_post *post, struct answer *answer, struct err *err)
{
    if (answer->status == 200)
        return POST_TAKEN;
    err_set(err, EREMOTEIO, "%s answered with status %ld; %s", post->base.origin, answer->status,
            advice_of(answer->status));
    if (answer->status != 400 && answer->status != 413 && answer->status != 422)
        return POST_FAILED;
    if (!answer->text.over)
        read_answer(answer);
    return POST_REFUSED;
}

static void make_body(struct spool_post *post, size_t first, size_t n)
{
    struct buf *body = &post->body;

    buf_reset(body);
    buf_text(body, "{\"cluster\":");
    buf_json(body, str_of(post->cluster));
    buf_text(body, ",\"records\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_byte(body, ',');
        buf_put(body, post->records[first + i].text);
    }
    buf_text(body, "]}");
}

/* What proves to the exporter who sends the body: one of the two. */
struct proof {
    char *token;
    char *header; /* with a munge credential */
};

static int make_credential(const struct spool_post *post, struct proof *proof, struct err *err)
{
    char claim[INGEST_CLAIM_SIZE], *credential = NULL;
    struct buf header;
    int code = ingest_claim(buf_str(&post->body), claim, err);

    if (code == 0)
        code = munge_seal(post->munge_socket, str_of(claim), &credential, err);
    if (code < 0)
        return code;
    buf_init(&header, MOST_ANSWER);
    buf_printf(&header, "Authorization: Munge %s", credential);
    proof->header = header.p;
    free(credential);
    return 0;
}

/* The token is read each time: it may have been changed. */
static int make_proof(struct spool_post *post, struct proof *proof, struct err *err)
{
    int64_t now_ns = clock_mono(post->clock);

    if (!post->token_file)
        return make_credential(post, proof, err);
    if (now_ns >= post->token_until_ns) {
        if (make_credential(post, proof, err) == 0)
            return 0;
        post->token_until_ns = clock_mono(post->clock) + token_ns;
    }
    return secret_read(post->token_file, "token", &proof->token, err);
}

static enum outcome send_body(struct spool_post *post, const struct proof *proof,
                              struct answer *answer, struct err *err)
{
    const char *headers[] = { proof->header, NULL };
    const struct fetch fetch = {
        .url = post->url,
        .body = buf_str(&post->body),
        .content_type = "application/json",
        .headers = headers,
        .bearer = proof->token,
        .ca_file = post->ca_file,
        .timeout_ms = post->timeout_ms,
        .max_answer = MOST_ANSWER,
        .cancelled = post->cancelled,
        .line = post->line,
        .sink = add_answer,
        .ctx = answer,
    };
    struct fetch_result result = { 0 };
    int code = fetch_run(&fetch, &result, err);

    answer->status = result.status;
    answer->retry_after = result.retry_after;
    return code < 0 ? POST_FAILED : judge(post, answer, err);
}

static enum outcome prove_and_send(struct spool_post *post, struct answer *answer,
                                   bool *ret_is_munge, struct err *err)
{
    struct proof proof = { 0 };
    enum outcome outcome = POST_FAILED;

    if (make_proof(post, &proof, err) == 0)
        outcome = send_body(post, &proof, answer, err);
    *ret_is_munge = proof.header != NULL;
    free(proof.header);
    secret_free(proof.token);
    return outcome;
}

/* An exporter that refuses the credential may accept the token. If it accepts neither, what it said
 * of the credential is told, and the credential is tried first again. */
static enum outcome send_with_token(struct spool_post *post, struct answer *answer, struct err *err)
{
    struct answer second = { 0 };
    struct err second_err = { 0 };
    enum outcome outcome;
    bool is_munge;

    buf_init(&second.text, MOST_ANSWER);
    post->token_until_ns = clock_mono(post->clock) + token_ns;
    outcome = prove_and_send(post, &second, &is_munge, &second_err);
    if (second.status == 401) {
        post->token_until_ns = 0;
    } else {
        struct buf unused = answer->text;

        *answer = second;
        second.text = unused;
        *err = second_err;
    }
    buf_free(&second.text);
    return outcome;
}

static enum outcome send_records(struct spool_post *post, size_t first, size_t n,
                                 struct answer *answer, struct err *err)
{
    struct err failure = { 0 };
    enum outcome outcome;
    bool is_munge;

    make_body(post, first, n);
    outcome = prove_and_send(post, answer, &is_munge, &failure);
    if (is_munge && post->token_file && (answer->status == 401 || answer->status == 403))
        outcome = send_with_token(post, answer, &failure);
    if (outcome != POST_TAKEN) /* what was said of an earlier part of the batch stays */
        *err = failure;
    return outcome;
}

static void keep_words(struct spool_batch *batch, const struct answer *answer)
{
    struct str words = str_trim(buf_str(&answer->text));

    batch->words[str_copy_printable(batch->words, sizeof(batch->words) - 1, words)] = '\0';
}

static int64_t retry_ns(const struct answer *answer)
{
    uint64_t seconds = answer->retry_after;

    return (int64_t)(seconds < LONGEST_RETRY ? seconds : LONGEST_RETRY) * NS_PER_SEC;
}

static void forget_record(struct spool_post *post, size_t i, size_t end)
{
    memmove(&post->records[i], &post->records[i + 1], (end - i - 1) * sizeof(*post->records));
}

/* False if it is to be tried again later. */
static bool post_range(struct spool_post *post, size_t first, size_t n, struct spool_batch *batch)
{
    struct answer answer = { 0 };
    enum outcome outcome;

    if (!n)
        return true;
    buf_init(&answer.text, MOST_ANSWER);
    outcome = send_records(post, first, n, &answer, &batch->err);
    if (outcome != POST_TAKEN)
        keep_words(batch, &answer);
    buf_free(&answer.text);
    if (outcome == POST_FAILED) {
        batch->retry_ns = retry_ns(&answer);
        return false;
    }
    if (outcome == POST_TAKEN) {
        batch->n_taken += n;
        return true;
    }
    if (answer.has_named && answer.record < n) {
        batch->n_refused++;
        forget_record(post, first + answer.record, first + n);
        return post_range(post, first, n - 1, batch);
    }
    if (n == 1) {
        batch->n_refused += answer.status == 413;
        post->n_doubtful += answer.status != 413;
        return true;
    }
    return post_range(post, first, n / 2, batch) &&
           post_range(post, first + n / 2, n - n / 2, batch);
}

/* A single record that is refused may be at fault, or the way to the exporter: if others were taken
 * it is the record. */
bool spool_post_send(struct spool_post *post, struct spool_record *records, size_t n,
                     int64_t timeout_ns, struct spool_batch *ret)
{
    bool is_done;

    *ret = (struct spool_batch){ 0 };
    post->records = records;
    post->timeout_ms = timeout_ns > NS_PER_MS ? timeout_ns / NS_PER_MS : 1;
    post->n_doubtful = 0;
    buf_init(&post->body, POST_ROOM);
    is_done = post_range(post, 0, n, ret) && (!post->n_doubtful || ret->n_taken);
    if (is_done)
        ret->n_refused += post->n_doubtful;
    buf_free(&post->body); /* it may be large, and the next is far */
    return is_done;
}

static int check_proof(const struct spool_post_config *config, struct err *err)
{
    char *token = NULL;
    int code;

    if (config->token_file) {
        code = secret_read(config->token_file, "token", &token, err);
        secret_free(token);
        return code;
    }
    code = munge_find(err);
    return code < 0 ? err_prefix(err, "munge is needed without --ingest.token-file") : 0;
}

static int prepare(struct spool_post *post, const struct spool_post_config *config, struct err *err)
{
    struct buf url;
    int code = fetch_base_of(config->url, &post->base, err);

    if (code < 0)
        return code;
    if (post->base.user)
        return err_set(err, EINVAL, "%s is to be reached with a token, not as a user",
                       post->base.origin);
    code = check_proof(config, err);
    buf_init(&url, strlen(post->base.url) + sizeof("/ingest"));
    buf_printf(&url, "%s/ingest", post->base.url);
    post->url = url.p;
    /* Without TLS a new connection costs little. */
    if (str_starts(buf_str(&url), STR("https:")))
        post->line = fetch_line_new();
    return code;
}

static char *copy_or_null(const char *text)
{
    return text ? heap_str(str_of(text)) : NULL;
}

int spool_post_new(const struct spool_post_config *config, struct spool_post **ret, struct err *err)
{
    struct spool_post *post = heap_alloc(sizeof(*post));
    int code;

    post->token_file = copy_or_null(config->token_file);
    post->munge_socket = copy_or_null(config->munge_socket);
    post->ca_file = copy_or_null(config->ca_file);
    post->cluster = heap_str(str_of(config->cluster));
    post->cancelled = config->cancelled;
    post->clock = config->clock;
    code = prepare(post, config, err);
    if (code < 0)
        spool_post_free(post);
    else
        *ret = post;
    return code;
}

struct spool_post *spool_post_free(struct spool_post *post)
{
    if (post) {
        fetch_line_free(post->line);
        fetch_base_clear(&post->base);
        free(post->url);
        free(post->token_file);
        free(post->munge_socket);
        free(post->ca_file);
        free(post->cluster);
        free(post);
    }
    return NULL;
}
