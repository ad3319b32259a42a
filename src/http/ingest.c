/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The route POST /ingest, which takes records from agents. */
#include "http/ingest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/quote.h"
#include "base/secret.h"
#include "http/ingest_body.h"

#include <pthread.h>
#include <sys/stat.h>

#define JSON "application/json"

enum {
    /* The exporter has two workers: one is left for the others while the store cannot be written.
     */
    MOST_INSIDE = 1,
    MOST_WAITING = 32, /* connections: there must be some left for scrapes */
    MOST_ANSWER = 2000,
};

static const int64_t put_ns = 5 * NS_PER_SEC;
static const int64_t turn_ns = 5 * NS_PER_SEC;  /* who has no turn by then is sent away */
static const int64_t pause_ns = 20 * NS_PER_MS; /* between two looks whether it is */

struct http_ingest {
    struct http_ingest_config config;
    char *token_file;
    atomic_bool is_cancelled; /* never: a put has its own deadline */
    atomic_uint n_inside, n_waiting;
    atomic_ullong posts, refused, records;

    pthread_mutex_t lock; /* of what follows */
    char *token;          /* NULL: there is none to compare with */
    struct stat seen;     /* the file as it was when that was read */
};

/* What an exchange holds; given back with it, if not before: the pool may have no room for it. */
struct seat {
    struct http_ingest *ingest;
    bool is_waiting, is_inside;
};

static void leave(struct seat *seat)
{
    atomic_fetch_sub(&seat->ingest->n_waiting, seat->is_waiting);
    atomic_fetch_sub(&seat->ingest->n_inside, seat->is_inside);
    seat->is_waiting = seat->is_inside = false;
}

static void free_seat(void *state)
{
    leave(state);
    free(state);
}

static struct seat *seat_of(struct http_ingest *ingest, struct http_exchange *x)
{
    void **state = http_state(x, free_seat);
    struct seat *seat = *state;

    if (!seat) {
        *state = seat = heap_alloc(sizeof(*seat));
        seat->ingest = ingest;
    }
    return seat;
}

/* --- the token --- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Under the lock. A file that cannot be read lets nobody in. */
static int refresh_token(struct http_ingest *ingest, struct err *err)
{
    struct stat now = { 0 };
    int code;

    if (stat(ingest->token_file, &now) == 0 && ingest->token && is_same_file(&now, &ingest->seen))
        return 0;
    ingest->token = secret_free(ingest->token);
    code = secret_read(ingest->token_file, "token", &ingest->token, err);
    ingest->seen = now;
    return code;
}

/* Takes as long whatever differs. */
static bool is_equal(struct str given, struct str token)
{
    unsigned char difference = given.n != token.n;

    for (size_t i = 0; i < given.n; i++)
        difference |= (unsigned char)(given.p[i] ^ token.p[token.n ? i % token.n : 0]);
    return !difference;
}

static struct str bearer(const struct http_exchange *x)
{
    struct str rest = str_trim(http_header(x, "Authorization")), scheme = str_cut(&rest, ' ');

    return rest.p && str_eq_nocase(scheme, STR("Bearer")) ? str_trim(rest) : STR("");
}

/* 0, -EACCES, or why nobody can tell. */
static int check_token(struct http_ingest *ingest, struct str given, struct err *err)
{
    bool is_right = false;
    int code;

    pthread_mutex_lock(&ingest->lock);
    code = refresh_token(ingest, err);
    if (code == 0)
        is_right = is_equal(given, str_of(ingest->token));
    pthread_mutex_unlock(&ingest->lock);
    if (code == 0 && !is_right)
        code = err_set(err, EACCES, "the token is not the one in --ingest.token-file");
    return code;
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
    if (outcome.status == 401)
        http_add_header(x, "WWW-Authenticate", "Bearer realm=\"sonde\"");
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

/* --- on a worker --- */

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

static int put(struct http_ingest *ingest, const struct ingest_body *body, struct err *err)
{
    int cluster = find_cluster(ingest->config.recorder, body->cluster, err);
    struct record_batch batch = {
        .finals = body->records,
        .n_finals = body->n_records,
    };

    if (cluster < 0)
        return cluster;
    if (!body->n_records)
        return 0;
    batch.cluster = (size_t)cluster;
    return recorder_put(ingest->config.recorder, &batch, clock_mono(ingest->config.clock) + put_ns,
                        &ingest->is_cancelled, err);
}

static void take(struct http_ingest *ingest, struct http_exchange *x)
{
    struct arena arena = { 0 };
    struct ingest_body body;
    struct err err = { 0 };
    int64_t bad;
    int code = ingest_body_read(http_request_body(x), &arena, &body, &bad, &err);

    if (code < 0) {
        refuse(ingest, x, (struct outcome){ 400, NULL, bad }, err.text);
        arena_clear(&arena);
        return;
    }
    code = put(ingest, &body, &err);
    if (code == 0)
        acknowledge(ingest, x, body.n_records);
    else if (code == -ENXIO)
        refuse(ingest, x, (struct outcome){ 404, NULL, -1 }, err.text);
    else
        refuse(ingest, x, (struct outcome){ 503, "10", -1 }, err.text);
    arena_clear(&arena);
}

static void work(void *ctx, struct http_exchange *x)
{
    struct http_ingest *ingest = ctx;
    struct err err = { 0 };
    int code = check_token(ingest, bearer(x), &err);

    if (code == 0) {
        take(ingest, x);
    } else if (code == -EACCES) {
        refuse(ingest, x, (struct outcome){ 401, NULL, -1 }, err.text);
    } else {
        LOG(ingest->config.log, LOG_ERROR, "agents cannot hand in what jobs used",
            LOG_STR("error", err.text));
        refuse(ingest, x, (struct outcome){ 503, "60", -1 }, "the exporter cannot read its token");
    }
    leave(seat_of(ingest, x));
}

/* --- on the HTTP thread --- */

/* The nodes of a large job come all at once when it ends. */
static enum http_verdict wait_for_turn(struct http_ingest *ingest, struct http_exchange *x)
{
    int64_t now_ns = clock_mono(ingest->config.clock);
    struct seat *seat = seat_of(ingest, x);

    if (!seat->is_waiting && atomic_load(&ingest->n_waiting) < MOST_WAITING) {
        atomic_fetch_add(&ingest->n_waiting, 1);
        seat->is_waiting = true;
    }
    if (seat->is_waiting && now_ns - http_started(x) < turn_ns) {
        http_wait_until(x, now_ns + pause_ns);
        return HTTP_WAIT;
    }
    refuse(ingest, x, (struct outcome){ 503, "5", -1 }, "too many post at once, try again");
    return HTTP_DONE;
}

static bool is_json(struct str type)
{
    return str_eq_nocase(str_trim(str_cut(&type, ';')), STR(JSON));
}

static enum http_verdict begin(void *ctx, struct http_exchange *x)
{
    struct http_ingest *ingest = ctx;
    struct seat *seat;

    if (http_header(x, "Origin").n) {
        refuse(ingest, x, (struct outcome){ 403, NULL, -1 }, "not from a web page, please");
        return HTTP_DONE;
    }
    if (!bearer(x).n) {
        refuse(ingest, x, (struct outcome){ 401, NULL, -1 },
               "a token is needed: Authorization: Bearer TOKEN");
        return HTTP_DONE;
    }
    if (!is_json(http_header(x, "Content-Type"))) {
        refuse(ingest, x, (struct outcome){ 415, NULL, -1 }, "a post must be " JSON);
        return HTTP_DONE;
    }
    if (atomic_load(&ingest->n_inside) >= MOST_INSIDE)
        return wait_for_turn(ingest, x);
    seat = seat_of(ingest, x);
    leave(seat);
    atomic_fetch_add(&ingest->n_inside, 1);
    seat->is_inside = true;
    return HTTP_WORK;
}

struct http_ingest *http_ingest_new(const struct http_ingest_config *config)
{
    struct http_ingest *ingest = heap_alloc(sizeof(*ingest));

    ingest->config = *config;
    ingest->token_file = heap_str(str_of(config->token_file));
    pthread_mutex_init(&ingest->lock, NULL);
    return ingest;
}

struct http_ingest *http_ingest_free(struct http_ingest *ingest)
{
    if (ingest) {
        secret_free(ingest->token);
        pthread_mutex_destroy(&ingest->lock);
        free(ingest->token_file);
        free(ingest);
    }
    return NULL;
}

/* Who has the token needs no password besides. */
void http_ingest_routes(struct http_ingest *ingest, struct http_route to[HTTP_INGEST_ROUTES])
{
    to[0] = (struct http_route){
        .method = "POST",
        .path = "/ingest",
        .max_body = INGEST_BODY_MAX,
        .access = HTTP_OPEN,
        .handle = begin,
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
    };
}
