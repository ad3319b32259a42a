/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The route POST /ingest, which takes records from agents. */
#include "http/ingest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/quote.h"
#include "http/ingest_body.h"
#include "http/ingest_senders.h"
#include "http/ingest_token.h"

#include <stdatomic.h>

#define JSON "application/json"

enum {
    MOST_ANSWER = 2000,
    SMALL_BODY = 16 * 1024,           /* read on the HTTP thread, in some 0.1 ms */
    MOST_BYTES = 8 * INGEST_BODY_MAX, /* of all posts in progress */
    SENDER_SHARE = 4,                 /* one sender has a quarter of it, and of the posts */
};

static const int64_t put_ns = 5 * NS_PER_SEC;
static const int64_t look_ns = 5 * NS_PER_SEC; /* for a look at the token's file */

struct http_ingest {
    struct http_ingest_config config;
    struct ingest_token *token; /* NULL: tokens are not accepted */
    struct ingest_munge *munge; /* NULL: munge credentials are not accepted */
    atomic_bool is_munge_away;
    atomic_uint waiting;
    uint64_t bytes; /* of the posts that wait, as their headers say; of the HTTP thread, as … */
    struct senders *senders;
    atomic_ullong posts, refused, records;
};

/* A post from its header to its answer. */
struct post {
    struct http_ingest *ingest;
    struct sender *sender;        /* that has proved its identity; NULL: it is not admitted yet */
    struct ingest_sender *proved; /* by a munge credential; NULL: by the token */
    bool is_opened;               /* the credential, with this result: */
    int credential_code;
    struct err credential_err;
    uint64_t bytes;          /* of its body */
    int64_t since_ns;        /* its header came; then, its body was complete */
    struct request *request; /* that the recorder works on, or NULL */
    size_t n_records;
};

static void free_post(void *state)
{
    struct post *post = state;

    if (post->sender) {
        atomic_fetch_sub(&post->ingest->waiting, 1);
        post->ingest->bytes -= post->bytes;
        senders_leave(post->sender, post->bytes, post->n_records);
    }
    recorder_forget(post->ingest->config.recorder, post->request);
    free(post->proved);
    free(post);
}

static struct post *post_of(struct http_ingest *ingest, struct http_exchange *x)
{
    void **state = http_state(x, free_post);
    struct post *post = *state;

    if (!post) {
        *state = post = heap_alloc(sizeof(*post));
        post->ingest = ingest;
        post->since_ns = clock_mono(ingest->config.clock);
    }
    return post;
}

static bool is_late(const struct post *post, int64_t after_ns)
{
    return clock_mono(post->ingest->config.clock) - post->since_ns >= after_ns;
}

/* --- the answer --- */

struct outcome {
    unsigned status;
    const char *retry_after; /* seconds, or NULL */
    int64_t record;          /* that is at fault; -1: none */
};

static void refuse(struct http_ingest *ingest, struct http_exchange *x, struct outcome outcome,
                   const char *sentence)
{
    struct buf answer;

    atomic_fetch_add(&ingest->refused, 1);
    if (outcome.retry_after)
        http_add_header(x, "Retry-After", outcome.retry_after);
    if (outcome.status == 401 && ingest->token)
        http_add_header(x, "WWW-Authenticate", "Bearer realm=\"sonde\"");
    if (outcome.status == 401 && ingest->munge)
        http_add_header(x, "WWW-Authenticate", "Munge");
    buf_init(&answer, MOST_ANSWER);
    buf_text(&answer, "{\"error\":");
    buf_json(&answer, str_of(sentence));
    if (outcome.record >= 0)
        buf_printf(&answer, ",\"record\":%lld", (long long)outcome.record);
    buf_text(&answer, "}\n");
    http_reply(x, outcome.status, JSON, buf_str(&answer));
    buf_free(&answer);
}

static void acknowledge(struct http_ingest *ingest, struct http_exchange *x, size_t n)
{
    char answer[50];

    atomic_fetch_add(&ingest->posts, 1);
    atomic_fetch_add(&ingest->records, n);
    snprintf(answer, sizeof(answer), "{\"records\":%zu}\n", n);
    http_reply(x, 200, JSON, str_of(answer));
}

static void refuse_busy(struct http_ingest *ingest, struct http_exchange *x, const char *sentence)
{
    refuse(ingest, x, (struct outcome){ 503, "2", -1 }, sentence);
}

/* --- the header --- */

/* When the pool has no room for a look at the token's file. */
static void refuse_look(void *ctx, struct http_exchange *x)
{
    struct http_ingest *ingest = ctx;

    ingest_token_cancel_look(ingest->token);
    refuse_busy(ingest, x, "the exporter is busy, try again");
}

static void refuse_credential(void *ctx, struct http_exchange *x)
{
    refuse_busy(ctx, x, "the exporter is busy, try again");
}

/* What the Authorization header has of that scheme; empty if it has none. */
static struct str authorization(const struct http_exchange *x, struct str wanted)
{
    struct str rest = str_trim(http_header(x, "Authorization")), scheme = str_cut(&rest, ' ');

    return rest.p && str_eq_nocase(scheme, wanted) ? str_trim(rest) : STR("");
}

static struct str bearer(const struct http_exchange *x)
{
    return authorization(x, STR("Bearer"));
}

static struct str credential(const struct http_exchange *x)
{
    return authorization(x, STR("Munge"));
}

/* NULL if the post has a proof of a kind that is accepted. */
static const char *missing_proof(const struct http_ingest *ingest, const struct http_exchange *x)
{
    if (credential(x).n)
        return ingest->munge ? NULL
                             : "munge credentials are not accepted here: libmunge is not "
                               "installed, or --ingest.users is empty";
    if (bearer(x).n)
        return ingest->token ? NULL : "tokens are not accepted: there is no --ingest.token-file";
    if (!ingest->munge)
        return "a token is needed: Authorization: Bearer TOKEN";
    return ingest->token ? "a proof is needed: Authorization: Munge CREDENTIAL or Bearer TOKEN"
                         : "a proof is needed: Authorization: Munge CREDENTIAL";
}

static bool is_json(struct str type)
{
    return str_eq_nocase(str_trim(str_cut(&type, ';')), STR(JSON));
}

/* What can be judged without opening the proof. */
static bool is_acceptable(struct http_ingest *ingest, struct http_exchange *x)
{
    const char *missing = missing_proof(ingest, x);
    uint64_t bytes;

    if (http_header(x, "Origin").n)
        refuse(ingest, x, (struct outcome){ 403, NULL, -1 }, "posts from web pages are refused");
    else if (missing)
        refuse(ingest, x, (struct outcome){ 401, NULL, -1 }, missing);
    else if (!is_json(http_header(x, "Content-Type")))
        refuse(ingest, x, (struct outcome){ 415, NULL, -1 }, "a post must be " JSON);
    else if (!http_body_length(x, &bytes))
        refuse(ingest, x, (struct outcome){ 411, NULL, -1 },
               "the length of the post is needed: Content-Length");
    else
        return true;
    return false;
}

static enum http_verdict await_look(struct http_ingest *ingest, struct http_exchange *x,
                                    const struct post *post)
{
    if (is_late(post, look_ns)) {
        refuse_busy(ingest, x, "the exporter is busy, try again");
        return HTTP_DONE;
    }
    http_wait_until(x, post->since_ns + look_ns);
    return HTTP_WAIT;
}

static void refuse_sender(struct http_ingest *ingest, struct http_exchange *x, unsigned seconds)
{
    char retry_after[20];

    snprintf(retry_after, sizeof(retry_after), "%u", seconds);
    refuse(ingest, x, (struct outcome){ 429, retry_after, -1 },
           "your address posts too much, try again");
}

/* There must be connections and memory left for others. A body that is too large for any post is
 * refused by the server. */
static void let_in(struct http_ingest *ingest, struct http_exchange *x, struct post *post)
{
    uint64_t bytes = 0;
    unsigned seconds;

    http_body_length(x, &bytes);
    bytes = bytes <= INGEST_BODY_MAX ? bytes : 0;
    if (atomic_load(&ingest->waiting) >= ingest->config.max_posts ||
        ingest->bytes + bytes > MOST_BYTES) {
        refuse_busy(ingest, x, "too many agents post at once, try again");
        return;
    }
    if (senders_enter(ingest->senders, http_peer(x), bytes, clock_mono(ingest->config.clock),
                      &post->sender, &seconds) < 0) {
        refuse_sender(ingest, x, seconds);
        return;
    }
    atomic_fetch_add(&ingest->waiting, 1);
    ingest->bytes += bytes;
    post->bytes = bytes;
}

static enum http_verdict admit_by_token(struct http_ingest *ingest, struct http_exchange *x,
                                        struct post *post)
{
    switch (ingest_token_check(ingest->token, bearer(x), post->since_ns)) {
    case TOKEN_RIGHT:
        let_in(ingest, x, post);
        break;
    case TOKEN_WRONG:
        refuse(ingest, x, (struct outcome){ 401, NULL, -1 },
               "the token is not the one in --ingest.token-file");
        break;
    case TOKEN_UNREADABLE:
        refuse(ingest, x, (struct outcome){ 503, "60", -1 }, "the exporter cannot read its token");
        break;
    case TOKEN_LOOK:
        http_share(x, STR("/ingest"), refuse_look);
        return HTTP_WORK;
    case TOKEN_WAIT:
        return await_look(ingest, x, post);
    }
    return HTTP_DONE;
}

/* While munged does not answer, a token will do if there is one: 401 asks for it. */
static struct outcome outcome_of_credential(const struct http_ingest *ingest, int code)
{
    switch (-code) {
    case EACCES:
        return (struct outcome){ 401, NULL, -1 };
    case EPERM:
        return (struct outcome){ 403, NULL, -1 };
    case EBUSY:
        return ingest->token ? (struct outcome){ 401, NULL, -1 } : (struct outcome){ 429, "1", -1 };
    default:
        return ingest->token ? (struct outcome){ 401, NULL, -1 }
                             : (struct outcome){ 503, "10", -1 };
    }
}

static void note_munge(struct http_ingest *ingest, int code, const struct err *err)
{
    bool is_away = code == -EAGAIN;

    if (code == -EBUSY || atomic_exchange(&ingest->is_munge_away, is_away) == is_away)
        return;
    if (is_away)
        LOG(ingest->config.log, LOG_WARN, "/ingest cannot check munge credentials",
            LOG_STR("error", err->text));
    else
        LOG(ingest->config.log, LOG_INFO, "/ingest checks munge credentials again");
}

static enum http_verdict admit_by_munge(struct http_ingest *ingest, struct http_exchange *x,
                                        struct post *post)
{
    if (!post->is_opened) {
        post->credential_code =
            ingest_munge_admit(ingest->munge, credential(x), http_peer(x), &post->credential_err);
        if (post->credential_code == 0) {
            http_share(x, STR("/ingest"), refuse_credential);
            return HTTP_WORK;
        }
    }
    note_munge(ingest, post->credential_code, &post->credential_err);
    if (post->credential_code == 0)
        let_in(ingest, x, post);
    else
        refuse(ingest, x, outcome_of_credential(ingest, post->credential_code),
               post->credential_err.text);
    return HTTP_DONE;
}

static enum http_verdict admit(void *ctx, struct http_exchange *x)
{
    struct http_ingest *ingest = ctx;
    struct post *post;

    if (!is_acceptable(ingest, x))
        return HTTP_DONE;
    post = post_of(ingest, x);
    return credential(x).n ? admit_by_munge(ingest, x, post) : admit_by_token(ingest, x, post);
}

/* On a worker. */
static void open_credential(struct http_ingest *ingest, struct http_exchange *x, struct post *post)
{
    post->proved = heap_alloc(sizeof(*post->proved));
    post->credential_code =
        ingest_munge_open(ingest->munge, credential(x), http_peer(x), http_is_proxied(x),
                          post->proved, &post->credential_err);
    post->is_opened = true;
}

/* --- the body --- */

/* The name of a cluster of which Slurm has not told may be the one that is meant. */
static bool has_unnamed(struct recorder *recorder)
{
    char name[2];

    for (size_t i = 0; i < recorder_n_clusters(recorder); i++)
        if (!recorder_get_name(recorder, i, name, sizeof(name)))
            return true;
    return false;
}

/* Its place, -EAGAIN if that may be known later, or -ENXIO. */
static int find_cluster(struct recorder *recorder, struct str name, struct err *err)
{
    int cluster = name.n ? recorder_find(recorder, name) : 0;

    if (!name.n && recorder_n_clusters(recorder) != 1)
        return err_set(err, ENXIO,
                       "several clusters are recorded here: say which with --ingest.cluster");
    if (cluster >= 0 && (name.n || !has_unnamed(recorder)))
        return cluster;
    if (has_unnamed(recorder))
        return err_set(err, EAGAIN, "Slurm has not told yet what the cluster is called");
    return err_set(err, ENXIO, "no cluster called \"%s\" is recorded here", quote(name).text);
}

static void wake(void *server)
{
    http_wake(server);
}

static int submit(struct http_exchange *x, struct post *post, const struct ingest_body *body,
                  struct err *err)
{
    struct recorder *recorder = post->ingest->config.recorder;
    int cluster = find_cluster(recorder, body->cluster, err);
    struct record_batch batch = {
        .finals = body->records,
        .n_finals = body->n_records,
    };

    if (cluster < 0 || !body->n_records)
        return cluster < 0 ? cluster : 0;
    batch.cluster = (size_t)cluster;
    post->n_records = body->n_records;
    return recorder_submit(recorder, &batch, wake, http_server_of(x), &post->request, err);
}

static void answer(struct http_ingest *ingest, struct http_exchange *x, size_t n_records, int code,
                   const struct err *err)
{
    if (code == 0)
        acknowledge(ingest, x, n_records);
    else if (code == -ENXIO)
        refuse(ingest, x, (struct outcome){ 404, NULL, -1 }, err->text);
    else
        refuse(ingest, x, (struct outcome){ 503, "10", -1 }, err->text);
}

/* Of a post with a munge credential: 0, or why it is refused; then *ret_bad is the record, or -1.
 */
static int check_sender(struct http_ingest *ingest, const struct post *post,
                        const struct ingest_body *body, int64_t *ret_bad, struct err *err)
{
    int code = 0;

    *ret_bad = -1;
    for (size_t i = 0; post->proved && code == 0 && i < body->n_records; i++) {
        code = ingest_munge_check_node(ingest->munge, post->proved, body->records[i].node, err);
        *ret_bad = code == 0 ? -1 : (int64_t)i;
    }
    return code;
}

/* That names cannot be resolved now is not the sender's fault. */
static void refuse_proof(struct http_ingest *ingest, struct http_exchange *x, int code, int64_t bad,
                         const struct err *err)
{
    if (code == -EAGAIN)
        refuse(ingest, x, (struct outcome){ 503, "10", -1 }, err->text);
    else
        refuse(ingest, x, (struct outcome){ 403, NULL, bad }, err->text);
}

/* Answers, unless it is up to the recorder: then there is a request. */
static void take(struct http_ingest *ingest, struct http_exchange *x, struct post *post)
{
    struct arena arena = { 0 };
    struct ingest_body body;
    struct err err = { 0 };
    int64_t bad = -1;
    int code = post->proved ? ingest_munge_check_body(post->proved, http_request_body(x), &err) : 0;

    if (code < 0) {
        refuse_proof(ingest, x, code, bad, &err);
        return;
    }
    code = ingest_body_read(http_request_body(x), &arena, &body, &bad, &err);
    http_drop_body(x);
    if (code < 0) {
        refuse(ingest, x, (struct outcome){ 400, NULL, bad }, err.text);
    } else if ((code = check_sender(ingest, post, &body, &bad, &err)) < 0) {
        refuse_proof(ingest, x, code, bad, &err);
    } else {
        code = submit(x, post, &body, &err);
        post->since_ns = clock_mono(ingest->config.clock);
        if (!post->request)
            answer(ingest, x, 0, code, &err);
    }
    arena_clear(&arena);
}

static enum http_verdict await_recorder(struct http_ingest *ingest, struct http_exchange *x,
                                        const struct post *post)
{
    struct err err = { 0 };
    int code = recorder_check(post->request, &err);

    if (code == -EINPROGRESS && !is_late(post, put_ns)) {
        http_wait_until(x, post->since_ns + put_ns);
        return HTTP_WAIT;
    }
    if (code == -EINPROGRESS)
        code = err_set(&err, ETIMEDOUT, "the store was not written in time, try again");
    answer(ingest, x, post->n_records, code, &err);
    return HTTP_DONE;
}

static void refuse_body(void *ctx, struct http_exchange *x)
{
    refuse_busy(ctx, x, "too many large posts at once, try again");
}

static enum http_verdict handle(void *ctx, struct http_exchange *x)
{
    struct http_ingest *ingest = ctx;
    struct post *post = post_of(ingest, x);

    if (post->request)
        return await_recorder(ingest, x, post);
    /* A lookup of a node's name that takes long must hold up no other post. */
    http_share(x, post->proved ? STR("/ingest by munge") : STR("/ingest"), refuse_body);
    if (http_request_body(x).n > SMALL_BODY || post->proved)
        return HTTP_WORK;
    take(ingest, x, post);
    return post->request ? await_recorder(ingest, x, post) : HTTP_DONE;
}

/* What `admit` and `handle` leave to a worker. */
static void work(void *ctx, struct http_exchange *x)
{
    struct http_ingest *ingest = ctx;
    struct post *post = post_of(ingest, x);

    if (post->sender) {
        take(ingest, x, post);
        return;
    }
    if (credential(x).n) {
        open_credential(ingest, x, post);
        return;
    }
    ingest_token_look(ingest->token);
    http_wake(http_server_of(x));
}

struct http_ingest *http_ingest_new(const struct http_ingest_config *config)
{
    struct http_ingest *ingest = heap_alloc(sizeof(*ingest));
    const struct senders_config senders = {
        .max_posts = config->max_posts / SENDER_SHARE + 1,
        .max_bytes = MOST_BYTES / SENDER_SHARE,
    };

    ingest->config = *config;
    ingest->senders = senders_new(&senders);
    if (config->token_file)
        ingest->token = ingest_token_new(config->token_file, config->clock, config->log);
    if (config->munge.n_users)
        ingest->munge = ingest_munge_new(&config->munge);
    return ingest;
}

struct http_ingest *http_ingest_free(struct http_ingest *ingest)
{
    if (ingest) {
        senders_free(ingest->senders);
        ingest_token_free(ingest->token);
        ingest_munge_free(ingest->munge);
        free(ingest);
    }
    return NULL;
}

/* A token or a credential is proof enough: no password is needed besides. */
void http_ingest_routes(struct http_ingest *ingest, struct http_route to[HTTP_INGEST_ROUTES])
{
    to[0] = (struct http_route){
        .method = "POST",
        .path = "/ingest",
        .max_body = INGEST_BODY_MAX,
        .access = HTTP_OPEN,
        .admit = admit,
        .handle = handle,
        .work = work,
        .ctx = ingest,
    };
}

void http_ingest_stats(struct http_ingest *ingest, struct http_ingest_stats *ret)
{
    *ret = (struct http_ingest_stats){
        .posts = atomic_load(&ingest->posts),
        .refused = atomic_load(&ingest->refused),
        .records = atomic_load(&ingest->records),
        .waiting = atomic_load(&ingest->waiting),
    };
}
